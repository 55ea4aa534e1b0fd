// The table behind a chart: what is drawn, as numbers.
"use strict";

Clifftop.table = (() => {
  const { value } = Clifftop.format;

  function element(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes || {})) {
      if (v !== undefined && v !== null && v !== false) e.setAttribute(k, v === true ? "" : v);
    }
    e.append(...children);
    return e;
  }

  // rowsOf makes rows of a spec: one for each x where series share them, and one for each bar.
  function rowsOf(spec) {
    if (spec.table) return spec.table;
    if (spec.bars && spec.bars.length) {
      const places = spec.y.places || [];
      return {
        columns: ["", "what", "from", "to"],
        rows: spec.bars.map((b) => [places[b.y] || "", b.label || "", value(b.from, spec.x.unit, 6), value(b.to, spec.x.unit, 6)]),
      };
    }
    const series = (spec.series || []).filter((s) => !s.guide && s.x.length);
    const shared = series.every((s) => s.x.length === series[0].x.length && s.x.every((x, i) => x === series[0].x[i]));
    const labelled = shared && series.some((s) => s.labels);
    if (shared && series.length) {
      const labels = (series.find((s) => s.labels) || {}).labels;
      return {
        columns: [...(labelled ? [spec.labelTitle || "load"] : []), spec.x.title, ...series.map((s) => s.name || spec.y.title)],
        rows: series[0].x.map((x, i) => [
          ...(labelled ? [labels[i] ?? ""] : []), value(x, spec.x.unit, 5), ...series.map((s) => value(s.y[i], spec.y.unit, 4)),
        ]),
      };
    }
    return {
      columns: ["line", spec.x.title, spec.y.title],
      rows: series.flatMap((s) => s.x.map((x, i) => [
        [s.name, s.labels && s.labels[i]].filter(Boolean).join(", "), value(x, spec.x.unit, 5), value(s.y[i], spec.y.unit, 4),
      ])),
    };
  }

  // build is the table as an element.
  function build(spec) {
    const { columns, rows } = rowsOf(spec);
    const head = element("tr", {}, ...columns.map((c) => element("th", { scope: "col" }, c)));
    const body = rows.map((row) => element("tr", {}, ...row.map((cell, i) =>
      i === 0 ? element("th", { scope: "row" }, String(cell)) : element("td", {}, String(cell)))));
    const table = element("table", {}, element("caption", {}, spec.title), element("thead", {}, head), element("tbody", {}, ...body));
    return element("div", { class: "chart-table", role: "region", tabindex: "0", "aria-label": "Numbers: " + spec.title }, table);
  }

  // disclosure shows the table on demand, with the numbers at the time when it is opened. latest returns the spec.
  function disclosure(latest) {
    const summary = element("summary", {}, "Numbers");
    const details = element("details", { class: "chart-numbers" }, summary);
    details.addEventListener("toggle", () => {
      if (details.open) details.replaceChildren(summary, build(latest()));
    });
    return details;
  }

  return { element, build, disclosure };
})();
