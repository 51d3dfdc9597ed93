// The lattice: each table answers when it is pointed at or reached by arrow keys.

import { make } from "./studio.js";

const percent = (value) => `${(100 * value).toLocaleString("en", { maximumFractionDigits: 1 })}%`;

export function lattice(view) {
  const content = JSON.parse(view.dataset.lattice);
  const detail = view.querySelector(".detail");
  const boxes = new Map([...view.querySelectorAll("[data-node]")].map((box) => [box.dataset.node, box]));
  const known = new Map(content.nodes.map((one) => [one.node.join(","), one]));

  function show(key) {
    const one = known.get(key);
    if (!one) return;
    for (const [other, box] of boxes) box.classList.toggle("current", other === key);
    const row = (name, ...cells) => make("tr", {}, make("th", { scope: "row" }, name), ...cells.map((cell) => make("td", {}, cell)));
    const state = one.chosen ? "This one was taken." : one.minimal ? "It keeps everything, and nothing finer does."
      : one.kept ? "It keeps everything." : "It does not keep everything.";
    detail.replaceChildren(
      make("h3", {}, content.columns.map((name, i) => `${name} ${one.node[i]}`).join(", ")),
      make("p", {}, state),
      make("table", {}, make("tbody", {},
        row("information kept", percent(one.information)),
        row("groups", one.groups.toLocaleString("en")),
        row("left out", one.left_out === null ? "too many" : `${one.left_out.toLocaleString("en")} records`))),
      make("h4", {}, "Who it withstands"),
      make("ul", { class: "withstands" }, ...content.demands.map((name, i) =>
        make("li", { class: one.keeps[i] ? "yes" : "no" },
          make("b", {}, one.keeps[i] ? "yes: " : "no: "), name,
          make("small", {}, one.measures[i] === null ? " (∞)" : ` (${one.measures[i].toLocaleString("en", { maximumSignificantDigits: 4 })})`)))),
      make("p", {}, make("small", {}, one.left_out === null
        ? "In brackets: what the whole table has, since more records than allowed would have to be left out for everything to hold."
        : "In brackets: what would be published.")));
  }

  for (const [key, box] of boxes) {
    box.setAttribute("tabindex", known.get(key)?.chosen ? "0" : "-1");
    box.setAttribute("role", "button");
    box.addEventListener("pointerenter", () => show(key));
    box.addEventListener("focus", () => show(key));
    box.addEventListener("click", () => box.focus());
    box.addEventListener("keydown", (event) => {
      const at = box.getBoundingClientRect();
      const centre = (rect) => [rect.left + rect.width / 2, rect.top + rect.height / 2];
      const [x, y] = centre(at);
      const ways = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
      const way = ways[event.key];
      if (!way) return;
      event.preventDefault();
      let best = null;
      for (const other of boxes.values()) {
        const [u, v] = centre(other.getBoundingClientRect());
        const along = (u - x) * way[0] + (v - y) * way[1];
        const aside = Math.abs((u - x) * way[1]) + Math.abs((v - y) * way[0]);
        if (other !== box && along > 4 && (!best || along + 3 * aside < best.cost)) best = { other, cost: along + 3 * aside };
      }
      if (best) {
        box.tabIndex = -1;
        best.other.tabIndex = 0;
        best.other.focus();
      }
    });
  }
  const taken = content.nodes.find((one) => one.chosen);
  if (taken) show(taken.node.join(","));
}
