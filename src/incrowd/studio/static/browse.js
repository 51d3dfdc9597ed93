// What others see: a release that is read once, looked through a page at a time, estimated from, and saved in any format.

import { $, ask, choose, debounce, desk, fill, latest, make, showError, tabs, work } from "./studio.js";

let kept = null;
let columns = [];
let query = { order: "", descending: false, offset: 0 };
const post = (where, body, signal) => ask(`/browse/${kept}/${where}`, { method: "POST", body, signal });
const checked = (place) => [...$(place).querySelectorAll("input:checked")].map((box) => box.value);

const show = latest(async (signal) => {
  const filters = Object.fromEntries([...$("filters").querySelectorAll("input")].map((box) => [box.name, box.value.trim()]));
  $("rows").setAttribute("aria-busy", "true");
  showError($("rows-error"), null);
  try {
    fill($("rows"), await post("rows", { ...query, filters, by: checked("group-by") }, signal));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (error.error?.code === "request-refused") return;
    $("rows").setAttribute("aria-busy", "false");
    showError($("rows-error"), error);
  }
});
const changed = debounce(show, 200);

function again(changes) {
  query = { ...query, ...changes };
  changed();
}

$("rows").addEventListener("click", (event) => {
  const sort = event.target.closest("[data-sort]");
  const page = event.target.closest("[data-offset]");
  if (sort) {
    const order = sort.dataset.sort;
    again({ order, descending: query.order === order ? !query.descending : order === "", offset: 0 });
  } else if (page) again({ offset: Number(page.dataset.offset) });
});
$("filters").addEventListener("input", () => again({ offset: 0 }));
$("group-by").addEventListener("change", () => again({ offset: 0, order: "", descending: checked("group-by").length > 0 }));
for (const form of ["query", "estimate", "again"]) $(form).addEventListener("submit", (event) => event.preventDefault());
$("estimate").addEventListener("submit", async () => {
  showError($("estimate-error"), null);
  try {
    fill($("estimated"), await post("estimate", { by: checked("estimate-by"), mean: $("mean").value, sum_of: $("sum_of").value, total: $("total").value, method: $("method").value }));
  } catch (error) {
    showError($("estimate-error"), error);
  }
});
$("again").addEventListener("submit", () => save({
  kind: "combine", folder: desk.get().released, output: $("again-output").value, rows: $("again-rows").value, seed: $("again-seed").value,
}));

const box = (group, name, i, on = false) => {
  const input = make("input", { type: "checkbox", id: `${group}-${i}`, value: name, checked: on });
  return make("label", { for: `${group}-${i}`, class: "pick" }, input, " ", make("bdi", {}, name));
};

async function open(folder) {
  showError($("open-error"), null);
  $("opened").hidden = true;
  if (kept) ask(`/jobs/${kept}`, { method: "DELETE" }).catch(() => {});
  kept = null;
  try {
    const found = await work($("open-progress"), { kind: "browse", folder });
    if (!found) return;
    kept = found.id;
    columns = found.columns;
    query = { order: "", descending: false, offset: 0 };
    desk.set({ released: folder, seen: folder });
    $("which").replaceChildren(make("code", {}, folder), found.void ? " is complete, and void." : " passes every check.");
    $("promise").textContent = found.promise;
    $("void").hidden = !found.void;
    $("void").textContent = found.void || "";
    $("filters").replaceChildren(...columns.map((column, i) => make("div", { class: "field short" },
      make("label", { for: `filter-${i}` }, make("bdi", {}, column.name)),
      make("input", { type: "text", id: `filter-${i}`, name: column.name, autocomplete: "off", spellcheck: "false", list: `labels-${i}` }),
      make("datalist", { id: `labels-${i}` }, ...column.labels.map((label) => make("option", { value: `=${label}` }))))));
    $("group-by").replaceChildren(...columns.map((column, i) => box("by", column.name, i)));
    $("estimate-by").replaceChildren(...columns.map((column, i) => box("people", column.name, i, i === 0)));
    for (const name of ["mean", "sum_of"]) $(name).replaceChildren(make("option", { value: "" }, "nothing"), ...columns.map((column) => make("option", { value: column.name }, column.name)));
    $("again").hidden = !found.draws_again;
    for (const name of ["mean", "sum_of", "total", "method"]) $(`${name}-field`).hidden = !found.options.includes(name);
    $("formats").replaceChildren(...Object.entries(found.formats).map(([name, title]) =>
      make("button", { type: "button", disabled: !found.has_table, onclick: () => save({ kind: "export", folder, output: name }) }, title)));
    $("public-folder").href = `/releases/download?folder=${encodeURIComponent(folder)}`;
    $("opened").hidden = false;
    $("estimated").replaceChildren();
    if (found.has_table) await show();
    else fill($("rows"), "<p>This release has files of its own instead of a table of records. Estimate from it.</p>");
  } catch (error) {
    showError($("open-error"), error);
  }
}

async function save(asked) {
  showError($("formats-error"), null);
  try {
    const made = await work($("formats-progress"), asked);
    if (!made) return;
    make("a", { href: `/jobs/${made.id}/file`, download: made.file }).click();
    $("formats-progress").replaceChildren(make("p", { class: "said", role: "status" }, `${made.file} is written.`));
  } catch (error) {
    showError($("formats-error"), error);
  }
}

$("open-release").addEventListener("click", async () => {
  const folder = await choose("release", "Choose the folder of a release");
  if (folder) await open(folder);
});
window.addEventListener("pagehide", () => {
  if (kept) fetch(`/jobs/${kept}`, { method: "DELETE", keepalive: true, credentials: "same-origin" });
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted && desk.get().released) open(desk.get().released);
});

tabs(document.querySelector('[role="tablist"]'));
if (desk.get().released) open(desk.get().released);
