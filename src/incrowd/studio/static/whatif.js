// What if: the table is counted once and kept for this page; each move is a rehearsal on it, and a point in the picture.

import { keyField, parsed, within as at, written } from "./fields.js";
import { $, ask, debounce, desk, emptyState, fill, make, nameOf, showError, work } from "./studio.js";

const mechanisms = JSON.parse($("whatif").dataset.mechanisms);
const NUMBERS = new Set(["epsilon", "delta", "k", "beta", "rho", "suppression", "selection_epsilon", "rate", "share"]);
const SLIDERS = { epsilon: [0.05, 20], k: [2, 1000] };
const SLOW = 4000; // milliseconds after which a move may be stopped

const { data, text, path, base, valid } = desk.get();
let kept = null; // the job that keeps the table
let levels = {}; // of each column: what it becomes at each level
let content = null; // the policy as it is after the moves
let edited = text; // the policy after the moves
let changes = []; // the moves, as edits of the policy's text
let points = [];
let now = -1;
let asking = 0;
let trying = 0;

// --- edits of the policy ---

const same = (one, two) => one.length === two.length && one.every((part, i) => part === two[i]);
const within = (long, short) => long.length > short.length && short.every((part, i) => part === long[i]);
/** These edits after those: what is edited again, or lies within what is, does not stay. */
function after(first, next) {
  const kept = first.filter((one) => !next.some((other) => same(one.place, other.place) || within(one.place, other.place)));
  return [...kept, ...next];
}

const asked = (more) => ({ text, base, data, changes, ...more });
const post = (where, body, signal) => ask(`/whatif/${kept}${where}`, { method: "POST", body, signal });

// --- moves ---

async function move(next, words) {
  const mine = ++asking;
  trying += 1;
  const before = changes;
  changes = next;
  $("moved").textContent = words;
  $("plot").setAttribute("aria-busy", "true");
  $("seen").setAttribute("aria-busy", "true");
  showError($("move-error"), null);
  const slow = setTimeout(() => ($("stop-move").hidden = false), SLOW);
  try {
    const found = await post("", asked({}));
    if (mine !== asking) return;
    content = found.content;
    edited = found.text;
    fill($("seen"), found.html);
    points.push({ ...found.point, words, changes: next, shown: true });
    now = points.length - 1;
    draw();
    controls(found.levels);
    $("whatif-status").textContent = `${words}: score ${Math.round(1000 * found.point.score)} of 1000`;
  } catch (error) {
    if (mine !== asking || error.error?.code === "request-refused") return;
    if (error.error?.code === "not-found") {
      await open();
      return;
    }
    // What cannot be done is said; the policy stays as it was before.
    $("seen").setAttribute("aria-busy", "false");
    $("plot").setAttribute("aria-busy", "false");
    showError($("move-error"), error);
    changes = now >= 0 ? points[now].changes : before;
  } finally {
    clearTimeout(slow);
    if (mine === asking) $("stop-move").hidden = true;
    $("undo").disabled = !changes.length;
    $("write").disabled = !changes.length;
  }
}

const edit = (place, value, words) => move(after(changes, [{ place, content: value }]), words);
const later = debounce(edit, 250);

async function draw() {
  const marked = points.map((point, i) => ({ ...point, changes: undefined, key: String(i), name: i === now ? "now" : "" }));
  fill($("plot"), await ask(`/whatif/${kept}/plot`, { method: "POST", body: { points: marked } }).catch(() => ""));
  for (const dot of $("plot").querySelectorAll("[data-dot]")) {
    const go = () => {
      const point = points[Number(dot.dataset.dot)];
      move(point.changes, point.words);
    };
    dot.addEventListener("click", go);
    dot.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      go();
    });
  }
}

/** One after the other, until all are tried or something is moved. */
async function tryAround() {
  const mine = ++trying;
  const from = changes;
  $("around").disabled = true;
  try {
    for (let number = 0, of = 1; number < of && mine === trying; number += 1) {
      const found = await post("/around", asked({ number, changes: from }));
      of = found.of;
      $("moved").textContent = `Trying what lies around: ${number + 1} of ${of}`;
      if (found.score !== null && mine === trying) {
        points.push({ epsilon: found.epsilon, score: found.score, mechanism: found.mechanism, words: found.words, changes: after(from, found.changes) });
        if (points.length > 300) points = points.slice(-300);
        if (number % 4 === 3 || number === of - 1) await draw();
      }
    }
    if (mine === trying) $("moved").textContent = "Point at a dot to see what it is, click it to go there.";
  } catch (error) {
    if (mine === trying && error.error?.code !== "request-refused") showError($("move-error"), error);
  }
  $("around").disabled = false;
}

