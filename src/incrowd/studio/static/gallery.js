// Gallery: the papers' tables and figures, drawn when they are asked for.

import { $, make, showError, work } from "./studio.js";

$("draw").addEventListener("click", async () => {
  $("draw").disabled = true;
  showError($("error"), null);
  $("place").replaceChildren();
  try {
    const drawn = await work($("progress"), { kind: "figures", only: $("figure").value ? [$("figure").value] : [] });
    if (drawn) {
      $("place").append(make("section", {},
        make("div", { class: "row head" }, make("h2", {}, "What came out"), make("span", { class: "grow" }),
          make("a", { class: "button", href: `/jobs/${drawn.id}/report?save`, download: true }, "Save")),
        make("iframe", { sandbox: "", title: "The gallery", src: `/jobs/${drawn.id}/report` })));
    }
  } catch (error) {
    showError($("error"), error);
  }
  $("draw").disabled = false;
});
