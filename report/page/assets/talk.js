// How a chart tells its numbers: to the pointer in a small box, and to the keyboard also as a text to be spoken. These are
// methods of the chart.
"use strict";

Clifftop.talking = (() => {
  const { value } = Clifftop.format;
  const { element } = Clifftop.table;
  const finite = (v) => v !== null && v !== undefined && Number.isFinite(v);

  // strip takes what a title says of its scale away.
  function strip(title) { return (title || "").replace(/[,(] ?(log scale|zeros left out|ms or s( per token)?)\)?/g, "").trim(); }

  function interval(s, k, unit) {
    if (!s.low || !finite(s.low[k]) || !finite(s.high[k])) return "";
    return `, 95 % CI ${value(s.low[k], unit)} to ${value(s.high[k], unit)}`;
  }

  // at is the value of a line at x and the index of its point there, or null between points; the value is null beside them.
  function at(s, x) {
    const n = s.x.length, k = closest(s.x, x);
    if (k >= 0 && Math.abs(s.x[k] - x) <= 1e-9 * Math.max(1, Math.abs(x))) return [s.y[k], k];
    if (s.noLine || !n || x < s.x[0] || x > s.x[n - 1]) return [null, null];
    const right = s.x[k] < x ? k + 1 : k, left = right - 1;
    if (!finite(s.y[left]) || !finite(s.y[right])) return [null, null];
    if (s.step) return [s.y[left], null];
    return [s.y[left] + ((s.y[right] - s.y[left]) * (x - s.x[left])) / (s.x[right] - s.x[left]), null];
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

  return {
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
    },

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
    },

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
    },

    selected(u) {
      const { left, width } = u.select;
      if (width > 4 && this.spec.zoom) this.show(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
      u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    },

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
          if (this.hidden.has(i) || s.guide) return;
          const [y, k] = at(s, near);
          if (y === null) return;
          const label = k !== null && s.labels && s.labels[k] ? ` (${s.labels[k]})` : "";
          lines.push([this.colorOf(i), `${s.name || strip(spec.y.title)}: ${value(y, spec.y.unit, 4)}${k === null ? "" : interval(s, k, spec.y.unit)}${label}`]);
        });
        left = this.u.valToPos(near, "x");
      } else {
        const s = spec.series[what.series], k = what.index;
        const head = [s.name, s.labels && s.labels[k]].filter(Boolean).join(": ");
        if (head) lines.push([this.colorOf(what.series), head]);
        lines.push([null, `${strip(spec.x.title)}: ${value(s.x[k], spec.x.unit, 4)}`]);
        lines.push([null, `${strip(spec.y.title)}: ${value(s.y[k], spec.y.unit, 4)}${interval(s, k, spec.y.unit)}`]);
        if (s.hollow && s.hollow[k]) lines.push([null, "no steady state"]);
        if (s.finite && s.finite[k]) lines.push([null, "not settled"]);
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
    },

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
    },

    leave() { this.hover.hidden = true; },
  };
})();
