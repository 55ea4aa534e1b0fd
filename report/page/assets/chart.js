// A chart drawn by uPlot that can be read without seeing it: hover and keyboard give its numbers, a table stands behind
// it, and a sentence stands for it where it is not seen.
//
//   const chart = Clifftop.chart(element, spec, {level: 3})
//   chart.update(spec); chart.redraw(); chart.destroy()
//
// spec = {
//   title:  "…"             states the finding; it is the heading, of the level in the options
//   text, notes: "…", ["…"] stand below the title and below the chart
//   alt:    "…"             stands for the chart where it is not seen; made from the rest if absent
//   height: 300             in CSS pixels
//   empty:  "…"             is said instead of drawing anything
//   x, y:   {title, unit, log, min, max, places}
//           unit is plain, number, ms, s, fraction or usd; where min equals max the data choose; places are the
//           names of the values 0, 1, 2 …
//   series: [{name, color, x: […], y: […], low: […], high: […], hollow: […], labels: […],
//             line, dots, dash, guide, step, fill}]
//           line is true unless it is false; a guide is a thin line to compare with; hollow points had no steady
//           state, and lines to them are dotted; y may hold null
//   rules:  [{at, vertical, name, color}]
//   bands:  [{from, to, name}]             shade parts of the horizontal axis
//   marks:  [{x, y, name, shape}]          diamond, triangle or inverted; a name may have two lines
//   tags:   [{x, y, text}]                 small texts, left out where there is no room
//   bars:   [{from, to, y, height, color, label, inside}]   horizontal; label is what hovering says
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
  const { Placer } = Clifftop.labels;
  const order = ["blue", "vermilion", "green", "purple", "orange", "sky"];
  let count = 0;

  const finite = (v) => v !== null && v !== undefined && Number.isFinite(v);

  // range holds values, with room above, on whole labels; a linear axis of amounts begins at 0.
  function range(axis, values, air) {
    if (axis.min !== undefined && axis.max !== undefined && axis.min !== axis.max) return [axis.min, axis.max];
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
      if (!spec.empty) this.figure.append(disclosure(spec), this.live);
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

    destroy() {
      this.observer.disconnect();
      if (this.u) this.u.destroy();
      this.root.replaceChildren();
    }

    // redraw takes colours and sizes anew.
    redraw() {
      if (!this.u) return;
      this.u.destroy();
      this.draw();
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
        button("Whole", "Show the whole", () => this.show(...this.whole.x)));
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

    draw() {
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
        width: this.plot.clientWidth || 600,
        height: this.height(),
        padding: [spec.marks && spec.marks.length ? 14 : 10, 14, 4, 4],
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

    // alt is a sentence for those who do not see the chart.
    alt() {
      const { spec } = this;
      if (spec.alt) return spec.alt;
      const names = (spec.series || []).filter((s) => s.name && !s.guide).map((s) => s.name);
      const lanes = (spec.y.places || []).filter(Boolean);
      const what = lanes.length ? `${lanes.join(", ")}; across: ${spec.x.title}.`
        : `${spec.y.title} against ${spec.x.title}${names.length ? ": " + names.join(", ") : ""}.`;
      return `${spec.title}. ${what} Arrow keys go from value to value; the numbers follow in a table.`;
    }

    axis(key) {
      const axis = this.spec[key];
      const horizontal = key === "x";
      const ticks = (u, i, min, max) => {
        if (axis.places) return axis.places.map((_, k) => k);
        const size = (horizontal ? u.bbox.width : u.bbox.height) / devicePixelRatio;
        const n = Math.floor(size / (horizontal ? 76 : 40));
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

    // path is the line of a series where it is solid.
    path(u, i) {
      const s = this.spec.series[i];
      const stroke = new Path2D(), fill = s.fill ? new Path2D() : null;
      if (s.line === false) return { stroke, fill, clip: null, band: null, gaps: null, flags: 0 };
      const base = u.valToPos(u.scales.y.min, "y", true);
      let last = null, first = null;
      const close = () => { if (fill && last) { fill.lineTo(last[0], base); fill.lineTo(first[0], base); } };
      this.pieces(u, s, (x, y, loose) => {
        if (x === null) { close(); last = null; return; }
        if (!last) { stroke.moveTo(x, y); first = [x, y]; if (fill) fill.moveTo(x, y); }
        else if (s.step) { stroke.lineTo(x, last[1]); stroke.lineTo(x, y); if (fill) { fill.lineTo(x, last[1]); fill.lineTo(x, y); } }
        else if (loose) { stroke.moveTo(x, y); if (fill) fill.lineTo(x, y); }
        else { stroke.lineTo(x, y); if (fill) fill.lineTo(x, y); }
        last = [x, y];
      });
      close();
      return { stroke, fill, clip: null, band: null, gaps: null, flags: 0 };
    }

    // pieces visits the points of a series in pixels, with null where it is broken.
    pieces(u, s, visit) {
      const { x: sx, y: sy } = this.spec;
      for (let k = 0; k < s.x.length; k++) {
        const ok = finite(s.x[k]) && finite(s.y[k]) && (!sx.log || s.x[k] > 0) && (!sy.log || s.y[k] > 0);
        if (!ok) { visit(null); continue; }
        const loose = Boolean(s.hollow && (s.hollow[k] || (k > 0 && s.hollow[k - 1])));
        visit(u.valToPos(s.x[k], "x", true), u.valToPos(s.y[k], "y", true), loose, k);
      }
    }

    // paper draws what lies behind the lines.
    paper(u) {
      const { ctx, bbox } = u;
      const ratio = devicePixelRatio;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      for (const b of this.spec.bands || []) {
        const from = Math.max(u.valToPos(Math.max(b.from, u.scales.x.min), "x", true), bbox.left);
        const to = Math.min(u.valToPos(Math.min(b.to, u.scales.x.max), "x", true), bbox.left + bbox.width);
        ctx.fillStyle = this.color("shade");
        if (to > from) ctx.fillRect(from, bbox.top, to - from, bbox.height);
      }
      for (const b of this.spec.bars || []) {
        const box = this.box(u, b);
        ctx.fillStyle = this.color(b.color || "blue");
        ctx.fillRect(box.x, box.y, Math.max(box.w - (box.w > 3 * ratio ? ratio : 0), ratio), box.h);
      }
      ctx.restore();
    }

    // box is the place of a bar in the canvas's pixels.
    box(u, b) {
      const x = u.valToPos(b.from, "x", true), w = u.valToPos(b.to, "x", true) - x;
      const half = (b.height || 0.7) / 2;
      const top = u.valToPos(b.y + half, "y", true), bottom = u.valToPos(b.y - half, "y", true);
      return { x, y: Math.min(top, bottom), w, h: Math.abs(bottom - top) };
    }

    // front draws dots, bars of error, rules and texts, which stand before the lines.
    front(u) {
      const { ctx, bbox } = u, { spec } = this, ratio = devicePixelRatio;
      const area = { x: bbox.left, y: bbox.top, w: bbox.width, h: bbox.height };
      const placer = new Placer(ctx, { ...area, y: area.y - 12 * ratio, h: area.h + 12 * ratio }, ratio);
      const ink = { color: this.color("text"), halo: this.color("paper") };
      const inside = (x, y) => x >= area.x - 1 && x <= area.x + area.w + 1 && y >= area.y - 1 && y <= area.y + area.h + 1;
      ctx.save();
      (spec.series || []).forEach((s, i) => { if (!this.hidden.has(i)) this.dots(u, s, i, placer, inside); });
      for (const r of spec.rules || []) this.rule(u, r, area);
      const marks = (spec.marks || []).map((m) => ({ ...m, px: u.valToPos(m.x, "x", true), py: u.valToPos(m.y, "y", true) }))
        .filter((m) => inside(m.px, m.py));
      for (const m of marks) {
        shape(ctx, m.shape, m.px, m.py, 6 * ratio, ink);
        placer.take({ x: m.px - 7 * ratio, y: m.py - 7 * ratio, w: 14 * ratio, h: 14 * ratio });
      }
      for (const m of marks) placer.text(m.name.split("\n"), m.px, m.py, { ...ink, bold: true, near: 9, far: 90, order: m.order });
      for (const r of spec.rules || []) this.nameRule(u, r, area, placer, ink);
      for (const b of spec.bands || []) this.nameBand(u, b, area, placer, ink);
      for (const b of spec.bars || []) this.nameBar(u, b, placer, ink);
      for (const t of spec.tags || []) {
        const x = u.valToPos(t.x, "x", true), y = u.valToPos(t.y, "y", true);
        if (inside(x, y)) placer.text(t.text.split("\n"), x, y, { color: this.color("muted"), halo: ink.halo, near: t.near || 6, far: 30, size: 11, order: t.order });
      }
      ctx.restore();
    }

    dots(u, s, i, placer, inside) {
      const { ctx } = u, ratio = devicePixelRatio;
      const color = this.colorOf(i);
      const loose = new Path2D();
      let last = null;
      const radius = (s.x.length > 60 ? 2 : 3.2) * ratio;
      ctx.save();
      ctx.beginPath();
      ctx.rect(u.bbox.left - radius, u.bbox.top - radius, u.bbox.width + 2 * radius, u.bbox.height + 2 * radius);
      ctx.clip();
      ctx.strokeStyle = color;
      ctx.fillStyle = color;
      ctx.lineWidth = 1.4 * ratio;
      this.pieces(u, s, (x, y, dotted, k) => {
        if (x === null) { last = null; return; }
        if (last && dotted && s.line !== false) { loose.moveTo(...last); loose.lineTo(x, y); }
        last = [x, y];
        if (inside(x, y)) placer.avoid(x, y);
        if (s.low && finite(s.low[k]) && finite(s.high[k])) {
          ctx.beginPath();
          ctx.moveTo(x, u.valToPos(s.low[k], "y", true));
          ctx.lineTo(x, u.valToPos(s.high[k], "y", true));
          ctx.stroke();
        }
      });
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.lineWidth = 2 * ratio;
      ctx.stroke(loose);
      ctx.setLineDash([]);
      if (s.dots || s.line === false || s.x.length === 1) {
        this.pieces(u, s, (x, y, _, k) => {
          if (x === null) return;
          ctx.beginPath();
          ctx.arc(x, y, radius, 0, 2 * Math.PI);
          ctx.fillStyle = s.hollow && s.hollow[k] ? this.color("paper") : color;
          ctx.fill();
          ctx.stroke();
        });
      }
      ctx.restore();
    }

    rule(u, r, area) {
      const { ctx } = u, ratio = devicePixelRatio;
      const at = u.valToPos(r.at, r.vertical ? "x" : "y", true);
      if (r.vertical ? at < area.x || at > area.x + area.w : at < area.y || at > area.y + area.h) return;
      ctx.beginPath();
      ctx.setLineDash([6 * ratio, 4 * ratio]);
      ctx.lineWidth = 1.3 * ratio;
      ctx.strokeStyle = this.color(r.color || "vermilion");
      if (r.vertical) { ctx.moveTo(at, area.y); ctx.lineTo(at, area.y + area.h); }
      else { ctx.moveTo(area.x, at); ctx.lineTo(area.x + area.w, at); }
      ctx.stroke();
      ctx.setLineDash([]);
    }

    nameRule(u, r, area, placer, ink) {
      if (!r.name) return;
      const at = u.valToPos(r.at, r.vertical ? "x" : "y", true), ratio = devicePixelRatio;
      if (r.vertical) {
        if (at < area.x || at > area.x + area.w) return;
        for (let k = 0; k < 6; k++) {
          if (placer.text([r.name], at, area.y + (8 + 15 * k) * ratio, { ...ink, near: 3, far: 3, size: 11, order: ["east", "west"] })) return;
        }
        return;
      }
      if (at < area.y || at > area.y + area.h) return;
      for (let k = 0; k < 8; k++) {
        const x = area.x + 4 * ratio + (k * area.w) / 8;
        if (placer.text([r.name], x, at, { ...ink, near: 2, far: 2, size: 11, order: ["northEast", "southEast"] })) return;
      }
    }

    nameBand(u, b, area, placer, ink) {
      if (!b.name) return;
      const from = Math.max(u.valToPos(Math.max(b.from, u.scales.x.min), "x", true), area.x);
      const to = Math.min(u.valToPos(Math.min(b.to, u.scales.x.max), "x", true), area.x + area.w);
      u.ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      if (u.ctx.measureText(b.name).width > to - from) return;
      for (let k = 0; k < 6; k++) {
        if (placer.text([b.name], (from + to) / 2, area.y + ((k + 0.5) * area.h) / 6, { color: this.color("muted"), halo: ink.halo, near: 0, far: 0, size: 11, order: ["north"] })) return;
      }
    }

    // nameBar writes a bar's text into it, or beside it where that is asked for.
    nameBar(u, b, placer, ink) {
      if (!b.inside) return;
      const box = this.box(u, b), ratio = devicePixelRatio;
      placer.text([b.inside], box.x + box.w, box.y + box.h / 2, { ...ink, near: 4, far: 4, size: 11, order: ["east", "west"] });
    }

    // listen lets the keyboard go from value to value.
    listen() {
      this.plot.addEventListener("keydown", (e) => {
        const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[e.key];
        if (step && e.shiftKey && this.spec.zoom) this.pan(Math.sign(step) * 0.25);
        else if (step) this.step(step);
        else if (e.key === "ArrowDown" || e.key === "ArrowUp") this.step(0, e.key === "ArrowDown" ? 1 : -1);
        else if (e.key === "Home") this.step(-1e9);
        else if (e.key === "End") this.step(1e9);
        else if (e.key === "+" && this.spec.zoom) this.zoom(0.5);
        else if (e.key === "-" && this.spec.zoom) this.zoom(2);
        else if (e.key === "Escape") { this.leave(); if (this.spec.zoom) this.show(...this.whole.x); }
        else return;
        e.preventDefault();
      });
      this.plot.addEventListener("blur", () => this.leave());
    }

    // step goes on by points of the line that the keyboard is on, or to another line, or bar.
    step(by, line = 0) {
      const bars = this.spec.bars || [];
      const lines = (this.spec.series || []).map((s, i) => i).filter((i) => !this.hidden.has(i) && this.spec.series[i].x.length && !this.spec.series[i].guide);
      const clamp = (v, n) => Math.min(Math.max(v, 0), n - 1);
      if (!lines.length && bars.length) {
        this.bar = clamp((this.bar ?? -1) + (by || line), bars.length);
        const box = this.box(this.u, bars[this.bar]);
        this.say({ bar: bars[this.bar] }, (box.x + Math.min(box.w, 40) / 2 - this.u.bbox.left) / devicePixelRatio, (box.y - this.u.bbox.top) / devicePixelRatio, true);
        return;
      }
      if (!lines.length) return;
      const was = this.at || { line: lines.length - 1, index: -1 };
      const at = { line: clamp(was.line + line, lines.length) };
      const s = this.spec.series[lines[at.line]];
      at.index = clamp(was.index + by, s.x.length);
      this.at = at;
      const x = this.u.valToPos(s.x[at.index], "x"), y = finite(s.y[at.index]) ? this.u.valToPos(s.y[at.index], "y") : 0;
      this.say(this.nearest === "x" && !line ? { x: s.x[at.index] } : { series: lines[at.line], index: at.index }, x, y, true);
    }

    // pointed tells what the pointer is at.
    pointed(u) {
      const { left, top } = u.cursor;
      if (left === undefined || left < 0) { if (document.activeElement !== this.plot || !this.at) this.leave(); return; }
      const bars = this.spec.bars || [];
      if (bars.length) {
        const x = u.bbox.left + left * devicePixelRatio, y = u.bbox.top + top * devicePixelRatio;
        const hit = bars.find((b) => { const o = this.box(u, b); return x >= o.x && x <= o.x + Math.max(o.w, 2) && y >= o.y && y <= o.y + o.h; });
        hit ? this.say({ bar: hit }, left, top) : this.leave();
        if (hit) return;
      }
      if (this.nearest === "x") { this.say({ x: u.posToVal(left, "x") }, left, top); return; }
      let best = null;
      (this.spec.series || []).forEach((s, i) => {
        if (s.guide || this.hidden.has(i)) return;
        s.x.forEach((x, k) => {
          if (!finite(x) || !finite(s.y[k])) return;
          const d = Math.hypot(u.valToPos(x, "x") - left, u.valToPos(s.y[k], "y") - top);
          if (!best || d < best.d) best = { d, series: i, index: k };
        });
      });
      best && best.d < 60 ? this.say(best, u.valToPos(this.spec.series[best.series].x[best.index], "x"), u.valToPos(this.spec.series[best.series].y[best.index], "y")) : this.leave();
    }

    selected(u) {
      const { left, width } = u.select;
      if (width > 4 && this.spec.zoom) this.show(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
      u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    }

    // say shows the numbers at a place, and speaks them when the keyboard went there.
    say(what, left, top, speak) {
      const { spec } = this;
      const lines = [];
      if (what.bar) {
        const b = what.bar;
        lines.push([null, b.label || b.inside || ""]);
        if (!b.plain) lines.push([null, `${value(b.from, spec.x.unit, 6)} to ${value(b.to, spec.x.unit, 6)}`]);
      } else if (what.x !== undefined) {
        const near = this.near(what.x);
        if (near === null) { this.leave(); return; }
        lines.push([null, `${strip(spec.x.title)}: ${value(near, spec.x.unit, 4)}`]);
        spec.series.forEach((s, i) => {
          if (this.hidden.has(i)) return;
          const k = closest(s.x, near);
          if (k < 0 || (!s.guide && Math.abs(s.x[k] - near) > 1e-9 * Math.max(1, Math.abs(near))) || s.guide) return;
          lines.push([this.colorOf(i), `${s.name || strip(spec.y.title)}: ${value(s.y[k], spec.y.unit, 4)}${interval(s, k, spec.y.unit)}${s.labels && s.labels[k] ? ` (${s.labels[k]})` : ""}`]);
        });
        left = this.u.valToPos(near, "x");
      } else {
        const s = spec.series[what.series], k = what.index;
        const head = [s.name, s.labels && s.labels[k]].filter(Boolean).join(": ");
        if (head) lines.push([this.colorOf(what.series), head]);
        lines.push([null, `${strip(spec.x.title)}: ${value(s.x[k], spec.x.unit, 4)}`]);
        lines.push([null, `${strip(spec.y.title)}: ${value(s.y[k], spec.y.unit, 4)}${interval(s, k, spec.y.unit)}`]);
        if (s.hollow && s.hollow[k]) lines.push([null, "no steady state"]);
      }
      this.hover.replaceChildren(...lines.map(([color, text]) => {
        const line = element("div", {}, text);
        if (color) {
          const dot = element("span", { class: "chart-dot" });
          dot.style.background = color;
          line.prepend(dot);
        }
        return line;
      }));
      this.hover.hidden = false;
      const { clientWidth: w, clientHeight: h } = this.u.over;
      const x = left + 14 + this.hover.offsetWidth > w ? left - 14 - this.hover.offsetWidth : left + 14;
      this.hover.style.left = Math.max(Math.min(x, w - this.hover.offsetWidth), -40) + "px";
      this.hover.style.top = Math.max(Math.min(top + 10, h - this.hover.offsetHeight), 0) + "px";
      if (speak) this.live.textContent = lines.map(([, text]) => text).join("; ");
    }

    // near is the place of the nearest point of any line.
    near(x) {
      let best = null;
      const log = this.spec.x.log ? Math.log : (v) => v;
      (this.spec.series || []).forEach((s, i) => {
        if (s.guide || this.hidden.has(i) || !s.x.length) return;
        const v = s.x[closest(s.x, x)];
        if (best === null || Math.abs(log(v) - log(x)) < Math.abs(log(best) - log(x))) best = v;
      });
      return best;
    }

    leave() { this.hover.hidden = true; }
  }

  // strip takes what a title says of its scale away.
  function strip(title) { return (title || "").replace(/[,(] ?(log scale|zeros left out|ms or s( per token)?)\)?/g, "").trim(); }

  function interval(s, k, unit) {
    if (!s.low || !finite(s.low[k]) || !finite(s.high[k])) return "";
    return `, 95 % CI ${value(s.low[k], unit)} to ${value(s.high[k], unit)}`;
  }

  // closest is the index of the ascending value that is nearest to x.
  function closest(xs, x) {
    let lo = 0, hi = xs.length - 1;
    while (lo < hi) {
      const middle = (lo + hi) >> 1;
      if (xs[middle] < x) lo = middle + 1; else hi = middle;
    }
    return lo > 0 && Math.abs(xs[lo - 1] - x) <= Math.abs(xs[lo] - x) ? lo - 1 : lo;
  }

  function shape(ctx, name, x, y, r, ink) {
    const corners = { triangle: [[0, -1], [0.95, 0.75], [-0.95, 0.75]], inverted: [[0, 1], [0.95, -0.75], [-0.95, -0.75]] }[name]
      || [[0, -1], [1, 0], [0, 1], [-1, 0]];
    ctx.beginPath();
    corners.forEach(([dx, dy], i) => ctx[i ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
    ctx.closePath();
    ctx.fillStyle = ink.color;
    ctx.strokeStyle = ink.halo;
    ctx.lineWidth = r / 4;
    ctx.fill();
    ctx.stroke();
  }

  return (root, spec, options) => new Chart(root, spec, options);
})();
