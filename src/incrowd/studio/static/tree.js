// A tree of names, edited by keyboard or mouse: the taxonomy of a column.

import { make } from "./studio.js";

const node = (name, children = []) => ({ name, children, open: true });

/** From what a policy says: mappings, lists and texts. */
export function fromPolicy(raw) {
  if (Array.isArray(raw)) return raw.flatMap((item) => (item && typeof item === "object" ? fromPolicy(item) : [node(item)]));
  if (raw && typeof raw === "object") return Object.entries(raw).map(([name, below]) => node(name, below === null ? [] : fromPolicy(below)));
  return raw === null || raw === undefined ? [] : [node(raw)];
}

/** As a policy says it. */
export function toPolicy(nodes) {
  if (nodes.every((one) => !one.children.length)) return nodes.map((one) => one.name);
  return Object.fromEntries(nodes.map((one) => [one.name, one.children.length ? toPolicy(one.children) : null]));
}

export class TreeEditor {
  constructor(place, nodes, changed) {
    this.nodes = nodes;
    this.changed = changed;
    this.current = nodes[0] || null;
    this.tree = make("ul", { role: "tree", class: "tree", "aria-label": "Taxonomy" });
    const button = (text, title, action) => make("button", { type: "button", title, onclick: () => this.act(action) }, text);
    place.replaceChildren(
      make("div", { class: "row tools", role: "toolbar", "aria-label": "Change the taxonomy" },
        button("Add group above", "Insert", () => this.wrap()),
        button("Add below", "Shift+Insert", () => this.add()),
        button("Rename", "F2", () => this.rename()),
        button("Remove", "Delete", () => this.remove()),
        button("↑", "Alt+↑: earlier", () => this.move(-1)),
        button("↓", "Alt+↓: later", () => this.move(1)),
        button("→", "Alt+→: into the group before", () => this.indent()),
        button("←", "Alt+←: out of its group", () => this.outdent())),
      this.tree,
      make("p", { class: "hint" }, "Drag a value onto a group, or use the keys: arrows move, F2 renames, Insert puts a group around a value, Alt with arrows moves it, Delete removes it."),
    );
    this.tree.addEventListener("keydown", (event) => this.key(event));
    this.tree.addEventListener("dragover", (event) => this.dragged && event.preventDefault());
    this.tree.addEventListener("drop", (event) => {
      event.preventDefault();
      this.drop(null);
    });
    this.draw();
  }

  act(action) {
    action();
    this.draw(true);
    this.changed(toPolicy(this.nodes));
  }

  /** The list a node is in, its place there, and the node above. */
  find(wanted, nodes = this.nodes, above = null) {
    for (const [at, one] of nodes.entries()) {
      if (one === wanted) return { nodes, at, above };
      const found = this.find(wanted, one.children, one);
      if (found) return found;
    }
    return null;
  }

  free(name) {
    const taken = new Set();
    const walk = (nodes) => nodes.forEach((one) => (taken.add(one.name), walk(one.children)));
    walk(this.nodes);
    for (let i = 1; ; i += 1) {
      const tried = i === 1 ? name : `${name} ${i}`;
      if (!taken.has(tried)) return tried;
    }
  }

  wrap() {
    const found = this.current && this.find(this.current);
    const fresh = node(this.free("group"), found ? [this.current] : []);
    if (found) found.nodes.splice(found.at, 1, fresh);
    else this.nodes.push(fresh);
    this.current = fresh;
    this.editing = fresh;
  }

  add() {
    const fresh = node(this.free("value"));
    if (this.current) {
      this.current.children.push(fresh);
      this.current.open = true;
    } else this.nodes.push(fresh);
    this.current = fresh;
    this.editing = fresh;
  }

  rename() {
    this.editing = this.current;
  }

  remove() {
    const found = this.current && this.find(this.current);
    if (!found) return;
    // What is below stays: to remove a group is not to remove its values.
    found.nodes.splice(found.at, 1, ...this.current.children);
    this.current = found.nodes[Math.min(found.at, found.nodes.length - 1)] || found.above || null;
  }

  move(by) {
    const found = this.current && this.find(this.current);
    if (!found || !found.nodes[found.at + by]) return;
    found.nodes.splice(found.at, 1);
    found.nodes.splice(found.at + by, 0, this.current);
  }

  indent() {
    const found = this.current && this.find(this.current);
    const before = found?.nodes[found.at - 1];
    if (!before) return;
    found.nodes.splice(found.at, 1);
    before.children.push(this.current);
    before.open = true;
  }

  outdent() {
    const found = this.current && this.find(this.current);
    if (!found?.above) return;
    const higher = this.find(found.above);
    found.nodes.splice(found.at, 1);
    higher.nodes.splice(higher.at + 1, 0, this.current);
  }

  /** Whether one of two nodes is below the other, or the same. */
  holds(above, wanted) {
    return above === wanted || above.children.some((child) => this.holds(child, wanted));
  }

