// The page: draws the charts, and changes between light and dark.
"use strict";

(() => {
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const slots = [...document.querySelectorAll("[data-chart]")];
  const charts = slots.map((slot) => {
    const section = slot.closest("section");
    const spec = specs[Number(slot.dataset.chart)];
    if (!spec.title) spec.title = section.getAttribute("aria-label");
    return Clifftop.chart(slot, spec, { level: 3 });
  });
  const redraw = (width) => charts.forEach((c) => c.redraw(width));

  // The button goes to the other theme; without it the system decides.
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    label();
    redraw();
  });
  system.addEventListener("change", () => { label(); redraw(); });
  button.hidden = false;
  label();

  // Paper is white and has a width of its own.
  const paper = matchMedia("print");
  let before = "";
  paper.addEventListener("change", () => {
    if (paper.matches) {
      before = root.dataset.theme || "";
      root.dataset.theme = "light";
      redraw(640);
      return;
    }
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    redraw();
  });
})();
