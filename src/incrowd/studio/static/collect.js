// Collect: a questionnaire from a policy, how its collector is started, and what has come in.

import { $, ask, choose, desk, fill, folderOf, make, nameOf, roots, showError } from "./studio.js";

function describe() {
  const { text, path, base } = desk.get();
  $("desk").replaceChildren(make("div", {}, make("dt", {}, "Policy"), make("dd", {}, make("bdi", {}, text ? (path ? nameOf(path) : "not saved") : "none"))));
  $("make-it").disabled = !text;
  const stem = (path || `${base || roots[0]}/survey.yaml`).replace(/\.[^./]*$/, "");
  $("questionnaire-path").value = `${stem}.json`;
  ask(`/files?kind=texts&folder=${encodeURIComponent(folderOf(stem))}`).then(({ files }) => {
    const beside = files.find((file) => file.path === `${stem}.texts.yaml`);
    if (beside) $("texts").value = beside.path;
  }).catch(() => {});
}

function shown(markup) {
  const place = $("questionnaire");
  fill(place, markup);
  for (const button of place.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(button.parentElement.querySelector("code")); // to be copied by hand
      }
    });
  }
  place.querySelector("[data-store]").addEventListener("click", async (event) => {
    try {
      fill($("collection"), await ask(`/collection/view?path=${encodeURIComponent(event.target.dataset.store)}`));
    } catch (error) {
      showError($("collection"), error);
    }
  });
  $("questionnaire-title").focus();
}

async function tried(action) {
  showError($("make-error"), null);
  try {
    await action();
  } catch (error) {
    showError($("make-error"), error);
    if (error.error?.code === "output-exists") $("overwrite-field").hidden = false;
  }
}

$("make").addEventListener("submit", (event) => {
  event.preventDefault();
  const { text, base } = desk.get();
  tried(async () => shown(await ask("/questionnaire/make", { method: "POST", body: {
    text, base, records: Number($("records").value), texts: $("texts").value.trim(), path: $("questionnaire-path").value.trim(), overwrite: $("overwrite").checked,
  } })));
});

$("open-policy").addEventListener("click", async () => {
  const path = await choose("policy", "Choose a policy");
  if (!path) return;
  tried(async () => {
    const opened = await ask(`/policy/open?path=${encodeURIComponent(path)}`);
    desk.set({ text: opened.text, path: opened.path, base: opened.base, data: null });
    describe();
  });
});

$("open-questionnaire").addEventListener("click", async () => {
  const path = await choose("questionnaire", "Open a questionnaire");
  if (path) tried(async () => shown(await ask(`/questionnaire/view?path=${encodeURIComponent(path)}`)));
});

describe();
