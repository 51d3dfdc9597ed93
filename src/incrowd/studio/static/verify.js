// Verify: a folder is dropped or chosen, sent file by file, checked, and gone.

import { $, ask, showError, upload, work } from "./studio.js";
import { verification } from "./verification.js";

const LEFT_BY_SYSTEMS = new Set([".DS_Store", "Thumbs.db", "desktop.ini"]);

/** The files of a dropped folder with their paths inside it; a folder's reader gives them in parts. */
async function inside(entry, above) {
  if (entry.isFile) return [[above + entry.name, await new Promise((resolve, reject) => entry.file(resolve, reject))]];
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!part.length) return found;
    for (const one of part) found.push(...(await inside(one, `${above}${entry.name}/`)));
  }
}

/** The folder that holds the certificate is the release: what is above it is no part of its files' names. */
function within(files) {
  const top = files.map(([path]) => path).filter((path) => /(^|\/)certificate(\.void)?\.json$/.test(path))
    .sort((a, b) => a.split("/").length - b.split("/").length)[0];
  const above = top === undefined ? "" : top.slice(0, top.lastIndexOf("/") + 1);
  return files.filter(([path]) => path.startsWith(above) && !LEFT_BY_SYSTEMS.has(path.split("/").pop()))
    .map(([path, file]) => [path.slice(above.length), file]);
}

async function check(given) {
  const files = within(given);
  showError($("error"), null);
  $("result").replaceChildren();
  if (!files.length) return;
  let folder = null;
  let key = null;
  try {
    folder = (await ask("/dropped", { method: "POST", body: {} })).dropped;
    for (const [i, [path, file]] of files.entries()) {
      $("said").textContent = `Reading ${path}, ${i + 1} of ${files.length}`;
      await ask(`/dropped/${folder}`, { method: "POST", body: file, headers: { "X-File-Name": encodeURIComponent(path) } });
    }
    if ($("key").files[0]) key = (await upload($("key").files[0])).upload;
    $("said").textContent = "";
    const found = await work($("progress"), { kind: "verify", dropped: folder, key, rigorous: $("rigorous").checked });
    if (!found) return;
    $("result").replaceChildren(verification(found));
    $("said").textContent = `${files.length === 1 ? "One file was" : `${files.length} files were`} looked at; none of them is kept.`;
  } catch (error) {
    $("said").textContent = "";
    showError($("error"), error);
  } finally {
    if (folder) await ask(`/dropped/${folder}`, { method: "DELETE" }).catch(() => {});
    if (key) await ask(`/uploads/${key}`, { method: "DELETE" }).catch(() => {});
  }
}

for (const id of ["folder-files", "loose-files"]) {
  $(id).addEventListener("change", async () => {
    await check([...$(id).files].map((file) => [file.webkitRelativePath || file.name, file]));
    $(id).value = "";
  });
}
// Without this a browser would leave the page and open what is dropped beside the field.
for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => event.preventDefault());
document.addEventListener("dragover", () => $("drop").classList.add("over"));
document.addEventListener("dragleave", (event) => event.relatedTarget || $("drop").classList.remove("over"));
document.addEventListener("drop", async (event) => {
  $("drop").classList.remove("over");
  const loose = [...event.dataTransfer.files].map((file) => [file.name, file]);
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const found = entries.length ? [] : loose; // where folders cannot be read, their files are all there is
  for (const entry of entries) found.push(...(await inside(entry, "")));
  await check(found);
});
