// A chart drawn by uPlot that can be read without seeing it: hover and keyboard give its numbers, a table stands behind
// it, and a sentence stands for it where it is not seen.
//
//   const chart = Clifftop.chart(element, spec, {level: 3})
//   chart.update(spec); chart.feed(spec); chart.redraw(); chart.destroy()
//
// spec = {
//   title:  "…"             states the finding; it is the heading, of the level in the options
//   text, notes: "…", ["…"] stand below the title and below the chart
//   alt:    "…"             stands for the chart where it is not seen; made from the rest if absent
//   height: 300             in CSS pixels
//   empty:  "…"             is said instead of drawing anything
//   x, y:   {title, unit, log, min, max, hold, places}
//           unit is plain, number, ms, s, seconds, fraction or usd; where min equals max, or without them, the data
//           choose; hold are more values to make room for; places are the
//           names of the values 0, 1, 2 …
//   series: [{name, color, x: […], y: […], low: […], high: […], hollow: […], labels: […],
//             noLine, dots, dash, guide, step, fill}]
//           a guide is a thin line to compare with; hollow points had no steady state, and lines to them are dotted;
//           a step stays as it is up to the next point, and its last point only ends it; y may hold null
//   rules:  [{at, vertical, name, color}]
//   bands:  [{from, to, name}]             shade parts of the horizontal axis
//   marks:  [{x, y, text, shape, order}]   diamond, triangle or inverted; a text may have two lines; order is where
//           it should stand, such as ["northEast", "west"]
//   tags:   [{x, y, text, order}]          small texts, left out where there is no room
//   bars:   [{from, to, y, height, color, label, inside}]   horizontal; label is what hovering says, inside
//           stands in the bar where there is room
//   kinds:  [{name, color}]                names the colours of bars
//   zoom:   true                           the horizontal axis can be zoomed
//   table:  {columns: […], rows: [[…]]}    stands behind the chart; made from the series if absent
// }
//
// A color is blue, vermilion, green, purple, orange, sky, grey, pale or black: chart.css says what that is in the light and
// in the dark.
"use strict";

