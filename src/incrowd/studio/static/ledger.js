// The ledger: what was spent, and what is left.

import { $, ask, choose, fill, showError } from "./studio.js";

const place = $("statement");

async function show(path, dataset) {
  showError($("error"), null);
  try {
    const query = new URLSearchParams({ path, ...(dataset ? { dataset } : {}) });
    shown(await ask(`/ledger/view?${query}`));
  } catch (error) {
    place.replaceChildren();
    $("changes").hidden = false; // a new ledger begins with a budget
    showError($("error"), error);
  }
}

function shown(markup) {
  fill(place, markup);
  $("changes").hidden = false;
  const section = place.querySelector("section");
  $("dataset").value = section.dataset.dataset;
  $("datasets")?.addEventListener("change", (event) => show(section.dataset.path, event.target.value));
}

$("open").addEventListener("submit", (event) => {
  event.preventDefault();
  show($("path").value.trim());
});
$("browse").addEventListener("click", async () => {
  const path = await choose("ledger", "Choose a ledger");
  if (path) {
    $("path").value = path;
    show(path);
  }
});
$("what").addEventListener("change", () => {
  const adds = $("what").value === "add";
  $("description-field").hidden = !adds;
  $("rule-field").hidden = adds;
  $("unit-field").hidden = adds || $("rule").value !== "unit";
});
$("rule").addEventListener("change", () => ($("unit-field").hidden = $("rule").value !== "unit"));
$("change").addEventListener("submit", async (event) => {
  event.preventDefault();
  showError($("change-error"), null);
  const body = { path: $("path").value.trim() };
  for (const name of ["what", "dataset", "epsilon", "delta", "relation", "rule", "unit", "description"]) body[name] = $(name).value.trim();
  try {
    shown(await ask("/ledger/change", { method: "POST", body }));
    showError($("error"), null);
  } catch (error) {
    showError($("change-error"), error);
  }
});
$("is-lost").addEventListener("change", () => ($("accept-loss").disabled = !$("is-lost").checked));
$("accept-loss").addEventListener("click", async () => {
  try {
    fill($("given-up"), await ask("/ledger/change", { method: "POST", body: { what: "accept-loss", path: $("path").value.trim() } }));
    $("is-lost").checked = false;
    $("accept-loss").disabled = true;
  } catch (error) {
    showError($("given-up"), error);
  }
});
