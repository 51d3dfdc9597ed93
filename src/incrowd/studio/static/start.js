// Start: an example, a table or policy of one's own, or what was worked on last.

import { $, ask, choose, desk, showError, upload, work } from "./studio.js";

const go = (page) => { location.href = page; };
// Whatever is opened here begins anew: nothing of the table and the policy before stays on the desk.
const clear = { data: null, text: null, path: null, base: null, valid: null, open: null, draft: null, released: null, looked: null, named: null };

async function tried(action) {
  showError($("start-error"), null);
  try {
    await action();
  } catch (error) {
    showError($("start-error"), error);
  }
}

function openTable(data) {
  desk.set({ ...clear, data });
  go("/data");
}

async function openPolicy(path, data = null) {
  const { text, base } = await ask(`/policy/open?path=${encodeURIComponent(path)}`);
  const checked = await ask("/policy/check", { method: "POST", body: { text, base } });
  const named = checked.content?.data?.path;
  const own = typeof named === "string" && !named.includes("://") ? { path: named.startsWith("/") ? named : `${base}/${named}` } : null;
  desk.set({ ...clear, data: data || own, text, path, base, valid: checked.valid, open: Object.keys(checked.unconfirmed).length, named: Boolean(named) });
  return checked;
}

for (const button of document.querySelectorAll("[data-example]")) {
  button.addEventListener("click", () => tried(async () => {
    const made = await work($("start-progress"), { kind: "example", name: button.dataset.example });
    if (!made) return;
    const [table, policy] = button.dataset.table === "1" ? made.files : [null, made.files[0]];
    await openPolicy(policy, table && { path: table });
    go(table ? "/data" : "/collect");
  }));
}

const open = {
  table: (path) => openTable({ path }),
  policy: async (path) => {
    const { content } = await openPolicy(path);
    go(content?.data?.path || content?.release?.mechanism !== "pram" ? "/data" : "/collect");
  },
  release: (path) => {
    desk.set({ released: path });
    const seen = document.querySelector('[data-step="seen"] a').getAttribute("href");
    go(seen.split("#")[0]);
  },
};
for (const button of document.querySelectorAll("[data-open]")) {
  button.addEventListener("click", () => tried(() => open[button.dataset.open](button.dataset.path)));
}

$("own-browse").addEventListener("click", async () => {
  const path = await choose("table", "Choose a table");
  if (path) openTable({ path });
});
$("own-policy").addEventListener("click", async () => {
  const path = await choose("policy", "Open a policy");
  if (path) tried(() => open.policy(path));
});
$("own-upload").addEventListener("change", () => tried(async () => {
  const file = $("own-upload").files[0];
  if (!file) return;
  const taken = await upload(file);
  openTable({ upload: taken.upload, name: taken.name });
}));

for (const time of document.querySelectorAll("[data-when]")) {
  const when = new Date(1000 * Number(time.dataset.when));
  time.dateTime = when.toISOString();
  const today = when.toDateString() === new Date().toDateString();
  time.textContent = today ? when.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false }) : when.toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" });
}
