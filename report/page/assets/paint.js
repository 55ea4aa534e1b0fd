// What a chart draws on its canvas beside axes: lines, dots, bars, rules, bands and texts. These are methods of the chart.
"use strict";

Clifftop.painting = (() => {
  const { Placer } = Clifftop.labels;
  const finite = (v) => v !== null && v !== undefined && Number.isFinite(v);

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

  return {
    // path is the line of a series where it is solid.
    path(u, i) {
      const s = this.spec.series[i];
      const stroke = new Path2D(), fill = s.fill ? new Path2D() : null;
      if (s.noLine) return { stroke, fill, clip: null, band: null, gaps: null, flags: 0 };
      const base = u.valToPos(u.scales.y.min, "y", true);
      let last = null, first = null;
      const close = () => { if (fill && last) { fill.lineTo(last[0], base); fill.lineTo(first[0], base); } };
      this.pieces(u, s, (x, y, loose) => {
        if (x === null) { close(); last = null; return; }
        if (!last) { stroke.moveTo(x, s.step ? base : y); stroke.lineTo(x, y); first = [x, y]; if (fill) fill.moveTo(x, y); }
        else if (s.step) { stroke.lineTo(x, last[1]); stroke.lineTo(x, y); if (fill) { fill.lineTo(x, last[1]); fill.lineTo(x, y); } }
        else if (loose) { stroke.moveTo(x, y); if (fill) fill.lineTo(x, y); }
        else { stroke.lineTo(x, y); if (fill) fill.lineTo(x, y); }
        last = [x, y];
      });
      close();
      return { stroke, fill, clip: null, band: null, gaps: null, flags: 0 };
    },

    // pieces visits the points of a series in pixels, with null where it is broken.
    pieces(u, s, visit) {
      const { x: sx, y: sy } = this.spec;
      for (let k = 0; k < s.x.length; k++) {
        let y = s.y[k];
        if (s.step && sy.log && y === 0) y = u.scales.y.min; // nothing stands on the axis
        const ok = finite(s.x[k]) && finite(y) && (!sx.log || s.x[k] > 0) && (!sy.log || y > 0);
        if (!ok) { visit(null); continue; }
        const loose = Boolean(s.hollow && (s.hollow[k] || (k > 0 && s.hollow[k - 1])));
        visit(u.valToPos(s.x[k], "x", true), u.valToPos(y, "y", true), loose, k);
      }
    },

    // paper draws what lies behind the lines.
    paper(u) {
      const { ctx, bbox } = u;
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
      ctx.restore();
    },

    // bars lie on the grid.
    bars(u) {
      const { ctx, bbox } = u, ratio = devicePixelRatio;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      for (const b of this.spec.bars || []) {
        const box = this.box(u, b);
        ctx.fillStyle = this.color(b.color || "blue");
        ctx.fillRect(box.x, box.y, Math.max(box.w - (box.w > 3 * ratio ? ratio : 0), ratio), box.h);
      }
      ctx.restore();
    },

    // box is the place of a bar in the canvas's pixels.
    box(u, b) {
      const x = u.valToPos(b.from, "x", true), w = u.valToPos(b.to, "x", true) - x;
      const half = (b.height || 0.7) / 2;
      const top = u.valToPos(b.y + half, "y", true), bottom = u.valToPos(b.y - half, "y", true);
      return { x, y: Math.min(top, bottom), w, h: Math.abs(bottom - top) };
    },

    // front draws bars, dots, bars of error, rules and texts, which stand before the lines.
    front(u) {
      const { ctx, bbox } = u, { spec } = this, ratio = devicePixelRatio;
      const area = { x: bbox.left, y: bbox.top, w: bbox.width, h: bbox.height };
      const placer = new Placer(ctx, { ...area, y: area.y - 12 * ratio, h: area.h + 12 * ratio }, ratio);
      const ink = { color: this.color("text"), halo: this.color("paper") };
      const inside = (x, y) => x >= area.x - 1 && x <= area.x + area.w + 1 && y >= area.y - 1 && y <= area.y + area.h + 1;
      this.bars(u);
      ctx.save();
      (spec.series || []).forEach((s, i) => { if (!this.hidden.has(i)) this.dots(u, s, i, placer, inside); });
      for (const r of spec.rules || []) this.rule(u, r, area);
      const marks = (spec.marks || []).map((m) => ({ ...m, px: u.valToPos(m.x, "x", true), py: u.valToPos(m.y, "y", true) }))
        .filter((m) => inside(m.px, m.py));
      for (const m of marks) {
        shape(ctx, m.shape, m.px, m.py, 6 * ratio, ink);
        placer.take({ x: m.px - 7 * ratio, y: m.py - 7 * ratio, w: 14 * ratio, h: 14 * ratio });
      }
      for (const m of marks) placer.text(m.text.split("\n"), m.px, m.py, { ...ink, bold: true, near: 9, far: 90, order: m.order });
      for (const r of spec.rules || []) this.nameRule(u, r, area, placer, ink);
      for (const b of spec.bands || []) this.nameBand(u, b, area, placer, ink);
      for (const b of spec.bars || []) this.nameBar(u, b, placer, ink);
      for (const t of spec.tags || []) {
        const x = u.valToPos(t.x, "x", true), y = u.valToPos(t.y, "y", true);
        if (inside(x, y)) placer.text(t.text.split("\n"), x, y, { color: this.color("muted"), halo: ink.halo, near: t.near || 6, far: 30, size: 11, order: t.order });
      }
      ctx.restore();
    },

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
        if (last && dotted && !s.noLine && !s.step) { loose.moveTo(...last); loose.lineTo(x, y); }
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
      if (s.dots || s.noLine || s.x.length === 1) {
        this.pieces(u, s, (x, y, _, k) => {
          if (x === null) return;
          ctx.beginPath();
          ctx.arc(x, y, radius, 0, 2 * Math.PI);
          ctx.fillStyle = (s.hollow && s.hollow[k]) || (s.finite && s.finite[k]) ? this.color("paper") : color;
          ctx.fill();
          ctx.stroke();
        });
      }
      ctx.restore();
    },

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
    },

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
    },

    nameBand(u, b, area, placer, ink) {
      if (!b.name) return;
      const from = Math.max(u.valToPos(Math.max(b.from, u.scales.x.min), "x", true), area.x);
      const to = Math.min(u.valToPos(Math.min(b.to, u.scales.x.max), "x", true), area.x + area.w);
      u.ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      if (u.ctx.measureText(b.name).width > to - from) return;
      for (let k = 0; k < 6; k++) {
        if (placer.text([b.name], (from + to) / 2, area.y + ((k + 0.5) * area.h) / 6, { color: this.color("muted"), halo: ink.halo, near: 0, far: 0, size: 11, order: ["north"] })) return;
      }
    },

    // nameBar writes a bar's text into it if there is room.
    nameBar(u, b, placer, ink) {
      if (!b.inside) return;
      const box = this.box(u, b);
      u.ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      if (u.ctx.measureText(b.inside).width + 4 * devicePixelRatio > box.w) return;
      placer.write([b.inside], box, box.h, ink.color, "transparent", 0);
    },
  };
})();
