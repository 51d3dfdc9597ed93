// One column of the policy: its role, its values, and how they become coarser.

import { select } from "./fields.js";
import { make } from "./studio.js";
import { TreeEditor, fromPolicy } from "./tree.js";
import { cutEditor, firstCuts } from "./cuts.js";
import { levelTable } from "./data.js";

const ROLES = { quasi: "others may know it", sensitive: "others want to know it", drop: "never published" };
const TYPES = ["text", "integer", "number", "date", "boolean"];

// Each way to say something: what it is called, and its fields as [key, kind of field, label, is it optional].
const DOMAINS = {
  none: ["as its hierarchy lists them", []],
  list: ["a list of values", [["", "lines", "One value on each line"]]],
  range: ["from … to …", [["from", "text", "from"], ["to", "text", "to"]]],
  bins: ["bins of one width", [["from", "text", "from"], ["to", "text", "to"], ["step", "text", "width"]]],
  cuts: ["bins between cuts", [["cuts", "list", "cuts, with commas between; .inf for an open end"]]],
  digits: ["codes of so many digits", [["digits", "text", "digits"]]],
  file: ["listed in a file", [["file", "text", "file, beside the policy"], ["column", "text", "column", true]]],
};
const ENDS = [["top", "text", "all from this on together", true], ["bottom", "text", "all up to this together", true]];
const HIERARCHIES = {
  none: ["as they are, then all alike", []],
  widths: ["intervals by widths", [["widths", "list", "width at each level, each a multiple of the one before"], ["start", "text", "an interval begins at", true], ...ENDS]],
  cuts: ["intervals by cuts", [["cuts", "grid", "cuts of each level, one level on each line"], ...ENDS]],
  dates: ["periods", [["dates", "list", "week, month, quarter, year, decade"]]],
  ends: ["ends together", ENDS],
  mask: ["masked codes", [["mask", "list", "characters hidden at each level"], ["character", "text", "shown instead", true]]],
  ordinal: ["neighbours of the list", [["ordinal", "list", "how many together at each level"]]],
  taxonomy: ["a taxonomy", []],
  file: ["in a file", [["file", "text", "file, beside the policy"]]],
};

function kindOfDomain(said) {
  if (said === undefined || said === null) return "none";
  if (Array.isArray(said)) return "list";
  if ("step" in said) return "bins";
  return ["from", "cuts", "digits", "file"].map((key, i) => key in said && ["range", "cuts", "digits", "file"][i]).find(Boolean) || "none";
}

function kindOfHierarchy(said) {
  if (!said) return "none";
  return ["widths", "cuts", "dates", "mask", "ordinal", "taxonomy", "file"].find((key) => key in said) || "ends";
}

const commas = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);
const WRITE = {
  text: (value) => (value === undefined || value === null ? "" : String(value)),
  list: (value) => (Array.isArray(value) ? value.join(", ") : WRITE.text(value)),
  lines: (value) => (Array.isArray(value) ? value.join("\n") : ""),
  map: (value) => Object.entries(value || {}).map(([code, label]) => `${code} = ${label}`).join("\n"),
  grid: (value) => (Array.isArray(value) ? (Array.isArray(value[0]) ? value : [value]).map((line) => line.join(", ")).join("\n") : ""),
};
const READ = {
  text: (text) => text.trim(),
  list: (text) => commas(text),
  lines: (text) => text.split("\n").map((line) => line.trim()).filter(Boolean),
  grid: (text) => text.split("\n").filter((line) => line.trim()).map(commas),
  map: (text) => Object.fromEntries(text.split("\n").map((line) => line.split("=")).filter((parts) => parts.length > 1 && parts[0].trim())
    .map(([code, ...label]) => [code.trim(), label.join("=").trim()])),
};
const given = (thing) => (Object.keys(thing).length ? thing : undefined);

let count = 0;
function field(kind, label, value, changed) {
  const id = `v${++count}`;
  const multi = kind === "lines" || kind === "grid" || kind === "map";
  const input = multi
    ? make("textarea", { id, rows: String(Math.min(8, 2 + (value || "").split("\n").length)), spellcheck: "false" })
    : make("input", { type: "text", id, autocomplete: "off", spellcheck: "false" });
  input.value = value;
  input.addEventListener("change", changed);
  return [make("div", { class: multi ? "field wide-field" : "field" }, make("label", { for: id }, label), input), input];
}

