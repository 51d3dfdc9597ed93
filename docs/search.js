// Search in the pages, in the browser alone: the words of every part of a page come with the site (search-index.js).

const field = document.getElementById("search");
const found = document.getElementById("found");
const MOST = 12;
let parts = null;

/** Parts that have all words, those that have them in a heading first. */
function search(words) {
  const score = ([, , title, heading, text]) => {
    let sum = 0;
    for (const word of words) {
      if (heading.toLowerCase().includes(word)) sum += 4;
      else if (title.toLowerCase().includes(word)) sum += 2;
      else if (text.includes(word)) sum += 1;
      else return 0;
    }
    return sum;
  };
  return parts.map((part) => [score(part), part]).filter(([sum]) => sum).sort(([a], [b]) => b - a).slice(0, MOST);
}

function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.hidden = !words.length || !parts;
  if (found.hidden) return;
  const hits = search(words);
  found.replaceChildren(...hits.map(([, [page, anchor, title, heading]]) => {
    const link = document.createElement("a");
    link.href = `${page}.html${anchor ? `#${anchor}` : ""}`;
    link.textContent = heading === title ? title : `${title}: ${heading}`;
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
  if (!hits.length) found.textContent = "Nothing has all of these words.";
}

document.getElementById("searching").hidden = false;
field.addEventListener("input", show);
field.addEventListener("focus", () => {
  const script = document.createElement("script");
  script.src = "search-index.js";
  script.addEventListener("load", () => { parts = window.incrowdParts; show(); });
  document.head.append(script);
}, { once: true });
field.form.addEventListener("submit", (event) => {
  event.preventDefault();
  found.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !found.hidden) found.hidden = true;
  else if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); field.focus(); }
});
