"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const rows = all("#runs tbody tr");
  const wanted = { scenario: one("#by-scenario"), verdict: one("#by-verdict"), agent: one("#by-agent"), tenant: one("#by-tenant") };
  const search = one("#by-text");
  const count = one("#shown");
  const filter = () => {
    const text = search.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = Object.entries(wanted).every(([name, list]) => !list || !list.value || row.dataset[name] === list.value)
        && (!text || row.textContent.toLowerCase().includes(text));
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    const total = `${rows.length} ${rows.length === 1 ? "run" : "runs"}`;
    count.textContent = shown === rows.length ? total : `${shown} of ${total}`;
  };
  for (const list of Object.values(wanted)) list?.addEventListener("change", filter);
  search?.addEventListener("input", filter);
  if (search) filter();
  for (const button of all("button.copy")) {
    button.addEventListener("click", async () => {
      const code = button.previousElementSibling;
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
  const open = () => {
    const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    if (target?.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();
})();