  /** What was dragged goes into a group; onto a value, it goes before it. */
  drop(onto) {
    const moved = this.dragged;
    this.dragged = null;
    if (!moved || (onto && this.holds(moved, onto))) return;
    this.act(() => {
      const from = this.find(moved);
      from.nodes.splice(from.at, 1);
      if (!onto) this.nodes.push(moved);
      else if (onto.children.length) {
        onto.children.push(moved);
        onto.open = true;
      } else {
        const to = this.find(onto);
        to.nodes.splice(to.at, 0, moved);
      }
      this.current = moved;
    });
  }

  /** Lets a row be dragged, and be dropped onto. */
  draggable(row, one) {
    row.draggable = true;
    row.addEventListener("dragstart", (event) => {
      this.dragged = one;
      event.dataTransfer.setData("text/plain", one.name);
      event.dataTransfer.effectAllowed = "move";
    });
    row.addEventListener("dragover", (event) => {
      if (!this.dragged || this.holds(this.dragged, one)) return;
      event.preventDefault();
      row.classList.add(one.children.length ? "into" : "before");
    });
    row.addEventListener("dragleave", () => row.classList.remove("into", "before"));
    row.addEventListener("drop", (event) => {
      event.preventDefault();
      event.stopPropagation();
      this.drop(one);
    });
  }

  shown(nodes = this.nodes) {
    return nodes.flatMap((one) => [one, ...(one.open ? this.shown(one.children) : [])]);
  }

  key(event) {
    if (event.target.tagName === "INPUT") return;
    const list = this.shown();
    const at = list.indexOf(this.current);
    const go = (to) => {
      if (to) this.current = to;
      this.draw(true);
    };
    const changes = {
      F2: () => this.rename(), Enter: () => this.rename(), Delete: () => this.remove(),
      Insert: () => (event.shiftKey ? this.add() : this.wrap()),
    };
    const moves = { ArrowUp: () => this.move(-1), ArrowDown: () => this.move(1), ArrowRight: () => this.indent(), ArrowLeft: () => this.outdent() };
    const steps = {
      ArrowDown: () => go(list[at + 1]), ArrowUp: () => go(list[at - 1]), Home: () => go(list[0]), End: () => go(list.at(-1)),
      ArrowRight: () => {
        if (this.current.children.length && !this.current.open) this.current.open = true;
        else if (this.current.children.length) this.current = this.current.children[0];
        this.draw(true);
      },
      ArrowLeft: () => {
        if (this.current.children.length && this.current.open) this.current.open = false;
        else this.current = this.find(this.current)?.above || this.current;
        this.draw(true);
      },
    };
    const action = event.altKey ? moves[event.key] : changes[event.key];
    if (action) this.act(action);
    else if (!event.altKey && steps[event.key]) steps[event.key]();
    else return;
    event.preventDefault();
  }

  draw(focus = false) {
    const item = (one, level) => {
      const name = make("span", { class: "name" }, one.name);
      const row = make("div", { class: "leaf" },
        make("span", { class: "twist", "aria-hidden": "true" }, one.children.length ? (one.open ? "▾" : "▸") : "·"), name);
      const element = make("li", {
        role: "treeitem", "aria-level": level, tabindex: one === this.current ? "0" : "-1", "aria-label": one.name,
        "aria-selected": String(one === this.current), "aria-expanded": one.children.length ? String(one.open) : null,
      }, row);
      row.addEventListener("click", () => {
        if (this.current === one && one.children.length) one.open = !one.open;
        this.current = one;
        this.draw(true);
      });
      row.addEventListener("dblclick", () => this.act(() => { this.current = this.editing = one; }));
      if (one === this.editing) this.field(name, one);
      else this.draggable(row, one);
      if (one.children.length && one.open) {
        element.append(make("ul", { role: "group" }, ...one.children.map((child) => item(child, level + 1))));
      }
      if (focus && one === this.current && one !== this.editing) queueMicrotask(() => element.focus());
      return element;
    };
    this.tree.replaceChildren(...this.nodes.map((one) => item(one, 1)));
    if (!this.nodes.length) this.tree.append(make("li", { role: "treeitem", tabindex: "0" }, "empty"));
  }

  field(name, one) {
    const input = make("input", { type: "text", value: one.name, "aria-label": `New name for ${one.name}` });
    let done = false;
    const finish = (keep) => {
      if (done) return;
      done = true;
      const wanted = input.value.trim();
      const before = one.name;
      this.editing = null;
      if (keep && wanted && wanted !== before) {
        one.name = wanted;
        this.changed(toPolicy(this.nodes));
      }
      this.draw(true);
    };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") finish(true);
      if (event.key === "Escape") finish(false);
    });
    input.addEventListener("blur", () => finish(true));
    name.replaceChildren(input);
    queueMicrotask(() => {
      input.focus();
      input.select();
    });
  }
}
