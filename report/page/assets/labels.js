// Texts in a chart: each is put at the first free place near what it names, so that none covers another.
"use strict";

Clifftop.labels = (() => {
  const directions = {
    north: [0, -1], northEast: [1, -1], east: [1, 0], southEast: [1, 1],
    south: [0, 1], southWest: [-1, 1], west: [-1, 0], northWest: [-1, -1],
  };
  const overlaps = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

  // Placer knows the area of a chart and what is taken of it, in the canvas's pixels.
  class Placer {
    constructor(ctx, area, ratio) {
      Object.assign(this, { ctx, area, ratio, taken: [], points: [] });
    }

    // avoid keeps single points, such as those of lines, free where that is possible.
    avoid(x, y) { this.points.push([x, y]); }

    take(box) { this.taken.push(box); }

    free(box, strict) {
      const { area } = this;
      if (box.x < area.x || box.y < area.y || box.x + box.w > area.x + area.w || box.y + box.h > area.y + area.h) return false;
      if (this.taken.some((other) => overlaps(box, other))) return false;
      return !strict || !this.points.some(([x, y]) => x > box.x && x < box.x + box.w && y > box.y && y < box.y + box.h);
    }

    // text writes lines near a point. It answers whether there was room.
    text(lines, x, y, { color, halo, order = ["northEast", "southEast", "northWest", "southWest", "north", "south", "east", "west"], near = 8, far = 40, bold = false, size = 12 }) {
      const { ctx, ratio } = this;
      ctx.font = `${bold ? "600 " : ""}${size * ratio}px system-ui, sans-serif`;
      const height = size * 1.25 * ratio;
      const w = Math.max(...lines.map((t) => ctx.measureText(t).width)) + 2 * ratio;
      const h = height * lines.length;
      for (const strict of [true, false]) {
        for (let gap = near * ratio; gap <= far * ratio; gap += 8 * ratio) {
          for (const name of order) {
            const [dx, dy] = directions[name];
            const box = {
              x: x + dx * gap * (dy ? 0.7 : 1) - (dx < 0 ? w : dx === 0 ? w / 2 : 0),
              y: y + dy * gap * (dx ? 0.7 : 1) - (dy < 0 ? h : dy === 0 ? h / 2 : 0), w, h,
            };
            if (!this.free(box, strict)) continue;
            this.write(lines, box, height, color, halo, dx);
            this.take(box);
            return true;
          }
        }
      }
      return false;
    }

    write(lines, box, height, color, halo, dx) {
      const { ctx, ratio } = this;
      ctx.textBaseline = "middle";
      ctx.textAlign = dx < 0 ? "right" : dx > 0 ? "left" : "center";
      const x = dx < 0 ? box.x + box.w - ratio : dx > 0 ? box.x + ratio : box.x + box.w / 2;
      ctx.lineJoin = "round";
      ctx.lineWidth = 3 * ratio;
      ctx.strokeStyle = halo;
      ctx.fillStyle = color;
      lines.forEach((line, i) => {
        ctx.strokeText(line, x, box.y + height * (i + 0.5));
        ctx.fillText(line, x, box.y + height * (i + 0.5));
      });
    }
  }

  return { Placer };
})();
