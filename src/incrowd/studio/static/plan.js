// Plans: sliders beside numbers, and the answer as they move.

import { $, ask, choose, debounce, desk, fill, latest, make, showError, tabs, work } from "./studio.js";
import { readingForm } from "./reading.js";

const dials = new Map();

/** A slider and a number that say the same. */
function dial(element, changed) {
  const { dial: id, low, high, log } = element.dataset;
  const slider = $(`${id}-slider`);
  const number = $(`${id}-number`);
  const isLog = log === "1";
  const [from, to] = isLog ? [Math.log(low), Math.log(high)] : [Number(low), Number(high)];
  const whole = id === "k" || id === "records" || id === "pram-k";
  const written = (value) => {
    if (whole) return String(Math.round(value));
    return value < 1e-3 ? value.toExponential(1).replace(".0", "") : String(Number(value.toPrecision(3)));
  };
  const place = () => {
    const value = Number(number.value);
    if (value > 0) slider.value = (1000 * ((isLog ? Math.log(value) : value) - from)) / (to - from);
    slider.setAttribute("aria-valuetext", number.value);
  };
  slider.addEventListener("input", () => {
    const at = from + ((to - from) * slider.value) / 1000;
    number.value = written(isLog ? Math.exp(at) : at);
    slider.setAttribute("aria-valuetext", number.value);
    changed();
  });
  number.addEventListener("input", () => {
    place();
    changed();
  });
  place();
  return {
    get value() {
      return number.value.trim();
    },
    show(value) {
      number.value = written(value);
      place();
    },
    enable(enabled) {
      slider.disabled = number.disabled = !enabled;
      element.classList.toggle("solved", !enabled);
    },
    hide(hidden) {
      element.hidden = hidden;
    },
  };
}

const chosen = (form, name) => form.querySelector(`input[name="${name}"]:checked`).value;
/** The answer in a few words, for those who listen. */
function tell(id) {
  const facts = [...$(`${id}-results`).querySelectorAll(".facts div")];
  $(`${id}-status`).textContent = facts.map((one) => `${one.querySelector("dt").textContent} ${one.querySelector("dd").firstChild.textContent}`).join(", ");
}
const answerIn = (element) => JSON.parse(element.querySelector("[data-answer]").dataset.answer);

// --- sampled crowds ---

const NAMES = ["epsilon", "delta", "k", "beta"];
const results = $("crowd-results");

const askCrowd = latest(async (signal) => {
  const solve = chosen($("crowd"), "solve");
  const query = new URLSearchParams({ selection_epsilon: $("selection").value });
  for (const name of NAMES) {
    dials.get(name).enable(name !== solve);
    if (name !== solve) query.set(name, dials.get(name).value);
  }
  results.setAttribute("aria-busy", "true");
  try {
    fill(results, await ask(`/plan/crowd?${query}`, { signal }));
    dials.get(solve).show(answerIn(results)[solve]);
    tell("crowd");
  } catch (error) {
    if (error.name === "AbortError") throw error;
    results.setAttribute("aria-busy", "false");
    showError(results, error);
  }
});
const crowd = debounce(askCrowd, 120);

// --- randomised records ---

const askPram = latest(async (signal) => {
  const given = chosen($("pram"), "given");
  const wanted = given === "both" ? ["k", "epsilon"] : [given];
  const query = new URLSearchParams({
    records: dials.get("records").value, domain: $("domain").value, delta: dials.get("pram-delta").value,
  });
  for (const name of ["k", "epsilon", "rho"]) {
    const one = dials.get(name === "rho" ? "rho" : `pram-${name}`);
    one.enable(wanted.includes(name));
    if (wanted.includes(name)) query.set(name, one.value);
  }
  const place = $("pram-results");
  const picture = $("pram-picture");
  picture.setAttribute("aria-busy", "true");
  try {
    fill(place, await ask(`/plan/pram?${query}`, { signal }));
    const answer = answerIn(place);
    tell("pram");
    if (!wanted.includes("rho")) dials.get("rho").show(answer.rho);
    if (!wanted.includes("k")) dials.get("pram-k").show(answer.k);
    if (!wanted.includes("epsilon")) dials.get("pram-epsilon").show(answer.epsilon_local);
    await new Promise((resolve) => setTimeout(resolve, 400)); // the curve costs more than the numbers
    if (signal.aborted) return;
    picture.classList.add("card");
    if (!picture.children.length) picture.append(make("p", { class: "hint" }, "Drawing the curve…"));
    fill(picture, await ask(`/plan/pram/picture?${query}`, { signal }));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    picture.replaceChildren();
    picture.classList.remove("card");
    showError(place, error);
  }
});
const pram = debounce(askPram, 200);

