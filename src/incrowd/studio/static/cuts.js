// Cut points on a histogram: moved by mouse or keyboard, and kept by as many levels as they are high.

import { make } from "./studio.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LOW] = [innerWidth < 640 ? 330 : 600, 150, 118]; // letters stay readable on a phone
const number = (text) => (/^[+-]?\.?inf$/i.test(text) ? (text.startsWith("-") ? -Infinity : Infinity) : Number(text));
const written = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(12))) : value < 0 ? "-.inf" : ".inf");

function shape(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** The cuts of all levels as points, each with how many levels keep it; the outermost ones are the domain's ends. */
function read(grid) {
  const finest = grid[0].map(number);
  const depth = (value) => grid.filter((level) => level.map(number).includes(value)).length;
  return { first: finest[0], last: finest.at(-1), points: finest.slice(1, -1).map((value) => ({ value, levels: depth(value) })) };
}

/**
 * `ranges` are [from, to, records] of the true table; `grid` is a list of cuts for each level, finest first.
 * `whole` says that only whole numbers can be cuts; `changed` is called with the new grid.
 */
export function cutEditor(place, { ranges, grid, whole, changed }) {
  const state = read(grid);
  let levels = grid.length;
  const ends = [state.first, state.last].filter(Number.isFinite);
  const low = Math.min(ranges[0][0], ...ends);
  const high = Math.max(ranges.at(-1)[1], ...ends);
  const width = ranges[0][1] - ranges[0][0];
  const step = whole ? Math.max(1, Math.round(width / 10)) : width / 10;
  const x = (value) => (WIDTH * (value - low)) / (high - low);
  const snap = (value) => (whole ? Math.round(value) : Math.round(value / (width / 100)) * (width / 100));
  const inside = (value) => value > Math.max(low, state.first) && value < Math.min(high, state.last);
  const top = Math.max(...ranges.map(([, , n]) => n), 1);

  const picture = shape("svg", { class: "cuts", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": "Cut points on the histogram of the true table" });
  const said = make("p", { class: "hint", role: "status" });

  function tell(focus) {
    state.points.sort((a, b) => a.value - b.value);
    levels = Math.max(levels, ...state.points.map((one) => one.levels));
    const next = Array.from({ length: levels }, (_, i) => [state.first, ...state.points.filter((one) => one.levels > i).map((one) => one.value), state.last].map(written));
    while (next.length > 1 && next.at(-1).length === 2) next.pop(); // a level that joins everything is there anyway
    draw(focus);
    changed(next);
  }

  function move(point, to) {
    const value = snap(to);
    if (inside(value) && !state.points.some((one) => one !== point && one.value === value)) point.value = value;
  }

  function key(event, point) {
    const moves = { ArrowRight: step, ArrowLeft: -step, PageUp: 10 * step, PageDown: -10 * step };
    if (event.key in moves) move(point, point.value + (event.shiftKey && whole ? Math.sign(moves[event.key]) : moves[event.key]));
    else if (event.key === "ArrowUp") point.levels += 1;
    else if (event.key === "ArrowDown") point.levels = Math.max(1, point.levels - 1);
    else if (event.key === "Delete" || event.key === "Backspace") state.points.splice(state.points.indexOf(point), 1);
    else return;
    event.preventDefault();
    const at = state.points.includes(point) ? point : state.points.at(-1);
    tell(at);
  }

  function drag(event, point) {
    event.preventDefault();
    const box = picture.getBoundingClientRect();
    const follow = (moved) => {
      move(point, low + ((high - low) * (moved.clientX - box.left)) / box.width);
      draw(point);
    };
    const end = () => {
      removeEventListener("pointermove", follow);
      removeEventListener("pointerup", end);
      tell(point);
    };
    addEventListener("pointermove", follow);
    addEventListener("pointerup", end);
  }

  function draw(focus) {
    const most = Math.max(levels, ...state.points.map((one) => one.levels));
    picture.replaceChildren(
      ...ranges.map(([from, to, n]) => shape("rect", {
        class: "range", x: x(from) + 0.5, width: Math.max(1, x(to) - x(from) - 1), y: LOW - (100 * n) / top, height: (100 * n) / top,
      })),
      shape("line", { class: "ground", x1: 0, x2: WIDTH, y1: LOW, y2: LOW }));
    let right = -Infinity; // where the last label ends: one that would lie upon it is left out
    for (const point of state.points) {
      const at = x(point.value);
      const y = 8 + (60 * (most - point.levels)) / most;
      const label = shape("text", { x: Math.min(WIDTH - 4, Math.max(4, at)), y: HEIGHT - 8, "text-anchor": at < 20 ? "start" : at > WIDTH - 20 ? "end" : "middle" }, written(point.value));
      const half = 4.5 * written(point.value).length;
      if (at - half < right && point !== focus) label.textContent = "";
      else right = at + half;
      const handle = shape("g", {
        class: "cut", tabindex: "0", role: "slider", "aria-label": "Cut", "aria-valuenow": point.value, "aria-valuemin": low, "aria-valuemax": high,
        "aria-valuetext": `${written(point.value)}, kept by ${point.levels} of ${most} levels`,
      },
      shape("line", { x1: at, x2: at, y1: y, y2: LOW }), shape("circle", { cx: at, cy: y, r: 7 }), shape("rect", { class: "grip", x: at - 10, width: 20, y: 0, height: HEIGHT }), label);
      handle.addEventListener("keydown", (event) => key(event, point));
      handle.addEventListener("pointerdown", (event) => drag(event, point));
      picture.append(handle);
      if (point === focus) handle.focus();
    }
    said.textContent = `${state.points.length + 1} intervals at the finest of ${most} ${most === 1 ? "level" : "levels"}.`;
  }

  const add = make("button", { type: "button" }, "Add a cut");
  add.addEventListener("click", () => {
    // In the middle of the interval that holds most records.
    const edges = [Math.max(low, state.first), ...state.points.map((one) => one.value), Math.min(high, state.last)];
    const held = edges.slice(1).map((to, i) => ranges.reduce((sum, [a, b, n]) => sum + ((a + b) / 2 >= edges[i] && (a + b) / 2 < to ? n : 0), 0));
    const widest = held.map((n, i) => [n, i]).sort((a, b) => b[0] - a[0]).map(([, i]) => snap((edges[i] + edges[i + 1]) / 2));
    const value = widest.find((one) => inside(one) && !state.points.some((point) => point.value === one));
    if (value === undefined) return;
    const point = { value, levels: 1 };
    state.points.push(point);
    tell(point);
  });
  place.replaceChildren(make("div", { class: "cut-place" },
    make("p", { class: "keep" }, "Drawn over the true table: for your eyes only. Round cuts, or ones that others use, tell nothing of it."),
    picture, make("div", { class: "row" }, add, said),
    make("p", { class: "hint" }, "Drag a cut, or use the arrow keys: ← and → move it (with Shift by one), ↑ and ↓ let more or fewer levels keep it, Delete removes it.")));
  draw();
}

/** Four intervals of about the same width between the ends of a declared domain. */
export function firstCuts(from, to, whole) {
  const [low, high] = [Number(from), Number(to)];
  if (!Number.isFinite(low) || !Number.isFinite(high) || high <= low) return null;
  const rough = (high - low) / 4;
  const size = 10 ** Math.floor(Math.log10(rough));
  const width = [1, 2, 2.5, 5, 10].map((one) => one * size).find((one) => one >= rough && (!whole || Number.isInteger(one))) || Math.ceil(rough);
  const cuts = [];
  for (let at = Math.floor(low / width) * width + width; at < high; at += width) if (at > low) cuts.push(at);
  return [[low, ...cuts, Infinity].map(written)];
}
