// Release: publish, watch, stop; then see, check and download what came out.

import { $, ask, choose, coded, desk, emptyState, fill, make, nameOf, showError, tabs, work } from "./studio.js";
import { verification } from "./verification.js";
import { lattice } from "./lattice.js";

function describe() {
  const { data, text, path, base, valid } = desk.get();
  const table = data?.upload ? `${data.name} (uploaded)` : data?.path ? nameOf(data.path) : (text ? "the one that the policy names" : "none");
  const line = (name, ...value) => make("div", {}, make("dt", {}, name), make("dd", {}, ...value));
  const change = make("a", { href: "/data" }, "change");
  $("desk").replaceChildren(
    line("Table", make("bdi", {}, table)),
    line("Policy", make("bdi", {}, text ? (path ? nameOf(path) : "not saved") : "none"), " ", change));
  $("run").disabled = $("rehearse").disabled = !text;
  $("new-ledger-field").hidden = !/^ledger:/m.test(text || "");
  if (text && valid === false) showError($("run-error"), { error: { code: "policy-invalid", message: "The policy is not valid yet.", remedy: "Go back to Policy and see what is missing." } });
  if (text && !$("folder").value) {
    const name = nameOf(path || data?.name || data?.path || "table").replace(/\..*$/, "");
    $("folder").value = `${base || ""}${base ? "/" : ""}${name}-release`;
  }
}

async function view(folder, scroll = true) {
  const place = $("result");
  fill(place, await ask(`/releases/view?folder=${encodeURIComponent(folder)}`));
  tabs(place.querySelector('[role="tablist"]'), (_, panel) => {
    const frame = panel.querySelector("iframe[data-src]");
    if (frame && !frame.src) frame.src = frame.dataset.src;
  });
  const drawn = place.querySelector("[data-lattice]");
  if (drawn) lattice(drawn);
  place.querySelector("[data-verify]").addEventListener("click", () => verify(folder, place.querySelector("[data-verification]")));
  if (scroll) place.querySelector(".head").scrollIntoView({ block: "start" });
}

async function verify(folder, place) {
  try {
    const found = await work(place, { kind: "verify", folder });
    if (!found) return;
    place.replaceChildren(verification(found));
  } catch (error) {
    showError(place, error);
  }
}

/** Start work on the table and its policy, and show what comes of it. */
async function run(part, kind, more, show, options) {
  showError($(`${part}-error`), null);
  $("run").disabled = $("rehearse").disabled = true;
  const { data, text, base } = desk.get();
  try {
    const copies = Number($("copies").value || 1);
    const made = await work($(`${part}-progress`), { kind, data, text, base, copies, ...more }, options);
    if (made) await show(made);
  } catch (error) {
    showError($(`${part}-error`), error.error ? { error: inWords(error.error) } : error);
    $(`${part}-error`).scrollIntoView({ block: "nearest" });
  }
  $("run").disabled = $("rehearse").disabled = false;
}

/** What the command line calls an option is a box on this page. */
function inWords(error) {
  if (error.code !== "ledger-new") return error;
  return { ...error, remedy: "If nothing was released from this dataset before, tick “This is the first release of the dataset”, above, and publish again. Otherwise name the ledger that counted it in the policy." };
}

$("start").addEventListener("submit", (event) => {
  event.preventDefault();
  const folder = $("folder").value.trim();
  $("result").replaceChildren();
  const body = { folder, new_ledger: $("new-ledger").checked, output: $("output").value, sign_with: $("sign-with").value.trim() };
  run("run", "release", body, async (made) => {
    const shown = made.folder || folder;
    desk.set({ released: shown });
    $("run-progress").replaceChildren(make("div", { class: "verdict good", role: "status" },
      make("h3", {}, made.folders?.length > 1 ? `Published: ${made.folders.length} copies` : "Published"),
      made.account ? make("p", {}, `Spent on ${made.account.dataset}: ε = ${amount(made.account.spent.epsilon)}; ${amount(made.account.remaining?.epsilon, false)} is left.`) : null,
      make("p", {}, make("a", { class: "button main", href: "/browse" }, "See what others see"))));
    await view(shown);
  }, {
    cancelled: "Stopped. Nothing was left behind. If the ledger had been charged already, that stays on record.",
  });
});

/** A few digits: what is spent is rounded up, and what is left down. */
function amount(value, up = true) {
  if (value === null || value === undefined) return "∞";
  if (!value) return "0";
  const step = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 3);
  const digits = Math.round(value / step) * step;
  const near = Math.abs(digits - value) <= 1e-9 * Math.abs(value) ? Math.round(value / step) : (up ? Math.ceil : Math.floor)(value / step);
  const shown = Number((near * step).toPrecision(4));
  return shown < 1e-3 ? shown.toExponential() : String(shown);
}

