// Table and policy: a table, its columns, and the policy that says what may be published of it.

import { $, ask, choose, debounce, desk, folderOf, make, nameOf, roots, save, showError, tableFields, work } from "./studio.js";
import { columnForm } from "./column.js";
import { columnTable } from "./columns.js";
import { peopleForm } from "./people.js";
import { publishingForm } from "./publishing.js";
import { readingForm } from "./reading.js";

const state = { columns: [], people: null, content: {}, levels: {}, unconfirmed: {}, current: null, ...desk.get() };
const policy = $("policy");

// --- the policy's text is the one truth; everything else is drawn from it ---

function checked(answer) {
  Object.assign(state, { content: answer.content || state.content, levels: answer.levels, unconfirmed: answer.unconfirmed, valid: answer.valid });
  desk.set({ data: state.data, text: policy.value, base: state.base, path: state.path, valid: state.valid, open: Object.keys(state.unconfirmed).length, named: Boolean(state.content.data?.path) });
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
  $("policy-fold").open = true;
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

const listed = columnTable({
  chosen: (name) => {
    state.current = name;
    drawColumns();
    drawColumn();
  },
  confirm: (names) => edit(names.map((name) => ({ confirm: name })), true),
});

function drawColumns() {
  const all = names();
  if (!all.includes(state.current)) state.current = all.find((name) => attribute(name) && attribute(name).role !== "drop") || all[0] || null;
  listed.draw(all.map((name) => {
    const said = attribute(name);
    return {
      name, known: state.columns.find((column) => column.name === name), listed: Boolean(said),
      role: said ? said.role || "quasi" : "drop", open: Boolean(state.unconfirmed[name]), current: name === state.current,
    };
  }));
  const rest = state.unconfirmed[""];
  $("rest").replaceChildren(...(rest ? [make("div", { class: "aside confirm" },
    make("p", {}, "Besides the columns, this was read off the data:"),
    ...rest.map((text) => make("p", {}, make("bdi", {}, text.replace(/^CONFIRM /, "")))),
    make("button", { type: "button", onclick: () => edit([{ confirm: "" }], true) }, "I confirm the rest"))] : []));
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
  peopleForm($("people"), {
    content: state.content, names: names(), found: state.people, data: state.data,
    changed: (changes) => edit(changes, true),
  });
  publishingForm($("publishing"), {
    content: state.content, planned: desk.get().planned,
    changed: (changes, redraw) => edit(changes, redraw),
  });
}

// --- tables and files ---

const tableOf = (data) => JSON.stringify([data?.path, data?.upload, data?.reading]);

/** What was found in a table, and the draft that comes of it, or the policy that is kept. */
async function taken(data, found, kept) {
  state.data = data;
  state.columns = found.columns;
  state.people = found.people;
  $("table-said").textContent = `${data.name || nameOf(data.path)}: ${found.records.toLocaleString("en")} records, ${found.columns.length} columns.`;
  $("decisions").hidden = !found.decisions.length;
  $("decisions").querySelector("ol").replaceChildren(...found.decisions.map((one) =>
    make("li", {}, one.column ? make("b", {}, `${one.column}: `) : null, one.question)));
  desk.set({ data, looked: { id: found.id, of: tableOf(data) } });
  const take = () => {
    desk.set({ draft: found.text });
    $("policy-said").textContent = "";
    return setPolicy(found.text, null, data.path ? folderOf(absolute(data.path)) : roots[0]);
  };
  const isOwn = policy.value && (state.path || policy.value !== desk.get().draft);
  if (!isOwn) await take();
  else { // what somebody has written is never replaced unasked
    await check();
    if (!kept) $("policy-said").replaceChildren("Your policy was kept. ", make("button", { type: "button", onclick: take }, "Replace it by a draft for this table"));
  }
}

/** Look at a table, as the form says that it is read. */
async function look(data, kept = false) {
  showError($("look-error"), null);
  const how = reading.said();
  try {
    const found = await work($("look-progress"), { kind: "draft", data, base: state.base, reading: how });
    if (!found) return;
    reading.done();
    await taken({ ...data, reading: how }, found, kept);
    await reading.write((changes) => edit(changes, true), state.content);
  } catch (error) {
    showError($("look-error"), error);
    if (error.error?.code?.startsWith("data-")) await reading.help(error.error.code);
  }
}

const reading = readingForm({ data: () => state.asked || state.data, base: () => state.base, again: () => look(state.asked || state.data) });
tableFields(async (data) => {
  const { path, upload } = state.asked || state.data || {};
  if (data.path !== path || data.upload !== upload) reading.clear();
  state.asked = data;
  await look(data);
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
    const named = state.content.data?.path;
    if (!$("path").value && typeof named === "string") $("path").value = named.startsWith("/") ? named : `${opened.base}/${named}`;
  } catch (error) {
    showError($("look-error"), error);
  }
});

// Remarks above a policy are kept, but it opens where it begins.
$("policy-fold").addEventListener("toggle", () => {
  if (document.activeElement === policy) return; // at a line that somebody has asked for
  const first = policy.value.split("\n").findIndex((line) => line.trim() && !line.startsWith("#"));
  policy.scrollTop = Math.max(0, first) * parseFloat(getComputedStyle(policy).lineHeight);
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

// What this window was working on before is drawn again.
if (state.data) {
  if (state.data.path) $("path").value = state.data.path;
  reading.show(state.data.reading);
}
if (state.text) await setPolicy(state.text, state.path, state.base || roots[0]);
if (state.data) {
  if (!state.data.reading) reading.show(state.content.data);
  const before = state.looked?.of === tableOf(state.data) ? await ask(`/jobs/${state.looked.id}`).catch(() => null) : null;
  if (before?.state === "done") await taken(state.data, { ...before.result, id: before.id }, true);
  else await look(state.data, true);
}