/** Fields for one of several ways to say something. `read` gives what the policy would say. */
function ways(place, title, kinds, kind, said, changed) {
  const inputs = [];
  const fields = make("div", { class: "row" });
  const draw = (which, from) => {
    inputs.length = 0;
    fields.replaceChildren();
    for (const [key, how, label, optional] of kinds[which][1]) {
      const value = key === "" ? from : from?.[key];
      const [element, input] = field(how, label, WRITE[how](value), () => changed(read()));
      inputs.push({ key, how, optional, input });
      fields.append(element);
    }
  };
  const read = () => {
    if (kind === "none") return undefined;
    const content = {};
    for (const { key, how, optional, input } of inputs) {
      const value = READ[how](input.value);
      if (optional && !value.length) continue;
      if (key === "") return value;
      content[key] = value;
    }
    return content;
  };
  const options = Object.fromEntries(Object.entries(kinds).map(([key, [text]]) => [key, text]));
  place.append(select(title, options, kind, (chosen) => {
    kind = chosen;
    draw(kind, kind === "list" ? said?.taxonomy : undefined);
    changed(read(), kind);
  }), fields);
  draw(kind, said);
  return { show: (from) => draw(kind, from) };
}

const MOST_LABELLED = 60;

/** What values are published as: a label beside each value of a list, or the code book that has them. */
function labelFields(content, put) {
  const said = content.labels;
  const values = Array.isArray(content.domain) ? content.domain : [];
  const place = make("details", { open: Boolean(said) }, make("summary", {}, "Labels: what values are published as"));
  if (said && typeof said === "object" && "file" in said) {
    const [element, input] = field("text", "They stand in the code book", WRITE.text(said.file), () => put("labels", READ.text(input.value) ? { ...said, file: READ.text(input.value) } : undefined));
    place.append(element);
    return place;
  }
  const codes = [...new Set([...values, ...Object.keys(said || {})])];
  if (!codes.length || codes.length > MOST_LABELLED) {
    const [element, input] = field("map", "One on each line, like this: 1 = female", WRITE.map(said), () => put("labels", given(READ.map(input.value))));
    place.append(element);
    return place;
  }
  const labels = { ...(said || {}) };
  place.append(make("table", { class: "labels" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "value"), make("th", { scope: "col" }, "published as"))),
    make("tbody", {}, ...codes.map((code) => {
      const input = make("input", { type: "text", value: labels[code] ?? "", placeholder: String(code), "aria-label": `Label of ${code}`, autocomplete: "off" });
      input.addEventListener("change", () => {
        if (input.value.trim()) labels[code] = input.value.trim();
        else delete labels[code];
        put("labels", given(labels) && { ...labels });
      });
      return make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, code)), make("td", {}, input));
    }))));
  return place;
}

