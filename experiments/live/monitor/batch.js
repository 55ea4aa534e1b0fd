// The batch: a bar for each running sequence, with its prompt and its output.
//
//   const batch = Clifftop.batch(canvas)
//   batch.draw(sequences); batch.draw()   // again, in other colours or another width
//
// A sequence is [id, prompt, cached, computed, output, produced, age]: tokens, and seconds.
"use strict";

Clifftop.batch = (canvas) => {
  const tallest = 12, gap = 2, high = 260; // CSS pixels
  let sequences = [];

  function draw(given) {
    if (given) sequences = given;
    const width = canvas.clientWidth || 600;
    const columns = Math.max(1, Math.min(Math.floor(width / (sequences.length > 48 ? 140 : 240)), Math.ceil(sequences.length / 12)));
    const rows = Math.max(4, Math.ceil(sequences.length / columns));
    const row = Math.max(4, Math.min(tallest + gap, high / rows));
    const height = Math.ceil(rows * row), scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.height = `${height}px`;
    }
    const style = getComputedStyle(canvas);
    const color = (name) => style.getPropertyValue(`--chart-${name}`).trim();
    const g = canvas.getContext("2d");
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, width, height);
    const space = 10, column = (width - (columns - 1) * space) / columns;
    const longest = Math.max(1, ...sequences.map((s) => s[1] + s[4]));
    const [rest, cached, computed, produced, line] = ["shade", "pale", "orange", "blue", "hairline"].map(color);
    const part = (from, to, x, y, h, fill) => {
      if (to <= from) return;
      g.fillStyle = fill;
      g.fillRect(x + (from / longest) * column, y, Math.max(0.5, ((to - from) / longest) * column), h);
    };
    sequences.forEach((s, i) => {
      const [, prompt, inCache, done, output, got] = s;
      const x = Math.floor(i / rows) * (column + space), y = (i % rows) * row, h = Math.max(2, row - gap);
      part(0, prompt + output, x, y, h, rest);
      part(0, Math.min(inCache, done), x, y, h, cached);
      part(Math.min(inCache, done), done, x, y, h, computed);
      part(prompt, prompt + Math.min(got, output), x, y, h, produced);
      part(prompt, prompt + longest / column, x, y, h, line); // where the output begins
    });
    if (!sequences.length) {
      g.fillStyle = color("muted");
      g.font = "13px system-ui, sans-serif";
      g.fillText("No request runs.", 0, 18);
    }
  }

  new ResizeObserver(() => draw()).observe(canvas.parentElement);
  return { draw };
};
