// What all pages share: asking the service, showing errors, watching work, choosing files, tabs.

export const $ = (id) => document.getElementById(id);
export const roots = JSON.parse(document.body.dataset.roots);
export const measures = JSON.parse(document.body.dataset.measures);

/** An element; text is text, whatever is in it. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export class Refusal extends Error {
  constructor(error) {
    super(error.message);
    this.error = error;
  }
}

/** Ask the service. JSON is parsed; anything else is returned as text. */
export async function ask(path, { method = "GET", body, headers = {}, signal } = {}) {
  const options = { method, headers: { ...headers }, signal, credentials: "same-origin" };
  if (body instanceof Blob) options.body = body;
  else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal({ code: "unreachable", message: "The studio does not answer.", remedy: "Start it again and open the new address that it prints. What is not saved as a file is in this window only: copy it before you close it." });
  }
  const isJson = (answer.headers.get("content-type") || "").startsWith("application/json");
  const content = isJson ? await answer.json() : await answer.text();
  if (!answer.ok) {
    throw new Refusal(content.error || { code: String(answer.status), message: "The studio has refused.", remedy: "" });
  }
  return content;
}

/** Put markup that the service has made into an element. */
export function fill(element, markup) {
  element.innerHTML = markup;
  element.setAttribute("aria-busy", "false");
}

