// How a text file is read: what is left open is found out, and what is said is tried on its first lines.

import { $, ask, choose, make, showError } from "./studio.js";

/** `data` and `base` give what is being looked at, `again` looks at it anew. */
export function readingForm({ data, base = () => null, again }) {
  // With a code book a policy is drafted, which finds out about decimals; without one nothing does.
  const FIELDS = ["encoding", "delimiter", $("codebook") ? "codebook" : "decimal"];
  const said = () => Object.fromEntries(FIELDS.map((key) => [key, $(key).value.trim()]).filter(([, value]) => value));

  function put(id, value) {
    const select = $(id);
    if (value && select.options && ![...select.options].some((option) => option.value === value)) select.append(make("option", { value }, value));
    select.value = value || "";
  }

  async function preview(more = {}) {
    const { codebook, decimal, ...how } = said();
    const place = $("preview");
    try {
      const found = await ask("/table/preview", { method: "POST", body: { data: data(), base: base(), reading: how, ...more } });
      const [head, ...lines] = found.lines;
      const signs = { ",": "commas", ";": "semicolons", tab: "tabs", "|": "bars" };
      place.replaceChildren(
        make("p", { class: "keep" }, "The first lines of the true table: for your eyes only."),
        make("p", { class: "hint" }, `Read as ${found.encoding}, with ${signs[found.delimiter] || found.delimiter} between fields. Are all letters right?`),
        make("div", { class: "wide", role: "region", "aria-label": "The first lines", tabindex: "0" }, make("table", {},
          make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, make("bdi", {}, name))))),
          make("tbody", {}, ...lines.map((line) => make("tr", {}, ...line.map((field) => make("td", {}, make("bdi", {}, field)))))))));
      return found;
    } catch (error) {
      showError(place, error);
      return null;
    }
  }

  for (const id of ["encoding", "delimiter"]) $(id).addEventListener("change", () => data() && preview());
  $("browse-codebook")?.addEventListener("click", async () => {
    const path = await choose("codebook", "Choose a code book");
    if (path) $("codebook").value = path;
  });
  $("reading").addEventListener("toggle", () => {
    if ($("reading").open && data() && !$("preview").children.length) preview();
  });
  $("read-again").addEventListener("click", () => {
    if (data()) again();
    else showError($("look-error"), { error: { code: "data-missing", message: "No table is chosen.", remedy: "Write its path, browse for it or upload it." } });
  });

  return {
    said,
    show(how) {
      for (const key of FIELDS) put(key, how?.[key] === "\t" ? "tab" : how?.[key]);
      put("decimal", how?.decimal);
      $("preview").replaceChildren();
    },
    clear() {
      for (const key of new Set([...FIELDS, "decimal"])) put(key, "");
      $("preview").replaceChildren();
    },
    /** A file that could not be read leads here: what would fit is proposed, and shown. */
    async help(code) {
      if (!["data-encoding", "data-malformed", "counts-file"].includes(code)) return;
      const wrong = $("encoding").value || "utf-8";
      if (code === "data-encoding") put("encoding", "");
      $("reading").open = true;
      const found = await preview(code === "data-encoding" ? { unfit: [wrong] } : {});
      if (found && code === "data-encoding") {
        put("encoding", found.encoding);
        showError($("look-error"), { error: {
          code, message: `This file is not text in ${wrong}. It can be read as ${found.encoding}.`,
          remedy: "If all letters below are right, read it so. Otherwise choose another encoding.",
        } });
      }
      $("encoding").focus();
      $("reading").scrollIntoView({ block: "nearest" });
    },
    done() {
      $("reading").open = false;
      $("preview").replaceChildren();
    },
    /** A policy that was kept says how its table is read, too. */
    async write(edit, content) {
      const wanted = { ...Object.fromEntries(["encoding", "delimiter", "decimal"].map((key) => [key, $(key).value]).filter(([, value]) => value)) };
      const now = content.data || {};
      const changes = Object.entries(wanted)
        .filter(([key, value]) => (now[key] || { encoding: "utf-8", decimal: "." }[key]) !== value)
        .filter(([key, value]) => !(key === "delimiter" && value === "tab" && now.delimiter === "\t"))
        .map(([key, value]) => ({ place: ["data", key], content: value }));
      if (changes.length) await edit(changes);
    },
  };
}
