// SPDX-License-Identifier: MIT
//
// The filters of the HTML report. Everything is readable without them. The part of the address
// after # can be a filter ("#verdict=fail&level=must&text=E2") or the name of a case.
"use strict";
(() => {
  const filters = document.getElementById("filters");
  const fields = ["text", "verdict", "level", "clause"].map((name) => filters.elements[name]);
  const items = Array.from(document.querySelectorAll("[data-verdict]"));
  const words = new Map(items.map((item) =>
    [item, (item.querySelector(".search") || item).textContent.toLowerCase()]));
  const count = filters.querySelector("output");

  const matches = (item) => fields.every((field) => {
    if (field.value === "") return true;
    if (field.name === "text") return words.get(item).includes(field.value.toLowerCase());
    return item.dataset[field.name] === field.value;
  });

  const apply = () => {
    let shown = 0;
    let all = 0;
    for (const item of items) {
      const isShown = matches(item);
      item.classList.toggle("hidden", !isShown);
      if (item.tagName !== "TR") continue;
      all += 1;
      if (isShown) shown += 1;
    }
    for (const section of document.querySelectorAll("section.articles")) {
      section.classList.toggle("hidden", !section.querySelector("article:not(.hidden)"));
    }
    count.value = `${shown} of ${all} cases`;
  };

  const remember = () => {
    const set = fields.filter((field) => field.value !== "");
    const words = new URLSearchParams(set.map((field) => [field.name, field.value])).toString();
    history.replaceState(null, "", words === "" ? location.pathname : `#${words}`);
    apply();
  };

  // A case may be hidden by a filter, and its details may be closed.
  const show = (id) => {
    const target = document.getElementById(id);
    if (target === null) return;
    for (const field of fields) field.value = "";
    apply();
    for (const details of target.querySelectorAll(":scope > details")) details.open = true;
    target.scrollIntoView();
  };

  const follow = () => {
    const hash = location.hash.slice(1);
    if (!hash.includes("=")) return show(hash);
    const words = new URLSearchParams(hash);
    for (const field of fields) field.value = words.get(field.name) || "";
    apply();
  };

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = Array.from(document.querySelectorAll("details:not([open])"));
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
  });
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#case-']");
    if (link !== null) show(link.getAttribute("href").slice(1));
  });
  filters.addEventListener("input", remember);
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.hidden = false;
  apply();
  follow();
})();