/** The ledger before this release and after it. */
function foreseen(found) {
  const place = $("foreseen");
  if (!found) {
    place.replaceChildren(make("p", { class: "hint" }, "The policy names no ledger: nothing adds up what is published about these people."));
    return;
  }
  const row = (name, pair, cls) => make("tr", cls ? { class: cls } : {}, make("th", { scope: "row" }, name),
    ...(pair || ["–", "–"]).map((value) => make("td", { class: "number" }, typeof value === "string" ? value : amount(value))));
  const total = found.budget[0];
  const part = (value) => `${Math.max(0, Math.min(100, (100 * (value ?? total)) / total)).toFixed(2)}%`;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const bar = (cls, width) => {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [key, value] of Object.entries({ class: cls, width, height: "14", rx: "7" })) rect.setAttribute(key, value);
    svg.append(rect);
  };
  for (const [key, value] of Object.entries({ class: "meter", width: "100%", height: "14", role: "img" })) svg.setAttribute(key, value);
  svg.setAttribute("aria-label", `Of ε = ${amount(total)}, ${amount(found.before[0])} is spent, and ${amount(found.after ? found.after[0] : found.before[0])} would be`);
  bar("ground", "100%");
  if (found.after) bar("would", part(found.after[0]));
  bar("is", part(found.before[0]));
  place.replaceChildren(
    make("h3", {}, "The ledger of ", make("bdi", {}, found.dataset), found.first ? ", of which this is the first release" : ""),
    svg,
    make("table", {},
      make("thead", {}, make("tr", {}, make("td"), make("th", { scope: "col", class: "number" }, "ε"), make("th", { scope: "col", class: "number" }, "δ"))),
      make("tbody", {}, row("spent before", found.before, "is"), row(found.cost ? "this release" : "this release does not compose", found.cost, "would"),
        row("spent after", found.after), row("budget", found.budget), row("left of ε", [amount(found.left, false), ""]))),
    make("div", {}, found.refused ? make("div", { class: "problem", role: "alert" }, make("p", { class: "what" }, "The ledger would refuse it."), make("p", {}, found.refused)) : null));
}

$("rehearse").addEventListener("click", () => run("rehearse", "rehearse", {}, (found) => {
  desk.set({ rehearsed: true });
  const list = (texts) => make("ul", {}, ...texts.map((text) => make("li", {}, ...coded(text))));
  const report = `/jobs/${found.id}/report`;
  $("rehearsed").replaceChildren(make("section", { class: "rehearsal" },
    make("div", { class: "row head" }, make("h2", { tabindex: "-1" }, "What would come out"), make("span", { class: "grow" }),
      make("a", { class: "button", href: `${report}?save`, download: true }, "Save the internal report")),
    make("p", { class: "keep" }, "A rehearsal, for your eyes only: nothing was charged or published. To change the policy because of it looks at the table, and no promise covers that."),
    make("p", { class: "promise" }, `Published, it would promise: ${found.promise}`),
    found.empty ? make("p", { class: "what" }, "It is empty: nothing could be published.") : null,
    make("h3", {}, "What it is good for"), list([...found.verdict, ...found.for_you_only]),
    found.warnings.length ? make("div", { class: "verdict bad" }, make("h3", {}, "What had better be changed"),
      list(found.warnings.map((one) => one.text))) : null,
    make("div", { class: "wide", role: "region", "aria-label": "How each column would be shown", tabindex: "0" }, make("table", {},
      make("caption", {}, "How each column would be shown"),
      make("thead", {}, make("tr", {}, ...["column", "shown", "values that occur"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...found.columns.map((one) => make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, one.name)),
        make("td", {}, one.hidden ? "hidden: all values look alike" : one.shown), make("td", {}, one.occurring)))))),
    make("details", {}, make("summary", {}, "The internal report"), make("iframe", { sandbox: "", title: "Internal report of the rehearsal", src: report }))));
  foreseen(found.ledger);
  $("run").classList.add("main");
  $("rehearse").classList.remove("main");
  $("rehearsed").querySelector("h2").focus();
}));

$("open-release").addEventListener("click", async () => {
  const folder = await choose("release", "Choose the folder of a release");
  if (!folder) return;
  showError($("run-error"), null);
  try {
    await view(folder);
    desk.set({ released: folder });
  } catch (error) {
    showError($("run-error"), error);
  }
});

$("browse-key").addEventListener("click", async () => {
  const path = await choose("key", "Choose the secret key");
  if (path) $("sign-with").value = path;
});
$("make-keys").addEventListener("click", async () => {
  showError($("run-error"), null);
  try {
    const made = await ask("/keys", { method: "POST", body: { secret: $("secret").value, public: $("public").value } });
    $("sign-with").value = made.secret;
    $("keys-said").replaceChildren("Made. The public key's fingerprint, which others compare: ", make("code", {}, made.fingerprint));
  } catch (error) {
    showError($("run-error"), error);
  }
});

describe();
const { text, released } = desk.get();
if (!text) emptyState($("desk").parentElement, "There is nothing to publish yet: choose a table and make its policy first.", ["/data", "Table and policy"], ["/start", "Try an example"]);
// What this window has published, or opened, is still there when one comes back.
if (released) view(released, false).catch(() => desk.set({ released: null }));