Clifftop.chart = (() => {
  const { value, oneTwoFive, linearTicks, logTicks } = Clifftop.format;
  const { element, disclosure } = Clifftop.table;
  const order = ["blue", "vermilion", "green", "purple", "orange", "sky"];
  let count = 0;

  const finite = (v) => v !== null && v !== undefined && Number.isFinite(v);

  // range holds values, with room above, on whole labels; a linear axis of amounts begins at 0.
  function range(axis, values, air) {
    const [min, max] = [axis.min || 0, axis.max || 0];
    if (min !== max) return [min, max];
    const held = values.filter((v) => finite(v) && (!axis.log || v > 0));
    if (!held.length) return axis.log ? [1, 10] : [0, 1];
    let lo = held.reduce((a, b) => Math.min(a, b)), hi = held.reduce((a, b) => Math.max(a, b));
    if (axis.log) {
      lo = Math.max(lo, hi / 1e8);
      const ends = [oneTwoFive(lo * 0.96, false), oneTwoFive(hi * 1.05, true)];
      return ends[0] < ends[1] ? ends : [ends[0] / 2, ends[1] * 2];
    }
    lo = Math.min(0, lo);
    if (lo === hi) hi = lo + 1;
    return [lo, hi + (hi - lo) * air];
  }

  class Chart {
    constructor(root, spec, options = {}) {
      this.root = root;
      this.options = { level: 3, ...options };
      this.id = `chart-${++count}`;
      this.observer = new ResizeObserver(() => this.resize());
      this.build(spec);
    }

    build(spec) {
      this.spec = spec;
      this.hidden = new Set();
      this.at = null; // the point that the keyboard or the pointer is at
      const title = element(`h${this.options.level}`, { id: this.id + "-title", class: "chart-title" }, spec.title);
      this.plot = element("div", { class: "chart-plot" });
      this.hover = element("div", { class: "chart-hover", hidden: true });
      this.live = element("div", { class: "visually-hidden", "aria-live": "polite" });
      this.figure = element("figure", { class: "chart", "aria-labelledby": this.id + "-title" });
      this.figure.append(title);
      if (spec.text) this.figure.append(element("p", { class: "chart-text" }, spec.text));
      if (spec.empty) {
        this.figure.append(element("p", { class: "chart-empty" }, spec.empty));
      } else {
        this.figure.append(this.legend(), element("div", { class: "chart-axis-y" }, spec.y.title || ""), this.plot,
          element("div", { class: "chart-axis-x" }, spec.x.title || ""));
        if (spec.zoom) this.figure.append(this.zoomButtons());
      }
      for (const note of spec.notes || []) this.figure.append(element("p", { class: "chart-note" }, note));
      if (!spec.empty) this.figure.append(disclosure(() => this.spec), this.live);
      this.root.replaceChildren(this.figure);
      if (spec.empty) return;
      this.measure();
      this.draw();
      this.listen();
      this.observer.observe(this.plot);
    }

    // update draws another spec in the place of this one.
    update(spec) {
      const focused = document.activeElement === this.plot;
      this.observer.disconnect();
      if (this.u) this.u.destroy();
      this.u = null;
      this.build(spec);
      if (focused) this.plot.focus();
    }

    // feed draws new values of the same lines. What the reader has hidden, opened or focused stays so.
    feed(spec) {
      if (!this.u || spec.empty || spec.series.length !== this.spec.series.length) {
        this.update(spec);
        return;
      }
      this.spec = spec;
      this.measure();
      this.u.setData([null, ...spec.series.map((s) => [s.x, s.y])]);
    }

    destroy() {
      this.observer.disconnect();
      if (this.u) this.u.destroy();
      this.root.replaceChildren();
    }

    // redraw takes colours anew, and the width, which is otherwise that of the page.
    redraw(width) {
      if (!this.u) return;
      this.u.destroy();
      this.draw(width);
    }

    resize() {
      const width = this.plot.clientWidth;
      if (this.u && width && Math.abs(width - this.u.width) > 1) this.u.setSize({ width, height: this.height() });
    }

    height() { return this.spec.height || 300; }

    color(name) {
      return getComputedStyle(this.root).getPropertyValue(`--chart-${name}`).trim() || "#888";
    }

    colorOf(i) {
      const s = this.spec.series[i];
      return this.color(s.color || (s.guide ? "grey" : order[i % order.length]));
    }

    // measure finds the whole range of the axes, which is what zooming goes back to.
    measure() {
      const { spec } = this;
      const series = spec.series || [], bars = spec.bars || [];
      const real = series.filter((s) => !s.guide);
      const xs = real.flatMap((s) => s.x).concat(bars.flatMap((b) => [b.from, b.to]));
      const ys = real.flatMap((s) => s.y.concat(s.low || [], s.high || []))
        .concat((spec.rules || []).filter((r) => !r.vertical).map((r) => r.at), spec.y.hold || []);
      this.whole = { x: range(spec.x, xs, 0.03), y: range(spec.y, ys, 0.1) };
      this.view = { x: [...this.whole.x], y: [...this.whole.y] };
      const ascending = (s) => s.x.every((x, i) => i === 0 || x >= s.x[i - 1]);
      this.nearest = !spec.scatter && real.every(ascending) ? "x" : "point";
    }

    legend() {
      const { spec } = this;
      const legend = element("ul", { class: "chart-legend" });
      (spec.series || []).forEach((s, i) => {
        if (!s.name) return;
        const swatch = element("span", { class: "chart-swatch" + (s.guide || s.dash ? " dashed" : ""), "aria-hidden": "true" });
        swatch.style.color = `var(--chart-${s.color || (s.guide ? "grey" : order[i % order.length])})`;
        const button = element("button", { type: "button", "aria-pressed": "true", title: "Show or hide" }, swatch, s.name);
        button.addEventListener("click", () => {
          const hide = !this.hidden.has(i);
          hide ? this.hidden.add(i) : this.hidden.delete(i);
          button.setAttribute("aria-pressed", String(!hide));
          this.u.setSeries(i + 1, { show: !hide });
        });
        legend.append(element("li", {}, button));
      });
      for (const k of spec.kinds || []) {
        const swatch = element("span", { class: "chart-swatch block", "aria-hidden": "true" });
        swatch.style.color = `var(--chart-${k.color})`;
        legend.append(element("li", {}, element("span", { class: "chart-kind" }, swatch, k.name)));
      }
      return legend;
    }

    zoomButtons() {
      const button = (text, label, act) => {
        const b = element("button", { type: "button", "aria-label": label, title: label }, text);
        b.addEventListener("click", act);
        return b;
      };
      return element("div", { class: "chart-zoom", role: "group", "aria-label": "Zoom" },
        button("−", "Zoom out", () => this.zoom(2)), button("+", "Zoom in", () => this.zoom(0.5)),
        button("←", "Earlier", () => this.pan(-0.5)), button("→", "Later", () => this.pan(0.5)),
        button("Whole", "Show the whole chart", () => this.show(...this.whole.x)));
    }

    // show sets the part of the horizontal axis that is seen.
    show(from, to) {
      const [lo, hi] = this.whole.x;
      const width = Math.min(Math.max(to - from, (hi - lo) * 1e-5), hi - lo);
      from = Math.min(Math.max(from, lo), hi - width);
      this.view.x = [from, from + width];
      this.u.setScale("x", { min: from, max: from + width });
    }

    zoom(factor) {
      const [from, to] = this.view.x, half = ((to - from) * factor) / 2, middle = (from + to) / 2;
      this.show(middle - half, middle + half);
    }

    pan(share) {
      const [from, to] = this.view.x, by = (to - from) * share;
      this.show(from + by, to + by);
    }

    draw(width) {
      const { spec } = this;
      const series = (spec.series || []).map((s, i) => ({
        facets: [{ scale: "x", auto: true }, { scale: "y", auto: true }],
        label: s.name || "",
        stroke: () => this.colorOf(i),
        fill: s.fill ? () => this.colorOf(i) + "2e" : undefined,
        width: s.guide ? 1 : 2,
        dash: s.dash || s.guide ? [5, 4] : undefined,
        points: { show: false },
        show: !this.hidden.has(i),
        paths: (u, si) => this.path(u, si - 1),
      }));
      const data = (spec.series || []).map((s) => [s.x, s.y]);
      if (!series.length) { // uPlot wants one
        series.push({ facets: [{ scale: "x", auto: true }, { scale: "y", auto: true }], points: { show: false }, paths: () => null });
        data.push([[], []]);
      }
      this.u = new uPlot({
        mode: 2,
        width: width || this.plot.clientWidth || 600,
        height: this.height(),
        padding: [spec.marks && spec.marks.length ? 14 : 10, 26, 4, 4],
        legend: { show: false },
        focus: { alpha: 1 },
        scales: {
          x: { time: false, distr: spec.x.log ? 3 : 1, range: () => this.view.x },
          y: { distr: spec.y.log ? 3 : 1, range: () => this.view.y },
        },
        axes: [this.axis("x"), this.axis("y")],
        series: [null, ...series],
        cursor: {
          x: this.nearest === "x" && !spec.bars, y: false,
          points: { show: false }, dataIdx: () => null,
          drag: { x: Boolean(spec.zoom), y: false, setScale: false },
          bind: { dblclick: () => () => { this.show(...this.whole.x); return null; } },
        },
        hooks: {
          drawClear: [(u) => this.paper(u)],
          draw: [(u) => this.front(u)],
          setCursor: [(u) => this.pointed(u)],
          setSelect: [(u) => this.selected(u)],
        },
      }, [null, ...data], this.plot);
      this.u.over.append(this.hover);
      const alt = this.alt();
      this.u.root.setAttribute("aria-hidden", "true");
      this.plot.setAttribute("tabindex", "0");
      this.plot.setAttribute("role", "application");
      this.plot.setAttribute("aria-roledescription", "chart");
      this.plot.setAttribute("aria-label", alt);
    }

    // alt returns the description for screen readers.
    alt() {
      const { spec } = this;
      if (spec.alt) return spec.alt;
      const names = (spec.series || []).filter((s) => s.name && !s.guide).map((s) => s.name);
      const lanes = (spec.y.places || []).filter(Boolean);
      const what = lanes.length ? `${lanes.join(", ")}; across: ${spec.x.title}.`
        : `${spec.y.title} against ${spec.x.title}${names.length ? ": " + names.join(", ") : ""}.`;
      return `${spec.title}. ${what} Use the arrow keys to move between values. A table with the numbers follows.`;
    }

    axis(key) {
      const axis = this.spec[key];
      const horizontal = key === "x";
      const ticks = (u, i, min, max) => {
        if (axis.places) return axis.places.map((_, k) => k);
        const size = (horizontal ? u.bbox.width : u.bbox.height) / devicePixelRatio;
        const n = Math.floor(size / (!horizontal ? 40 : axis.unit === "ms" ? 66 : 54));
        return axis.log ? logTicks(min, max, n) : linearTicks(min, max, n);
      };
      const text = (v) => axis.places ? axis.places[v] || "" : value(v, axis.unit);
      return {
        scale: key,
        side: horizontal ? 2 : 3,
        stroke: () => this.color("text"),
        grid: { stroke: () => this.color("hairline"), width: 1, show: !axis.places },
        ticks: { show: false },
        font: "12px system-ui, sans-serif",
        gap: 6,
        size: horizontal ? 26 : (u, values) => {
          const ctx = u.ctx;
          ctx.save();
          ctx.font = "12px system-ui, sans-serif";
          const width = Math.max(24, ...(values || []).map((v) => ctx.measureText(v || "").width));
          ctx.restore();
          return Math.ceil(width) + 10;
        },
        splits: ticks,
        filter: (u, splits) => splits,
        values: (u, splits) => splits.map(text),
      };
    }
  }
  Object.assign(Chart.prototype, Clifftop.painting, Clifftop.talking);

  return (root, spec, options) => new Chart(root, spec, options);
})();
