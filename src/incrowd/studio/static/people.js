// Whose the rows are: the column that says so, how many rows people have, and how many of them count.

import { make, showError, work } from "./studio.js";
import { select } from "./fields.js";

const MOST = 8; // bars

/** How many people have how many rows, as bars with their numbers. For the publisher's eyes only. */
function spread(sizes) {
  const people = sizes.reduce((sum, [, n]) => sum + n, 0);
  const shown = sizes.slice(0, sizes.length > MOST ? MOST - 1 : MOST);
  const rest = sizes.slice(shown.length);
  const bars = shown.map(([rows, n]) => [rows.toLocaleString("en"), n]);
  if (rest.length) bars.push([`${rest[0][0]} to ${rest.at(-1)[0].toLocaleString("en")}`, rest.reduce((sum, [, n]) => sum + n, 0)]);
  const top = Math.max(...bars.map(([, n]) => n));
  return make("div", { class: "wide" }, make("table", { class: "spread" },
    make("caption", {}, "How many rows people have ", make("small", { class: "keep" }, "(true numbers: for your eyes only)")),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "rows"), make("th", { scope: "col", class: "number" }, "people"), make("th", { scope: "col" }, make("span", { class: "unseen" }, "share")))),
    make("tbody", {}, ...bars.map(([rows, n]) => make("tr", {}, make("th", { scope: "row" }, rows),
      make("td", { class: "number" }, n.toLocaleString("en")),
      make("td", { class: "share" }, make("progress", { max: String(top), value: String(n), "aria-label": `${rows} rows: ${((100 * n) / people).toFixed(1)}% of people` })))))));
}

export function peopleForm(place, { content, names, found, data, changed }) {
  const people = content.people && typeof content.people === "object" ? content.people : null;
  const column = people ? [people.column].flat() : [];
  const put = (changes) => {
    const next = Object.fromEntries(Object.entries({ ...people, ...changes }).filter(([, value]) => value !== undefined && value !== ""));
    changed([{ place: ["people"], content: next }]);
  };
  const options = { "": "each row is a person" };
  for (const name of names) options[name] = `the column ${name}`;
  if (column.length > 1) options[column.join(", ")] = `the columns ${column.join(", ")}`;
  const form = make("div", { class: "row" }, select("Whose a row is, says", options, column.join(", "), (name) => {
    if (name) put({ column: name, at_most: people?.at_most || "1" });
    else changed([{ place: ["people"], content: null }, ...(found?.sizes.length ? [{ place: ["rows_are_people"], content: "true" }] : [])]);
  }));
  if (people) {
    const most = make("input", { type: "text", id: "at-most", inputmode: "numeric", autocomplete: "off", value: people.at_most ?? "" });
    most.addEventListener("change", () => put({ at_most: most.value.trim() }));
    const keep = make("input", { type: "text", id: "keep-rows", autocomplete: "off", spellcheck: "false", value: people.keep ?? "any" });
    keep.addEventListener("change", () => put({ keep: keep.value.trim() === "any" ? undefined : keep.value.trim() }));
    form.append(make("div", { class: "field short" }, make("label", { for: "at-most" }, "rows of each that count"), most),
      make("div", { class: "field" }, make("label", { for: "keep-rows" }, "which: any, or latest by a column"), keep),
      select("Rows that do not say whose", { refuse: "are an error", own: "are each a person" }, people.missing || "refuse", (value) => put({ missing: value === "refuse" ? undefined : value })));
  }
  place.replaceChildren(form);
  const known = found && column.length === 1 && found.column === column[0] && found.sizes.length;
  if (known) {
    place.append(spread(found.sizes));
    const kept = Number(people.at_most);
    const all = found.sizes.reduce((sum, [rows, n]) => sum + rows * n, 0);
    const counted = found.sizes.reduce((sum, [rows, n]) => sum + Math.min(rows, kept) * n, 0);
    if (kept > 0) place.append(make("p", { class: "hint" }, `With ${kept} of each, ${counted.toLocaleString("en")} of ${all.toLocaleString("en")} rows count.`));
  } else if (people && data) {
    const progress = make("div");
    const trouble = make("div");
    const count = make("button", { type: "button" }, "Count the rows of people");
    count.addEventListener("click", async () => {
      count.disabled = true;
      try {
        const { codebook, ...reading } = data.reading || {};
        const result = await work(progress, { kind: "rows", data, columns: column, reading });
        if (result) progress.replaceWith(spread(result.sizes));
      } catch (error) {
        showError(trouble, error);
      }
      count.disabled = false;
    });
    place.append(make("p", {}, count), progress, trouble);
  } else if (found && !people && found.found) {
    place.append(make("p", { class: "hint" }, `${found.found[0].toUpperCase()}${found.found.slice(1)}.`));
  }
}