// --- the form ---

const short = (value) => (value < 1e-3 ? value.toExponential(1).replace(".0", "") : String(Number(value.toPrecision(3))));

function number(id, label, value, range, changed) {
  const box = make("input", { type: "text", id, inputmode: "decimal", autocomplete: "off", spellcheck: "false" });
  box.value = value ?? "";
  const field = make("div", { class: range ? "dial" : "field" }, make("label", { for: id }, label));
  if (range) {
    const [low, high] = range.map(Math.log);
    const slider = make("input", { type: "range", min: "0", max: "1000", step: "1", "aria-label": `${label}, slider`, id: `${id}-slider` });
    const place = () => {
      if (Number(box.value) > 0) slider.value = String((1000 * (Math.log(Number(box.value)) - low)) / (high - low));
      slider.setAttribute("aria-valuetext", box.value);
    };
    slider.addEventListener("input", () => {
      const value = Math.exp(low + ((high - low) * slider.value) / 1000);
      box.value = id === "move-k" || id === "move-require" ? String(Math.round(value)) : short(value);
      slider.setAttribute("aria-valuetext", box.value);
      changed(box.value);
    });
    place();
    field.append(slider);
  }
  box.addEventListener("change", () => changed(box.value.trim()));
  field.append(box);
  return field;
}

/** The same name whenever the form is drawn, so that it keeps the focus. */
function named(field, id) {
  field.querySelector("label").htmlFor = id;
  field.querySelector("select, input").id = id;
  return field;
}

function controls(shown = {}) {
  const form = $("moves");
  const focused = document.activeElement?.id;
  const release = content.release || {};
  const mechanism = mechanisms[release.mechanism];
  const chooser = make("select", { id: "move-mechanism" },
    ...Object.entries(mechanisms).map(([name, one]) => make("option", { value: name, selected: name === release.mechanism }, one.title)));
  chooser.addEventListener("change", async () => {
    const name = chooser.value;
    $("moved").textContent = `Looking for ${mechanisms[name].title.toLowerCase()} with the same promise`;
    trying += 1;
    try {
      const found = await post("/mechanism", asked({ mechanism: name }));
      await move(after(changes, found.changes), mechanisms[name].title);
    } catch (error) {
      showError($("move-error"), error);
    }
  });
  const parts = [make("div", { class: "field" }, make("label", { for: "move-mechanism" }, "Mechanism"), chooser)];
  const further = [];
  if (mechanism) {
    parts.push(make("p", { class: "hint" }, mechanism.summary));
    const first = (release.require || []).findIndex((one) => "k" in one && Object.keys(one).length === 1);
    if (first >= 0) {
      parts.push(number("move-require", "k, people in every group", release.require[first].k, SLIDERS.k, (value) =>
        later(["release", "require"], release.require.map((one, i) => (i === first ? { k: value } : one)), `k = ${value}`)));
    }
    for (const one of mechanism.fields) {
      const { key, label, lists, choices, usual } = one;
      const value = lists ? written(release[key]) : at(release, key);
      const plain = NUMBERS.has(key) && value !== undefined;
      const put = (said) => {
        const whole = ["release", ...key.split(".")];
        const words = `${label}: ${choices[said ?? usual] ?? (said || "nothing")}`;
        if (whole.length > 2 && at(release, key.split(".")[0]) === undefined) edit(whole.slice(0, 2), said ? { [whole[2]]: said } : null, words);
        else (plain ? later : edit)(whole, lists ? parsed(said) ?? null : said || null, words);
      };
      const id = `move-${key.replace(".", "-")}`;
      const isText = !Object.keys(choices).length && (lists || value === null || typeof value !== "object");
      (one.more || key === "delta" ? further : parts).push(
        isText ? number(id, label, value, plain ? SLIDERS[key] : undefined, put) : named(keyField(one, release, put), id));
    }
  }
  const open = form.querySelector("details")?.open ?? false;
  parts.push(columns(shown));
  if (further.length) parts.push(make("details", { open }, make("summary", {}, "More of the mechanism"), ...further));
  form.replaceChildren(...parts);
  if (focused) $(focused)?.focus();
}

