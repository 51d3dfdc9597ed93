// Data and policy: a table, its columns, and the policy that says what may be published of it.

import { $, ask, choose, debounce, desk, folderOf, make, nameOf, roots, save, showError, tableFields, work } from "./studio.js";
import { columnForm } from "./column.js";
import { publishingForm } from "./publishing.js";

const state = { columns: [], content: {}, levels: {}, unconfirmed: {}, current: null, ...desk.get() };
const policy = $("policy");

// --- the policy's text is the one truth; everything else is drawn from it ---

function checked(answer) {
  Object.assign(state, { content: answer.content || state.content, levels: answer.levels, unconfirmed: answer.unconfirmed, valid: answer.valid });
  desk.set({ data: state.data, text: policy.value, base: state.base, path: state.path, valid: state.valid });
  const mark = $("policy-state");
  mark.textContent = answer.valid ? "valid" : "not valid yet";
  mark.className = `state ${answer.valid ? "yes" : "no"}`;
  showProblems(answer.error);
  drawColumns();
}

function showProblems(error) {
  const place = $("policy-problems");
  const problems = error?.details?.problems;
  if (!problems) {
    showError(place, error && { error });
    return;
  }
  place.replaceChildren(make("div", { class: "problem" }, make("ul", {}, ...problems.map((one) =>
    make("li", {},
      one.line ? make("button", { type: "button", class: "link", onclick: () => goToLine(one.line) }, `line ${one.line}`) : null,
      one.line ? " " : null, make("b", {}, one.path), one.path ? ": " : "", one.text)))));
}

function goToLine(line) {
  const lines = policy.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  policy.focus();
  policy.setSelectionRange(start, start + lines[line - 1].length);
  policy.scrollTop = Math.max(0, (line - 6) * parseFloat(getComputedStyle(policy).lineHeight));
}

let asked = 0;
async function check() {
  const mine = ++asked;
  try {
    const answer = await ask("/policy/check", { method: "POST", body: { text: policy.value, base: state.base } });
    if (mine !== asked) return;
    checked(answer);
    drawForms();
  } catch (error) {
    showError($("policy-problems"), error);
  }
}

// One after the other, each on the text that the one before has left: no change is lost to a faster one.
let queue = Promise.resolve();
function edit(changes, redraw = false) {
  queue = queue.then(() => change(changes, redraw));
  return queue;
}

async function change(changes, redraw) {
  const mine = ++asked;
  try {
    const before = policy.value;
    const answer = await ask("/policy/edit", { method: "POST", body: { text: before, base: state.base, changes } });
    if (policy.value !== before) { // somebody has written meanwhile
      await change(changes, redraw);
      return;
    }
    policy.value = answer.text;
    if (mine !== asked) { // an older text is being checked: check this one
      await check();
      return;
    }
    checked(answer);
    if (redraw) drawForms();
    else drawLevels();
  } catch (error) {
    showError($("policy-problems"), error);
  }
}

function setPolicy(text, path, base) {
  policy.value = text;
  state.path = path;
  state.base = base;
  $("policy-path").value = path || `${base}/${(state.data?.name || nameOf(state.data?.path || "policy")).replace(/\..*$/, "")}.yaml`;
  $("editor").hidden = false;
  state.current = null;
  return check();
}

// --- columns ---

function names() {
  const listed = Object.keys(state.content.attributes || {});
  return [...new Set([...state.columns.map((column) => column.name), ...listed])];
}

const attribute = (name) => {
  const said = (state.content.attributes || {})[name];
  return typeof said === "string" ? { role: said } : said || null;
};

function drawColumns() {
  const all = names();
  if (!all.includes(state.current)) state.current = all.find((name) => attribute(name) && attribute(name).role !== "drop") || all[0] || null;
  const roles = { quasi: "may be known", sensitive: "sensitive", drop: "dropped" };
  $("columns").replaceChildren(...all.map((name) => {
    const said = attribute(name);
    const role = said ? said.role || "quasi" : "drop";
    return make("li", {}, make("button", {
      type: "button", "aria-pressed": String(name === state.current), class: `column-${role}`,
      onclick: () => {
        state.current = name;
        drawColumns();
        drawColumn();
      },
    }, make("bdi", {}, name), make("small", {}, said ? roles[role] || role : "not listed"),
    state.unconfirmed[name] ? make("span", { class: "ask", title: "to be confirmed" }, "to confirm") : null));
  }));
  const rest = state.unconfirmed[""];
  if (rest) {
    $("columns").append(make("li", { class: "aside confirm" },
      make("p", {}, "Besides the columns, this was read off the data:"),
      ...rest.map((text) => make("p", {}, make("bdi", {}, text.replace(/^CONFIRM /, "")))),
      make("button", { type: "button", onclick: () => edit([{ confirm: "" }], true) }, "I confirm the rest")));
  }
}

