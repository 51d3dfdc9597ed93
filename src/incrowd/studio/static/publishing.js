// How the table is published: the mechanism, what it promises, and the ledger.

import { field, keyField, select, within } from "./fields.js";
import { make, measures } from "./studio.js";

const LEDGER = [["path", "file"], ["dataset", "dataset"], ["epsilon", "ε, all in all"], ["delta", "δ"]];
const RULES = { sum: "added up", order: "composed in the order they are made", unit: "in units" };
const RELATIONS = { "add/remove": "adding or removing a record", "replace-one": "replacing a record" };

const without = (content) => Object.fromEntries(Object.entries(content).filter(([, value]) => value !== undefined && value !== ""));

/** The section with one key changed; one within another is written with a point. */
function changedAt(content, key, value) {
  const [first, ...rest] = key.split(".");
  if (!rest.length) return { ...content, [first]: value };
  const inner = without(changedAt(content[first] ?? {}, rest.join("."), value));
  return { ...content, [first]: Object.keys(inner).length ? inner : undefined };
}

const unfolded = new Set();  // mechanisms of which more was asked for

export function publishingForm(place, { content, planned, changed }) {
  const mechanisms = JSON.parse(place.dataset.mechanisms);  // what the registry says of each
  const release = content.release || {};
  const put = (next, redraw = false) => changed([{ place: ["release"], content: without(next) }], redraw);
  place.onsubmit = (event) => event.preventDefault();
  place.replaceChildren();

  if (planned) {
    const said = Object.entries(planned).filter(([key]) => key !== "mechanism").map(([key, value]) => `${key} ${Number(Number(value).toPrecision(4))}`).join(", ");
    place.append(make("div", { class: "aside row" }, make("p", { class: "grow" }, `Planned: ${mechanisms[planned.mechanism].title.toLowerCase()}, ${said}.`),
      make("button", { type: "button", onclick: () => put(planned, true) }, "Use the plan")));
  }
  place.append(make("div", { class: "row" },
    field("Title", content.title, (value) => changed([{ place: ["title"], content: value || null }]), "field grow"),
    select("Mechanism", Object.fromEntries(Object.entries(mechanisms).map(([key, { title }]) => [key, title])), release.mechanism,
      (mechanism) => put({ mechanism, ...mechanisms[mechanism].start }, true)),
    select("Output", JSON.parse(place.dataset.formats), release.output || "parquet", (output) => put({ ...release, output }, true))));

  const kind = mechanisms[release.mechanism];
  if (kind) {
    place.append(make("p", { class: "hint" }, kind.summary));
    const shown = (one) => keyField(one, release, (value) => put(changedAt(release, one.key, value), true));
    const [first, more] = [kind.fields.filter((one) => !one.more), kind.fields.filter((one) => one.more)];
    place.append(make("div", { class: "row" }, ...first.map(shown)));
    if (more.length) {
      const open = more.some((one) => within(release, one.key) !== undefined) || unfolded.has(release.mechanism);
      const rest = make("details", { open }, make("summary", {}, "More of the mechanism"), make("div", { class: "row" }, ...more.map(shown)));
      rest.addEventListener("toggle", () => (rest.open ? unfolded.add(release.mechanism) : unfolded.delete(release.mechanism)));
      place.append(rest);
    }
  }
  if (kind?.editor) place.append(...EDITORS[kind.editor](release, put));

  const ledger = content.ledger || {};
  const account = (changes) => {
    const next = without({ ...ledger, ...changes });
    changed([{ place: ["ledger"], content: Object.keys(next).length ? next : null }], true);
  };
  place.append(make("details", { open: Boolean(content.ledger) }, make("summary", {}, "Ledger: keep account of all releases"),
    make("div", { class: "row" }, ...LEDGER.map(([key, label]) => field(label, ledger[key], (value) => account({ [key]: value }),
      key === "path" || key === "dataset" ? "field" : "field short"))),
    content.ledger ? make("div", { class: "row" },
      select("Releases are counted", RULES, ledger.rule || "sum",
        (rule) => account({ rule: rule === "sum" ? undefined : rule, unit: rule === "unit" ? ledger.unit || "k=17,beta=0.3" : undefined })),
      ledger.rule === "unit" ? field("one unit", ledger.unit, (unit) => account({ unit }), "field") : null,
      select("The budget is about", RELATIONS, ledger.relation || "add/remove",
        (relation) => account({ relation: relation === "add/remove" ? undefined : relation }))) : null));
}

const EDITORS = { requirements };

function requirements(release, put) {
  const listed = (thing) => (Array.isArray(thing) ? thing : thing ? [thing] : []);
  const require = listed(release.require);
  const feared = listed(release.adversaries);
  const plain = (key) => require.findIndex((one) => key in one && Object.keys(one).length === 1);
  const demand = (key, value) => {
    const next = require.filter((_, i) => i !== plain(key));
    if (value) next.push({ [key]: value });
    put({ ...release, require: next.length ? next : undefined }, true);
  };
  const adversary = (at, changes) => {
    const next = feared.map((one, i) => (i === at ? without({ ...one, ...changes }) : one));
    put({ ...release, adversaries: next }, true);
  };
  return [
    make("div", { class: "row" },
      field("k, people in every group", require[plain("k")]?.k, (value) => demand("k", value)),
      field("ℓ, different values in every group", require[plain("l")]?.l, (value) => demand("l", value)),
      select("Best is the least", measures, release.minimise || "loss", (minimise) => put({ ...release, minimise }, true))),
    make("fieldset", { class: "plain" }, make("legend", {}, "Who will read it"),
      ...feared.map((one, at) => make("div", { class: "row" },
        field("called", one.name, (name) => adversary(at, { name }), "field grow"),
        field("belief ratio", one.belief_ratio, (value) => adversary(at, { belief_ratio: value })),
        field("stubbornness", one.stubbornness, (value) => adversary(at, { stubbornness: value })),
        field("knows", one.knows, (value) => adversary(at, { knows: value })),
        make("button", {
          type: "button", "aria-label": `Remove ${one.name || `adversary ${at + 1}`}`,
          onclick: () => {
            const next = feared.filter((_, i) => i !== at);
            put({ ...release, adversaries: next.length ? next : undefined }, true);
          },
        }, "Remove"))),
      make("p", {}, make("button", {
        type: "button",
        onclick: () => put({ ...release, adversaries: [...feared, { name: `adversary ${feared.length + 1}`, belief_ratio: "5", stubbornness: "1000" }] }, true),
      }, "Add an adversary"), " ", make("small", {}, "Priors, shapes, predicates, whom it is about (for), what else is known (knowing, knows_not) and k over sets of columns are written in the policy itself: they name columns and values."))),
  ];
}