function columns(shown) {
  const rows = Object.entries(content.attributes || {}).filter(([name]) => name in levels).map(([name, said], i) => {
    const isShown = said?.role !== "drop";
    const box = make("input", { type: "checkbox", id: `column-${i}`, checked: isShown });
    box.checked = isShown;
    const role = before(name);
    box.addEventListener("change", () => edit(["attributes", name, "role"], box.checked ? role : "drop", `${box.checked ? "publish" : "drop"} ${name}`));
    const steps = levels[name] || [];
    const chosen = said?.level ?? "";
    const words = (level) => (level.groups === 1 ? "hidden" : `${level.groups} values`);
    const now = steps[shown[name]];
    const select = make("select", { "aria-label": `${name}, how coarse`, id: `level-${i}`, disabled: !isShown || steps.length < 2 },
      make("option", { value: "" }, now ? `chosen: ${words(now)}` : "chosen"),
      ...steps.map((level, n) => make("option", { value: String(n) }, `${n}: ${words(level)}`)));
    select.value = String(chosen);
    select.addEventListener("change", () => edit(["attributes", name, "level"], select.value || null, `${name} ${select.value ? `at level ${select.value}` : "as chosen"}`));
    return make("li", {}, make("label", { for: `column-${i}` }, box, " ", make("bdi", {}, name)), select);
  });
  return make("fieldset", { class: "plain" }, make("legend", {}, "Columns"), make("ul", { class: "column-moves" }, ...rows));
}

let first = {};
const before = (name) => (first[name]?.role && first[name].role !== "drop" ? first[name].role : null);

// --- what is done with it ---

async function write() {
  try {
    const found = await ask("/policy/check", { method: "POST", body: { text: edited, base } });
    desk.set({ text: edited, valid: found.valid, rehearsed: null });
    $("write-said").replaceChildren("Written into the policy of this window, comments and all. ",
      make("a", { href: "/data#policy-part" }, "See it"), " and save it, or ", make("a", { href: "/release" }, "rehearse it"), ".");
  } catch (error) {
    showError($("move-error"), error);
  }
}

async function compare() {
  $("compare").disabled = true;
  try {
    const found = await work($("compare-progress"), { kind: "compare", data, base, text: edited });
    if (found) fill($("compare-place"), await ask(`/jobs/${found.id}/compared`));
  } catch (error) {
    showError($("compare-place"), error);
  }
  $("compare").disabled = false;
}

async function open() {
  showError($("count-error"), null);
  try {
    const check = await ask("/policy/check", { method: "POST", body: { text, base } });
    content = check.content;
    first = check.content.attributes || {};
    levels = check.levels;
    const found = await work($("count-progress"), { kind: "explore", data, text, base });
    if (!found) return;
    kept = found.id;
    $("whatif").hidden = false;
    controls();
    await move(changes, points.length ? points[now].words : "the policy as it is");
  } catch (error) {
    showError($("count-error"), error);
  }
}

function describe() {
  const line = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, make("bdi", {}, value)));
  const table = data?.upload ? data.name : data?.path ? nameOf(data.path) : (text ? "the one that the policy names" : "none");
  $("desk").replaceChildren(line("Table", table), line("Policy", text ? (path ? nameOf(path) : "not saved") : "none"));
}

$("moves").addEventListener("submit", (event) => event.preventDefault());
$("undo").addEventListener("click", () => {
  const earlier = points.slice(0, now).filter((point) => point.shown).at(-1);
  move(earlier ? earlier.changes : [], earlier ? `back to: ${earlier.words.replace(/^back to: /, "")}` : "the policy as it is");
});
$("around").addEventListener("click", tryAround);
$("write").addEventListener("click", write);
$("compare").addEventListener("click", compare);
$("stop-move").addEventListener("click", async () => {
  asking += 1;
  $("stop-move").hidden = true;
  await ask(`/jobs/${kept}`, { method: "DELETE" }).catch(() => {});
  changes = now >= 0 ? points[now].changes : [];
  await open();
});
window.addEventListener("pagehide", () => {
  if (kept) fetch(`/jobs/${kept}`, { method: "DELETE", keepalive: true, credentials: "same-origin" });
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted && kept) open();
});

describe();
if (!text) emptyState($("whatif-start"), "There is nothing to try yet: choose a table and make its policy first.", ["/data", "Table and policy"], ["/start", "Try an example"]);
else if (valid === false) showError($("count-error"), { error: { code: "policy-invalid", message: "The policy is not valid yet.", remedy: "Go back to Policy and see what is missing." } });
else open();
