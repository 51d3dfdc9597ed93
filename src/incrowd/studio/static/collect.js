// Collect: a questionnaire from a policy, how its collector is started, and what has come in.

import { $, ask, choose, desk, fill, folderOf, make, nameOf, roots, showError, work } from "./studio.js";

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
  const store = place.querySelector("[data-store]").dataset.store;
  $("close").addEventListener("submit", (event) => {
    event.preventDefault();
    close(store);
  });
  $("questionnaire-title").focus();
}

async function close(store) {
  showError($("close-error"), null);
  const asked = { kind: "collected", store, folder: $("close-folder").value.trim(), fewer: $("fewer").checked, sign_with: $("sign-with").value.trim() };
  try {
    const made = await work($("close-progress"), asked, { cancelled: "Stopped. If the collection was closed already, it stays closed: publish it again." });
    if (!made) return;
    const folder = made.folder || asked.folder;
    desk.set({ released: folder });
    $("close-progress").replaceChildren(make("div", { class: "verdict good", role: "status" }, make("h3", {}, "Closed and published"),
      make("p", {}, make("code", {}, folder)), make("p", {}, make("a", { class: "button main", href: "/browse" }, "See what others see"))));
  } catch (error) {
    showError($("close-error"), error);
  }
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
    text, base, records: Number($("records").value), texts: $("texts").value.trim(), path: $("questionnaire-path").value.trim(), overwrite: $("overwrite").checked, sign_with: $("sign-with").value.trim(),
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

$("browse-key").addEventListener("click", async () => {
  const path = await choose("key", "Choose the secret key");
  if (path) $("sign-with").value = path;
});

$("open-questionnaire").addEventListener("click", async () => {
  const path = await choose("questionnaire", "Open a questionnaire");
  if (path) tried(async () => shown(await ask(`/questionnaire/view?path=${encodeURIComponent(path)}`)));
});

describe();