export function columnForm(place, { name, known, said, levels, asked, changed, confirm }) {
  const content = { ...(said || {}) };
  const write = () => changed(Object.fromEntries(Object.entries(content).filter(([, value]) => value !== undefined && value !== "")));
  const put = (key, value) => {
    content[key] = value;
    write();
  };
  place.replaceChildren(make("h2", { id: "column-title" }, make("bdi", {}, name)));
  if (known) {
    const bars = make("div", { class: "column-bars" });
    bars.innerHTML = known.bars; // drawn by the service, every text in it escaped
    place.append(make("p", { class: "why" }, `${known.why[0]?.toUpperCase() || ""}${known.why.slice(1)}. `, make("span", { class: "keep" }, "True numbers: for your eyes only.")), bars);
    for (const question of known.questions) place.append(make("p", { class: "aside" }, question));
  }
  if (asked) {
    place.append(make("div", { class: "aside confirm" },
      make("p", {}, "Parts of this were read off the data. No guarantee covers them until you say, from what you know of the survey, that they are right."),
      make("button", { type: "button", onclick: confirm }, "I confirm what it says")));
  }

  const form = make("form", {});
  form.addEventListener("submit", (event) => event.preventDefault());
  const role = content.role || (said ? "quasi" : "drop");
  form.append(make("fieldset", { class: "solve" }, make("legend", {}, "Role"), ...Object.entries(ROLES).map(([key, text]) => {
    const input = make("input", { type: "radio", name: "role", value: key, checked: key === role });
    input.addEventListener("change", () => {
      put("role", key);
      columnForm(place, { name, known, said: { ...content }, levels, asked, changed, confirm });
    });
    return make("label", {}, input, ` ${text}`);
  })));
  if (role !== "drop") {
    const again = () => columnForm(place, { name, known, said: { ...content }, levels, asked, changed, confirm });
    form.append(make("div", { class: "row" },
      select("Type", Object.fromEntries(TYPES.map((one) => [one, one])), content.type || "text", (value) => {
        put("type", value);
        again();
      }),
      select("Missing values", { refuse: "are an error", keep: "are a value of their own", drop: "drop their record" }, content.missing || "refuse",
        (value) => put("missing", value === "refuse" ? undefined : value)),
      (() => {
        const [element, input] = field("text", "Other values are called", WRITE.text(content.other), () => put("other", READ.text(input.value) || undefined));
        return element;
      })()));
    if (["date", "integer", "number"].includes(content.type)) {
      const how = content.type === "date" ? "Dates are written as, dd.mm.yyyy say" : "Numbers are written as, 1.234,5 say";
      const [format, input] = field("text", how, WRITE.text(content.format), () => put("format", READ.text(input.value) || undefined));
      const [codes, lines] = field("map", "Codes among them that are none, like this: -9 = refused", WRITE.map(content.codes), () => put("codes", given(READ.map(lines.value))));
      form.append(make("div", { class: "row" }, format), make("details", { open: Boolean(content.codes) }, make("summary", {}, "Codes among them"), codes));
    } else form.append(labelFields(content, put));

    const values = make("fieldset", { class: "plain" }, make("legend", {}, "Values it may have"));
    const inValues = ways(values, "Given as", DOMAINS, kindOfDomain(content.domain), content.domain, (value) => {
      put("domain", value);
      if (!content.hierarchy?.taxonomy) showCuts();
    });
    form.append(values);

    const coarser = make("fieldset", { class: "plain" }, make("legend", {}, "How they become coarser"));
    const treePlace = make("div", { class: "tree-place" });
    const showTree = (nodes) => new TreeEditor(treePlace, nodes, (tree) => put("hierarchy", { taxonomy: tree }));
    const whole = content.type === "integer";
    const showCuts = () => {
      treePlace.replaceChildren();
      const own = Array.isArray(content.hierarchy?.cuts) ? content.hierarchy.cuts : [];
      const bins = content.domain && !Array.isArray(content.domain) && Array.isArray(content.domain.cuts) ? content.domain.cuts : null;
      const grid = [...(bins ? [bins] : []), ...(own.length && !Array.isArray(own[0]) ? [own] : own)];
      if (!known?.ranges.length || !grid.length || !grid[0].length) return;
      cutEditor(treePlace, {
        ranges: known.ranges, grid, whole,
        changed: (next) => {
          const coarse = bins ? next.slice(1) : next;
          if (bins) content.domain = { ...content.domain, cuts: next[0] };
          if (coarse.length || content.hierarchy) content.hierarchy = coarse.length ? { ...content.hierarchy, cuts: coarse } : undefined;
          inValues.show(content.domain);
          if (content.hierarchy) inCoarser.show(content.hierarchy);
          write();
        },
      });
    };
    const inCoarser = ways(coarser, "Given as", HIERARCHIES, kindOfHierarchy(content.hierarchy), content.hierarchy, (value, kind) => {
      treePlace.replaceChildren();
      if (kind === "taxonomy") {
        const start = content.hierarchy?.taxonomy || (Array.isArray(content.domain) ? content.domain : known?.values) || [];
        showTree(fromPolicy(start));
        if (start.length || Object.keys(start).length) put("hierarchy", { taxonomy: start });
        return;
      }
      const begun = kind === "cuts" && !value.cuts?.length && content.domain ? firstCuts(content.domain.from, content.domain.to, whole) : null;
      put("hierarchy", begun ? { cuts: begun } : value);
      if (begun) again();
      else showCuts();
    });
    if (content.hierarchy?.taxonomy) showTree(fromPolicy(content.hierarchy.taxonomy));
    else showCuts();
    coarser.append(treePlace);
    form.append(coarser);

    const heights = levels ? levels.length : 0;
    const options = { "": "chosen when it is published" };
    for (let i = 0; i < Math.max(heights, Number(content.level || 0) + 1); i += 1) options[String(i)] = `level ${i}`;
    form.append(make("div", { class: "row" }, select("Published at", options, content.level === undefined ? "" : String(content.level),
      (value) => put("level", value === "" ? undefined : value))));
    form.append(make("div", { id: "levels", class: "wide" }, levelTable(levels)));
  }
  place.append(form);
}
