// Audit: which columns, then what they give away.

import { $, desk, make, showError, tableFields, work } from "./studio.js";
import { readingForm } from "./reading.js";

let data = null;
const number = (value, digits = 3) => (value === null ? "–" : Number(value).toLocaleString("en", { maximumSignificantDigits: digits }));
const share = (value) => `${(100 * value).toLocaleString("en", { maximumFractionDigits: 1 })}%`;

const reading = readingForm({ data: () => data, again: () => look() });

async function failed(error) {
  showError($("look-error"), error);
  await reading.help(error.error?.code);
}

async function look() {
  for (const id of ["look-error", "run-error"]) showError($(id), null);
  $("result").replaceChildren();
  $("audit").hidden = true;
  try {
    const found = await work($("look-progress"), { kind: "columns", data, reading: reading.said() });
    if (!found) return;
    reading.done();
    $("roles").replaceChildren(...found.columns.map((column, i) => {
      const choice = (value, text) => make("td", {},
        make("input", { type: "radio", name: `role-${i}`, value, checked: value === "out", "aria-label": `${column.name}: ${text}` }));
      return make("tr", { "data-column": column.name }, make("th", { scope: "row" }, make("bdi", {}, column.name)),
        choice("quasi", "others may know it"), choice("sensitive", "others want to know it"), choice("out", "not looked at"));
    }));
    for (const id of ["people", "weights"]) {
      $(id).replaceChildren(make("option", { value: "" }, id === "people" ? "each row is a person" : "each for one"),
        ...found.columns.map((column) => make("option", { value: column.name }, column.name)));
    }
    $("audit").hidden = false;
  } catch (error) {
    await failed(error);
  }
}

tableFields((chosen) => {
  if (chosen.path !== data?.path || chosen.upload !== data?.upload) reading.clear();
  data = chosen;
  return look();
});

function columns(role) {
  return [...$("roles").children].filter((row) => row.querySelector("input:checked").value === role).map((row) => row.dataset.column);
}

const lines = (id) => $(id).value.split("\n").map((line) => line.trim()).filter(Boolean);
const listed = (id) => $(id).value.split(",").map((text) => text.trim()).filter(Boolean);

$("audit").addEventListener("submit", async (event) => {
  event.preventDefault();
  showError($("run-error"), null);
  $("result").replaceChildren();
  const rate = $("rate").value.trim();
  try {
    const found = await work($("run-progress"), {
      kind: "audit", data, reading: reading.said(), quasi: columns("quasi"), sensitive: columns("sensitive"),
      adversaries: lines("adversaries"), sampling_rate: rate, show_values: $("values").checked,
      people: $("people").value ? [$("people").value] : [], weights: $("weights").value, population: $("population").value.trim(),
      require: listed("require"), threshold: $("threshold").value, worst: $("worst").value,
      domains: lines("domains"), ordered: listed("ordered"), others_as_quasi: $("others").checked,
    });
    if (found) show(found);
  } catch (error) {
    if (error.error?.code === "data-encoding") await failed(error); // further down than the columns' names
    else showError($("run-error"), error);
  }
});

function show(found) {
  const fact = (name, value, note) => make("div", {}, make("dt", {}, name), make("dd", {}, value, note ? make("small", {}, note) : null));
  const facts = make("dl", { class: "facts" },
    fact("records", found.records.toLocaleString("en")),
    fact("groups", found.groups.toLocaleString("en"), "of people who look alike"),
    fact("k", found.k.toLocaleString("en"), "the smallest group"),
    fact("alone", found.alone.toLocaleString("en"), `${share(found.alone / found.records)} of the records`),
    fact("ℓ", found.l === null ? "–" : number(found.l), "different values, at least"),
    fact("t", found.t === null ? "–" : number(found.t), "distance from the whole, at most"),
    ...found.belief_ratio.map((one) => fact("belief ratio", one.ratio === "inf" ? "∞" : number(one.ratio), one.adversary)));
  if (found.people) {
    facts.append(fact("people", found.people.people.toLocaleString("en"), "whose rows they are"),
      fact("k of people", found.people.k.toLocaleString("en"), "in the smallest group"));
  }
  const required = found.required.map((one) => make("li", { class: one.holds ? "yes" : "no" }, make("b", {}, one.holds ? "holds: " : "fails: "),
    `${one.rule} = ${number(one.limit)}`, one.column ? " of " : "", one.column ? make("bdi", {}, one.column) : "", `; the table has ${number(one.found)}`));
  const frame = make("iframe", { sandbox: "", title: "The report of the audit", src: `/jobs/${found.id}/report` });
  $("result").replaceChildren(make("section", {},
    make("div", { class: "row head" }, make("h2", {}, "What it gives away"), make("span", { class: "grow" }),
      make("a", { class: "button", href: `/jobs/${found.id}/report?save`, download: true }, "Save the report")),
    make("p", {}, found.alone
      ? `${found.alone.toLocaleString("en")} people are like nobody else in the table: whoever knows these columns of them finds them.`
      : `Nobody is alone: whoever looks for a person finds a group of ${found.k.toLocaleString("en")} or more.`),
    facts, required.length ? make("ul", { class: "checks" }, ...required) : null, make("p", { class: "keep" }, "The report is as confidential as the table is."), frame));
}

// The table that this window works on, read as it is read there.
const known = desk.get();
if (known.data?.path) {
  data = known.data;
  $("path").value = data.path;
  reading.show(data.reading);
}
