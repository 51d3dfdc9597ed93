// What the checks of a release have found.

import { make } from "./studio.js";

/** Whether it is valid, each check, and what must be taken on trust. What fails comes first. */
export function verification(found) {
  const checks = [...found.checks].sort((a, b) => Number(a.holds) - Number(b.holds));
  const failed = checks.filter((check) => !check.holds).length;
  const title = found.valid ? "Valid: every check holds." : `Not valid: ${failed === 1 ? "a check fails" : `${failed} checks fail`}.`;
  return make("div", { class: found.valid ? "verdict good" : "verdict bad", role: "status" },
    make("h3", {}, title),
    make("ul", { class: "checks" }, ...checks.map((check) =>
      make("li", { class: check.holds ? "yes" : "no" }, make("b", {}, check.holds ? "holds: " : "fails: "), check.name,
        check.detail && !check.holds ? make("small", {}, ` (${check.detail})`) : null))),
    found.signature ? make("p", {}, found.signature) : null,
    make("details", {}, make("summary", {}, "What must be taken on trust"),
      make("ul", {}, ...found.claimed.map((text) => make("li", {}, text)))));
}
