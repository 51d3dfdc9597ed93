// Attacks: each story is told when it is asked for, with fresh numbers.

import { ask, fill, showError } from "./studio.js";

for (const story of document.querySelectorAll(".story")) {
  const button = story.querySelector("button");
  const told = story.querySelector(".told");
  button.addEventListener("click", async () => {
    button.disabled = true;
    told.setAttribute("aria-busy", "true");
    try {
      fill(told, await ask(`/attacks/${encodeURIComponent(story.dataset.attack)}`));
      button.textContent = "Draw again";
    } catch (error) {
      showError(told, error);
    }
    button.disabled = false;
  });
}
