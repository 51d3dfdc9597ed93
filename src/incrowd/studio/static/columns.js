// The columns as a table that can be sorted and filtered, and in which several can be confirmed at once.

import { $, make } from "./studio.js";

const ROLES = { quasi: "may be known", sensitive: "sensitive", drop: "dropped" };
const KEYS = {
  name: (one) => one.name.toLowerCase(),
  values: (one) => -(one.known?.distinct ?? -1),
  role: (one) => Object.keys(ROLES).indexOf(one.role),
  open: (one) => (one.open ? 0 : 1),
};

/** `chosen` is called with a column's name, `confirm` with those that were ticked. */
export function columnTable({ chosen, confirm }) {
  let all = [];
  let order = null;
  let backwards = false;
  const ticked = new Set();

  function visible() {
    const wanted = $("filter").value.trim().toLowerCase();
    const which = $("which").value;
    const shown = all.filter((one) => one.name.toLowerCase().includes(wanted)
      && (!which || (which === "open" ? one.open : which === "drop" ? one.role === "drop" : one.role !== "drop")));
    if (!order) return shown;
    const key = KEYS[order];
    const compare = (a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0);
    return shown.sort((a, b) => (backwards ? compare(b, a) : compare(a, b)));
  }

  function row(one) {
    const tick = make("input", { type: "checkbox", "aria-label": `Choose ${one.name}`, checked: ticked.has(one.name) });
    tick.addEventListener("change", () => {
      if (tick.checked) ticked.add(one.name);
      else ticked.delete(one.name);
      drawTicked();
    });
    const shape = make("td", { class: "pictured" });
    if (one.known) shape.innerHTML = one.known.shape; // drawn by the service, without a word in it
    const { distinct, counted } = one.known || {};
    return make("tr", { class: `column-${one.role}${one.current ? " current" : ""}` },
      make("td", { class: "tick" }, one.open ? tick : null),
      make("th", { scope: "row" }, make("button", { type: "button", class: "link", "aria-pressed": String(one.current), onclick: () => chosen(one.name) }, make("bdi", {}, one.name))),
      shape,
      make("td", { class: "number values" }, one.known ? `${counted ? "" : "about "}${distinct.toLocaleString("en")}` : ""),
      make("td", { class: "role" }, one.listed ? ROLES[one.role] || one.role : "not listed"),
      make("td", {}, one.open ? make("span", { class: "ask" }, "to confirm") : null));
  }

  function drawTicked() {
    const open = visible().filter((one) => one.open);
    const chosenNow = open.filter((one) => ticked.has(one.name)).length;
    const button = $("confirm-several");
    button.hidden = !all.some((one) => one.open);
    button.disabled = !chosenNow;
    button.textContent = chosenNow ? `Confirm ${chosenNow} ${chosenNow === 1 ? "column" : "columns"}` : "Confirm those chosen";
    $("tick-all").hidden = !open.length;
    $("tick-all").checked = open.length > 0 && chosenNow === open.length;
    $("tick-all").indeterminate = chosenNow > 0 && chosenNow < open.length;
  }

  function draw() {
    const shown = visible();
    $("columns").replaceChildren(...shown.map(row));
    $("columns-said").textContent = shown.length < all.length ? `${shown.length} of ${all.length} columns are shown.` : "";
    for (const button of document.querySelectorAll("[data-sort]")) {
      button.closest("th").setAttribute("aria-sort", button.dataset.sort !== order ? "none" : backwards ? "descending" : "ascending");
    }
    drawTicked();
  }

  for (const button of document.querySelectorAll("[data-sort]")) {
    button.addEventListener("click", () => {
      backwards = order === button.dataset.sort && !backwards;
      order = button.dataset.sort;
      draw();
    });
  }
  $("filter").addEventListener("input", draw);
  $("which").addEventListener("change", draw);
  $("tick-all").addEventListener("change", () => {
    for (const one of visible()) {
      if (one.open && $("tick-all").checked) ticked.add(one.name);
      else ticked.delete(one.name);
    }
    draw();
  });
  $("confirm-several").addEventListener("click", () => {
    const names = visible().filter((one) => one.open && ticked.has(one.name)).map((one) => one.name);
    ticked.clear();
    confirm(names);
  });

  return {
    draw(columns) {
      all = columns;
      $("columns-internal").hidden = !columns.some((one) => one.known);
      draw();
    },
  };
}