// --- plain samples ---

let counted = null; // of a table: nobody else needs to know

function sizes() {
  if (counted) return counted;
  return $("sizes").value.split("\n").filter((line) => line.trim()).map((line) => line.split(/[×x*,;\s]+/).filter(Boolean).map(Number));
}

const askSample = latest(async (signal) => {
  const place = $("sample-results");
  try {
    const body = {
      sizes: sizes(), epsilon: dials.get("sample-epsilon").value, delta: dials.get("sample-delta").value,
      rows_unknown: $("unknown").value,
    };
    fill(place, await ask("/plan/sample", { method: "POST", body, signal }));
    tell("sample");
  } catch (error) {
    if (error.name === "AbortError") throw error;
    showError(place, error);
  }
});
const sample = debounce(askSample, 200);

let table = null; // what is counted, and whether it holds counts already

const reading = readingForm({ data: () => table?.data, again: () => count() });

async function count() {
  showError($("look-error"), null);
  const columns = $("row-columns").value.split(",").map((name) => name.trim()).filter(Boolean);
  try {
    const found = await work($("sample-said"), { kind: "count", ...table, columns, reading: reading.said() });
    if (!found) return;
    reading.done();
    counted = found.sizes;
    $("sizes").value = "";
    $("sample-said").textContent = `${found.distinct.toLocaleString("en")} distinct rows among ${found.records.toLocaleString("en")} records.`;
    sample();
  } catch (error) {
    showError($("look-error"), error);
    await reading.help(error.error?.code);
  }
}

async function chooseTable(kind, title) {
  const path = await choose(kind, title);
  if (!path) return;
  if (path !== table?.data.path) reading.clear();
  table = { data: { path }, counts: kind === "counts" };
  $("table-read").hidden = false;
  await count();
}

// --- any other planner: a form made from its options ---

function plain(form) {
  const place = $(`${form.id}-results`);
  return debounce(latest(async (signal) => {
    try {
      const query = new URLSearchParams({ ...Object.fromEntries(new FormData(form)), planner: form.dataset.planner });
      fill(place, await ask(`/plan/any?${query}`, { signal }));
      $(`${form.id}-status`).textContent = place.querySelector("h2").textContent;
    } catch (error) {
      if (error.name === "AbortError") throw error;
      showError(place, error);
    }
  }), 200);
}

// --- everything together ---

const forms = { crowd, pram, sample };
for (const form of document.querySelectorAll("form[data-planner]")) {
  forms[form.id] = plain(form);
  form.addEventListener("input", forms[form.id]);
}
for (const [id, changed] of Object.entries(forms)) {
  for (const element of $(id).querySelectorAll("[data-dial]")) dials.set(element.dataset.dial, dial(element, changed));
  $(id).addEventListener("change", changed);
  $(id).addEventListener("submit", (event) => event.preventDefault());
}
$("selection").addEventListener("input", crowd);
$("domain").addEventListener("input", pram);
$("sizes").addEventListener("input", () => {
  counted = null;
  sample();
});
$("unknown").addEventListener("input", sample);
$("sample-table").addEventListener("click", () => chooseTable("table", "Count the rows of a table"));
$("count-again").addEventListener("click", count);
$("sample-counts").addEventListener("click", () => chooseTable("counts", "A CSV file with a column “count”"));

$("figures").addEventListener("click", async () => {
  $("figures").disabled = true;
  try {
    const drawn = await work($("figures-progress"), { kind: "figures" });
    if (drawn) $("figures-place").replaceChildren(make("iframe", { sandbox: "", title: "The paper’s figures", src: `/jobs/${drawn.id}/report` }));
  } catch (error) {
    showError($("figures-place"), error);
  }
  $("figures").disabled = false;
});

// What a plan would say in the policy stands beside its answer.
for (const id of Object.keys(forms)) {
  $(`use-${id}`).addEventListener("click", () => {
    const found = $(`${id}-results`).querySelector("[data-section]");
    $(`use-${id}-said`).textContent = found ? "It is ready for the policy: see Table and policy." : "It is not a section of a policy.";
    if (found) desk.set({ planned: JSON.parse(found.dataset.section) });
  });
}

const started = new Set();
tabs(document.querySelector('[role="tablist"]'), (name) => {
  if (!started.has(name)) forms[name]();
  started.add(name);
});