function drawColumn() {
  const name = state.current;
  const place = $("column");
  if (name === null) {
    place.replaceChildren();
    return;
  }
  const known = state.columns.find((column) => column.name === name);
  columnForm(place, {
    name, known, said: attribute(name), levels: state.levels[name], asked: state.unconfirmed[name],
    changed: (content) => edit([{ place: ["attributes", name], content }]),
    confirm: () => edit([{ confirm: name }], true),
  });
}

function drawLevels() {
  const place = $("levels");
  if (place) place.replaceChildren(levelTable(state.levels[state.current]));
}

export function levelTable(levels) {
  if (!levels) return make("p", { class: "hint" }, "Its levels are shown when the policy is valid.");
  return make("table", { class: "levels" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "level"),
    make("th", { scope: "col", class: "number" }, "groups"), make("th", { scope: "col" }, "looks like"))),
  make("tbody", {}, ...levels.map((level, i) => make("tr", {}, make("th", { scope: "row" }, String(i)),
    make("td", { class: "number" }, level.groups.toLocaleString("en")),
    make("td", {}, level.labels.slice(0, 6).map((label) => (label === null ? "(missing)" : label)).join(" · ") + (level.groups > 6 ? " · …" : ""))))));
}

function drawForms() {
  drawColumn();
  publishingForm($("publishing"), {
    content: state.content, planned: desk.get().planned,
    changed: (changes, redraw) => edit(changes, redraw),
  });
}

// --- tables and files ---

tableFields(async (data) => {
  showError($("look-error"), null);
  try {
    const found = await work($("look-progress"), { kind: "draft", data });
    if (!found) return;
    state.data = data;
    state.columns = found.columns;
    $("table-said").textContent = `${data.name || nameOf(data.path)}: ${found.records.toLocaleString("en")} records, ${found.columns.length} columns.`;
    $("decisions").hidden = !found.decisions.length;
    $("decisions").querySelector("ol").replaceChildren(...found.decisions.map((one) =>
      make("li", {}, one.column ? make("b", {}, `${one.column}: `) : null, one.question)));
    const take = () => {
      desk.set({ draft: found.text });
      $("policy-said").textContent = "";
      return setPolicy(found.text, null, data.path ? folderOf(absolute(data.path)) : roots[0]);
    };
    const isOwn = policy.value && (state.path || policy.value !== desk.get().draft);
    if (!isOwn) await take();
    else { // what somebody has written is never replaced unasked
      await check();
      $("policy-said").replaceChildren("Your policy was kept. ", make("button", { type: "button", onclick: take }, "Replace it by a draft for this table"));
    }
  } catch (error) {
    showError($("look-error"), error);
  }
});

const absolute = (path) => (path.startsWith("/") ? path : `${roots[0]}/${path}`);

$("open-policy").addEventListener("click", async () => {
  const path = await choose("policy", "Open a policy");
  if (!path) return;
  showError($("look-error"), null);
  try {
    const opened = await ask(`/policy/open?path=${encodeURIComponent(path)}`);
    await setPolicy(opened.text, opened.path, opened.base);
    $("policy-said").textContent = `${nameOf(path)} is open.`;
  } catch (error) {
    showError($("look-error"), error);
  }
});

policy.addEventListener("input", debounce(check, 350));

$("save-policy").addEventListener("click", async () => {
  const path = $("policy-path").value.trim();
  const put = (overwrite) => ask("/policy/save", { method: "POST", body: { path, text: policy.value, overwrite } });
  try {
    const saved = await put(absolute(path) === state.path);
    state.path = saved.path;
    if (saved.base !== state.base) state.base = saved.base;
    $("policy-said").textContent = `Saved as ${saved.path}.`;
    await check();
  } catch (error) {
    showError($("policy-problems"), error);
  }
});
$("download-policy").addEventListener("click", () => save(nameOf($("policy-path").value) || "policy.yaml", policy.value, "application/yaml"));

if (state.text) {
  if (state.data?.path) $("path").value = state.data.path;
  setPolicy(state.text, state.path, state.base || roots[0]);
}
