// Release: publish, watch, stop; then see, check and download what came out.

import { $, ask, choose, desk, fill, make, nameOf, showError, tabs, work } from "./studio.js";
import { lattice } from "./lattice.js";

function describe() {
  const { data, text, path, base, valid } = desk.get();
  const table = data?.upload ? `${data.name} (uploaded)` : data?.path || (text ? "the one that the policy names" : "none");
  const line = (name, ...value) => make("div", {}, make("dt", {}, name), make("dd", {}, ...value));
  const change = make("a", { href: "/data" }, "change");
  $("desk").replaceChildren(
    line("Table", make("bdi", {}, table)),
    line("Policy", make("bdi", {}, text ? (path ? nameOf(path) : "not saved") : "none"), " ", change));
  $("run").disabled = !text;
  if (text && valid === false) showError($("run-error"), { error: { code: "policy-invalid", message: "The policy is not valid yet.", remedy: "Go back to Data and policy and see what is missing." } });
  if (text && !$("folder").value) {
    const name = nameOf(path || data?.name || data?.path || "table").replace(/\..*$/, "");
    $("folder").value = `${base || ""}${base ? "/" : ""}${name}-release`;
  }
}

async function view(folder) {
  const place = $("result");
  fill(place, await ask(`/releases/view?folder=${encodeURIComponent(folder)}`));
  tabs(place.querySelector('[role="tablist"]'), (_, panel) => {
    const frame = panel.querySelector("iframe[data-src]");
    if (frame && !frame.src) frame.src = frame.dataset.src;
  });
  const drawn = place.querySelector("[data-lattice]");
  if (drawn) lattice(drawn);
  place.querySelector("[data-verify]").addEventListener("click", () => verify(folder, place.querySelector("[data-verification]")));
  place.querySelector(".head").scrollIntoView({ block: "start" });
}

async function verify(folder, place) {
  try {
    const found = await work(place, { kind: "verify", folder });
    if (!found) return;
    place.replaceChildren(make("div", { class: found.valid ? "verdict good" : "verdict bad", role: "status" },
      make("h3", {}, found.valid ? "Valid: every check holds." : "Not valid."),
      make("ul", { class: "checks" }, ...found.checks.map((check) =>
        make("li", { class: check.holds ? "yes" : "no" }, make("b", {}, check.holds ? "holds: " : "fails: "), check.name,
          check.detail ? make("small", {}, ` (${check.detail})`) : null))),
      make("details", {}, make("summary", {}, "What must be taken on trust"),
        make("ul", {}, ...found.claimed.map((text) => make("li", {}, text))))));
  } catch (error) {
    showError(place, error);
  }
}

$("start").addEventListener("submit", async (event) => {
  event.preventDefault();
  showError($("run-error"), null);
  $("result").replaceChildren();
  $("run").disabled = true;
  const { data, text, base } = desk.get();
  try {
    const made = await work($("run-progress"), { kind: "release", data, text, base, folder: $("folder").value.trim() }, {
      cancelled: "Stopped. Nothing was left behind. If the ledger had been charged already, that stays on record.",
    });
    if (made) await view(made.folder || $("folder").value.trim());
  } catch (error) {
    showError($("run-error"), error);
  }
  $("run").disabled = false;
});

$("open-release").addEventListener("click", async () => {
  const folder = await choose("release", "Choose the folder of a release");
  if (!folder) return;
  showError($("run-error"), null);
  try {
    await view(folder);
  } catch (error) {
    showError($("run-error"), error);
  }
});

describe();