/** A text in which `code` is marked as one, as nodes. */
export function coded(text) {
  const parts = String(text).split(/`([^`]+)`/);
  return parts.map((part, i) => (i % 2 ? make("code", {}, part) : part)).filter((part) => part !== "");
}

/** What a page says as long as there is nothing to show, and where to go first. */
export function emptyState(place, words, ...ways) {
  place.replaceChildren(make("p", {}, words),
    make("p", { class: "row" }, ...ways.map(([href, title], i) => make("a", { class: i ? "button" : "button main", href }, title))));
}

/** An error, in the one shape that it has everywhere. */
export function showError(element, error) {
  element.replaceChildren();
  if (!error) return;
  const said = error.error || { code: "internal", message: String(error.message || error), remedy: "Load the page again." };
  element.append(
    make("div", { class: "problem", role: "alert" },
      make("p", { class: "what" }, ...coded(said.message)),
      said.remedy ? make("p", {}, ...coded(said.remedy)) : null,
      make("code", {}, said.code)),
  );
}

export function debounce(action, wait) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait);
  };
}

/** Only the last of several questions is answered. */
export function latest(question) {
  let controller;
  return async (...given) => {
    controller?.abort();
    controller = new AbortController();
    try {
      return await question(controller.signal, ...given);
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      throw error;
    }
  };
}

// --- what this window works on: kept in the window itself, so that two windows never disturb each other ---

export const desk = {
  get() {
    try {
      return JSON.parse(sessionStorage.getItem("desk")) || {};
    } catch {
      return {};
    }
  },
  set(changes) {
    const before = this.get();
    // Another policy, or another table, has not been rehearsed.
    const other = ["text", "data"].some((key) => key in changes && JSON.stringify(changes[key]) !== JSON.stringify(before[key]));
    sessionStorage.setItem("desk", JSON.stringify({ ...before, ...(other ? { rehearsed: null } : {}), ...changes }));
    document.dispatchEvent(new Event("desk"));
  },
};

export const nameOf = (path) => path.split("/").pop();
export const folderOf = (path) => path.split("/").slice(0, -1).join("/");

// --- work in the background ---

const PHASES = {
  waiting: "Waiting for other work to end", starting: "Starting", reading: "Reading the table", searching: "Looking for the best table", drawing: "Drawing",
  writing: "Writing", solving: "Finding parameters", checking: "Checking", auditing: "Auditing", done: "Done",
};

/** Start work, show how far it is, let it be stopped. Gives its result, or null if it was stopped. */
export async function work(place, request, { cancelled } = {}) {
  place.replaceChildren();
  const words = make("p", { class: "phase", role: "status" }, "Starting");
  const bar = make("progress", { max: "1", value: "0", "aria-label": "Progress" });
  const stop = make("button", { type: "button" }, "Stop");
  place.append(make("div", { class: "work" }, words, bar, stop));
  try {
    let job = await ask("/jobs", { method: "POST", body: request });
    stop.addEventListener("click", async () => {
      stop.disabled = true;
      words.textContent = "Stopping";
      await ask(`/jobs/${job.id}`, { method: "DELETE" }).catch(() => {});
    });
    for (let wait = 60; ["waiting", "running"].includes(job.state); wait = Math.min(400, wait * 1.3)) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      job = await ask(`/jobs/${job.id}`);
      if (stop.disabled) continue;
      const phase = PHASES[job.what] || job.what[0].toUpperCase() + job.what.slice(1);
      if (words.textContent !== phase) words.textContent = phase;
      bar.value = job.part;
    }
    place.replaceChildren();
    if (job.state === "cancelled") {
      place.append(make("p", { class: "phase", role: "status" }, cancelled || "Stopped. Nothing was left behind."));
      return null;
    }
    if (job.state === "failed") throw new Refusal(job.error);
    place.append(make("p", { class: "unseen", role: "status" }, "Done."));
    return { ...job.result, id: job.id };
  } catch (error) {
    place.replaceChildren();
    throw error;
  }
}

// --- files ---

/** A dialog to choose a file, or a folder that holds a release. Gives its path, or null. */
export function choose(kind, title) {
  const dialog = $("chooser");
  return new Promise((resolve) => {
    let chosen = null;
    const list = make("ul", { class: "files" });
    const where = make("p", { class: "path" });
    const trouble = make("div");
    const close = (path) => {
      chosen = path;
      dialog.close();
    };
    const show = async (folder) => {
      let found;
      try {
        found = await ask(`/files?kind=${kind}&folder=${encodeURIComponent(folder || "")}`);
      } catch (error) {
        showError(trouble, error);
        return;
      }
      where.textContent = found.folder;
      const item = (text, mark, action) =>
        make("li", {}, make("button", { type: "button", onclick: action }, make("span", { "aria-hidden": "true" }, mark), text));
      list.replaceChildren();
      if (found.parent) list.append(item("the folder above", "↑", () => show(found.parent)));
      for (const root of found.roots) {
        if (found.roots.length > 1 && root !== found.folder) list.append(item(root, "▣", () => show(root)));
      }
      for (const one of found.folders) {
        const isChosen = kind === "release" && one.release;
        list.append(item(one.name, isChosen ? "✓" : "▸", () => (isChosen ? close(one.path) : show(one.path))));
      }
      for (const file of found.files) list.append(item(file.name, "▤", () => close(file.path)));
      if (!list.children.length) list.append(make("li", {}, "Nothing to choose here."));
      list.querySelector("button")?.focus();
    };
    dialog.replaceChildren(
      make("h2", { id: "chooser-title" }, title),
      where, trouble, list,
      make("p", {}, make("button", { type: "button", onclick: () => dialog.close() }, "Cancel")),
    );
    dialog.onclose = () => resolve(chosen);
    dialog.showModal();
    show(null);
  });
}

export async function upload(file) {
  return ask("/uploads", { method: "POST", body: file, headers: { "X-File-Name": encodeURIComponent(file.name) } });
}

export function save(name, text, type = "text/plain") {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** A table chosen by path or upload: the fields that several pages have. */
export function tableFields(onchosen) {
  let data = null;
  const choosePath = async () => {
    const path = $("path").value.trim();
    if (path) data = { path };
    if (data) await onchosen(data);
    else showError($("look-error"), { error: { code: "data-missing", message: "No table is chosen.", remedy: "Write its path, browse for it or upload it." } });
  };
  $("browse").addEventListener("click", async () => {
    const path = await choose("table", "Choose a table");
    if (path) {
      $("path").value = path;
      await choosePath();
    }
  });
  $("look").addEventListener("click", choosePath);
  $("path").addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      choosePath();
    }
  });
  $("upload").addEventListener("change", async () => {
    const file = $("upload").files[0];
    if (!file) return;
    $("table-said").textContent = "Uploading…";
    try {
      const taken = await upload(file);
      $("path").value = "";
      data = { upload: taken.upload, name: taken.name };
      $("table-said").textContent = `${taken.name} is uploaded; it is removed when the studio ends.`;
      await onchosen(data);
    } catch (error) {
      $("table-said").textContent = "";
      showError($("look-error"), error);
    }
  });
}

// --- tabs, by the usual keys ---

export function tabs(list, onshown = () => {}) {
  const all = [...list.querySelectorAll('[role="tab"]')];
  const show = (tab, focus) => {
    for (const one of all) {
      const selected = one === tab;
      one.setAttribute("aria-selected", String(selected));
      one.tabIndex = selected ? 0 : -1;
      $(one.getAttribute("aria-controls")).hidden = !selected;
    }
    if (focus) tab.focus();
    onshown(tab.id.replace(/^tab-/, ""), $(tab.getAttribute("aria-controls")));
  };
  for (const [i, tab] of all.entries()) {
    tab.addEventListener("click", () => show(tab));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: all.length - 1 }[event.key];
      if (to !== undefined) {
        event.preventDefault();
        show(all[(to + all.length) % all.length], true);
      }
    });
  }
  show(all.find((tab) => tab.getAttribute("aria-selected") === "true") || all[0]);
  return (name) => show($(`tab-${name}`));
}
