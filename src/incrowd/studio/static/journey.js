// Where this window is on the way from a table to what others see: what each step has come to, and which one is next.

import { desk, nameOf } from "./studio.js";

// What a step has come to, in a word or two, and whether it is done. What is not begun says nothing.
const STEPS = {
  table: ({ data, text, named }) => ({
    done: Boolean(data || text),
    said: data ? data.name || nameOf(data.path || "") : named ? "as the policy says" : text ? "asked of respondents" : "",
  }),
  policy: ({ text, path, valid, open }) => {
    const name = path ? nameOf(path) : "";
    if (!text) return { done: false, said: "" };
    if (!valid) return { done: false, said: "not valid yet" };
    return open ? { done: false, said: `${open} to confirm` } : { done: true, said: name || "not saved" };
  },
  rehearsal: ({ rehearsed }) => ({ done: Boolean(rehearsed), said: rehearsed ? "done" : "" }),
  release: ({ released }) => ({ done: Boolean(released), said: released ? nameOf(released) : "" }),
  seen: ({ released, seen }) => ({ done: Boolean(released) && seen === released, said: "" }),
};

function draw() {
  const now = desk.get();
  const steps = [...document.querySelectorAll("[data-step]")];
  const said = steps.map((step) => STEPS[step.dataset.step](now));
  const next = said.findIndex((one) => !one.done);
  // Of the steps that this page has, the one that comes next is where one is; if none does, the last that was done.
  const here = steps.map((step, i) => i).filter((i) => "here" in steps[i].dataset);
  const current = here.find((i) => i === next) ?? here.filter((i) => i < next || next < 0).at(-1) ?? here[0];
  steps.forEach((step, i) => {
    const link = step.querySelector("a");
    step.classList.toggle("done", said[i].done);
    step.classList.toggle("ahead", i === next);
    step.querySelector(".number").textContent = said[i].done ? "✓" : String(i + 1);
    step.querySelector("small").textContent = said[i].said;
    if (i === current) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
    if (said[i].done) link.setAttribute("aria-description", "done");
    else link.removeAttribute("aria-description");
  });
}

document.addEventListener("desk", draw);
draw();
// On a narrow screen the tools scroll: the one that is open is in sight.
const tools = document.querySelector(".bar nav");
const open = tools.querySelector("[aria-current]");
if (open) tools.scrollLeft = open.offsetLeft - tools.offsetLeft - (tools.clientWidth - open.offsetWidth) / 2;
