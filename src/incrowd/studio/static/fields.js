// Fields of forms: a text, a choice, and a key of a mechanism as the registry says that a form shows it.

import { make } from "./studio.js";

let count = 0;

/** A text; without `changed` it is only shown. */
export function field(label, value, changed, cls = "field short") {
  const id = `p${++count}`;
  const input = make("input", { type: "text", id, autocomplete: "off", spellcheck: "false", disabled: !changed });
  input.value = value === undefined || value === null ? "" : String(value);
  if (changed) input.addEventListener("change", () => changed(input.value.trim()));
  return make("div", { class: cls }, make("label", { for: id }, label), input);
}

export function select(label, options, value, changed) {
  const id = `f${++count}`;
  const input = make("select", { id }, ...Object.entries(options).map(([key, text]) => make("option", { value: key, selected: key === value }, text)));
  input.addEventListener("change", () => changed(input.value));
  return make("div", { class: "field" }, make("label", { for: id }, label), input);
}

/** What a key says; one within another is written with a point: choose.how. */
export const within = (content, key) => key.split(".").reduce((here, part) => (here ?? {})[part], content);

// Lists of names: commas within one, semicolons between them.
export const written = (lists) => (lists ?? []).map((names) => [names].flat().join(", ")).join("; ");
export const parsed = (text) => (text ? text.split(";").map((part) => part.split(",").map((name) => name.trim()).filter(Boolean)) : undefined);

/** A key of the mechanism. What is usual is left unsaid. */
export function keyField({ key, label, lists, choices, usual }, release, changed) {
  const value = lists ? written(release[key]) : within(release, key);
  const said = Object.keys(choices);
  if (!said.length && value !== null && typeof value === "object") return field(label, "as the policy's text says", null);
  if (!said.length) return field(label, value, (text) => changed(lists ? parsed(text) : text || undefined), lists ? "field grow" : "field short");
  const now = value === undefined || value === null ? usual : String(value);
  return select(label, said.includes(now) ? choices : { ...choices, [now]: now }, now, (one) => changed(one === usual ? undefined : one));
}
