// What the results look like: tiles of numbers, and specs of charts (see the head of chart.js).
"use strict";

Clifftop.figures = (() => {
  const { value, scaled, duration, percent } = Clifftop.format;
  const finite = (v) => v !== null && v !== undefined && Number.isFinite(v);
  const per = (over, v) => (over === "users" ? `${scaled(v)} ${v === 1 ? "user" : "users"}` : `${scaled(v)} requests/s`);

  // fill writes the numbers of a summary in place of {PATH UNIT DIGITS}. known is false if all of them are unknown.
  function fill(text, s) {
    let known = !text.includes("{");
    const filled = text.replace(/{([^ }]+) ([a-z]+) ?([0-9]*)}/g, (_, path, unit, digits) => {
      const v = path.split(".").reduce((o, key) => (o ? o[key] : null), s);
      known = known || finite(v);
      return value(v, unit, digits ? Number(digits) : undefined);
    });
    return { filled, known };
  }

  // tiles are the numbers of one run, as [name, value, remark]. catalog has the tiles that are plain numbers.
  function tiles(s, catalog, withheld) {
    const r = s.requests;
    const list = [];
    for (const t of catalog) {
      const text = fill(t.text, s), remark = fill(t.remark, s);
      const blank = withheld && !text.known && t.text.includes("{throughput.");
      if (t.always || text.known || blank) list.push([t.title, text.filled, blank ? withheld : remark.known ? remark.filled : ""]);
    }
    if (r.completed < r.offered) list.push(["Completed", value(r.completed / r.offered, "fraction"), `${scaled(r.timed_out)} timed out, ${scaled(r.rejected)} rejected${r.failed ? `, ${scaled(r.failed)} failed` : ""}`]);
    if (finite(s.goodput.attainment)) list.push(["Within the SLO", value(s.goodput.attainment, "fraction"), s.goodput.met === null ? "" : s.goodput.met ? "SLO met" : "SLO missed"]);
    if (s.cost && finite(s.cost.usd_per_million_output_tokens_at_load)) list.push(["Price per million tokens", value(s.cost.usd_per_million_output_tokens_at_load, "usd", 3), `$${scaled(s.cost.usd_per_hour)} per hour`]);
    return list;
  }

  const unsteady = (p) => p.short || p.summary.window.stationary === false;
  const unsettled = (p) => p.summary.window.state === "finite" && !unsteady(p);
  // column leaves out points of runs that are too short to judge.
  const column = (points, of) => points.map((p) => { const v = p.short ? null : of(p.summary); return finite(v) ? v : null; });
  const isLost = (p) => p.summary.requests.completed < p.summary.requests.offered * 0.999;

  function lines(points, list) {
    return list.filter(([, , of]) => points.some((p) => finite(of(p.summary)))).map(([name, color, of]) => ({
      name, color, dots: true, x: points.map((p) => p.value), y: column(points, of), hollow: points.map(unsteady), finite: points.map(unsettled),
    }));
  }

  const loadAxis = (over) => ({ title: over === "users" ? "Users" : "Requests per second", unit: "plain", log: over === "users" });
  function hollowNote(points) {
    const notes = [];
    if (points.some((p) => unsteady(p) && !p.short)) notes.push("Hollow points, dotted lines: no steady state.");
    if (points.some(unsettled)) notes.push("Hollow points, solid lines: not settled. A longer run may differ.");
    if (points.some((p) => p.short)) notes.push("Loads without points: the runs are too short to judge.");
    return notes;
  }
  const now = (current) => (finite(current) ? [{ at: current, vertical: true, name: "now", color: "grey" }] : []);

  // throughput is the curve: what comes out against what is asked for. before is the curve before the last change.
  function throughput({ over, points, judged, current, before, bound, loads }) {
    const out = (s) => s.throughput.output_tokens_per_s;
    const list = [["output", "blue", out]];
    if (points.some(isLost)) list.push(["successful", "green", (s) => s.throughput.successful_output_tokens_per_s]);
    list.push(["within the SLO", "vermilion", (s) => s.goodput.output_tokens_per_s]);
    const series = lines(points, list);
    if (before) series.unshift({ name: "before", guide: true, x: before.map((p) => p.value), y: column(before, out) });
    if (bound && loads.length) {
      const last = loads[loads.length - 1], top = bound.output_tokens_per_s;
      const x = over === "users" ? [loads[0], last] : [loads[0], bound.requests_per_s, Math.max(last, bound.requests_per_s)];
      const y = over === "users" ? [top, top] : [top * loads[0] / bound.requests_per_s, top, top];
      series.unshift({ name: "bound", guide: true, x, y });
    }
    const marks = [];
    const mark = (what, name, shape) => what && marks.push({ x: what.value, y: what.output_tokens_per_s, shape, text: `${name}: ${per(over, what.value)}` });
    if (judged) {
      mark(judged.knee, "knee", "diamond");
      if (judged.peak && !judged.peak.at_edge && !(judged.knee && judged.knee.value === judged.peak.value)) mark(judged.peak, "peak", "triangle");
      mark(judged.collapse, "collapse", "inverted");
    }
    return {
      title: finding(over, points, judged), height: 300,
      x: loadAxis(over), y: { title: "Tokens per second", unit: "plain" },
      series, marks, rules: now(current), notes: hollowNote(points),
      empty: points.length || bound ? "" : "Not drawn yet", alt: "",
    };
  }

  // finding says what the curve shows.
  function finding(over, points, judged) {
    if (!judged || !points.length) return "Throughput against load";
    const limits = {
      kv: "the KV cache is full", seats: "all seats are in use", token_budget: "the token budget is used up", policy: "the policy delays requests",
      compute: "compute is the limit", memory_bandwidth: "memory bandwidth is the limit", gpu: "the GPU is always busy",
      users: "there are too few users", clients: "clients leave",
    };
    const why = judged.first_limit && limits[judged.first_limit.resource] ? `; ${limits[judged.first_limit.resource]} from ${per(over, judged.first_limit.value)}` : "";
    if (judged.collapse) return `Throughput falls from ${per(over, judged.collapse.value)}, by up to ${percent(judged.collapse.fall_fraction)}${why}`;
    if (judged.useful_collapse) return `From ${per(over, judged.useful_collapse.value)}, less and less output is useful${why}`;
    if (judged.knee) return `The knee is at ${per(over, judged.knee.value)}: ${scaled(judged.knee.output_tokens_per_s)} tokens/s${why}`;
    if (judged.peak) return `At most ${scaled(judged.peak.output_tokens_per_s)} tokens/s, at ${per(over, judged.peak.value)}${why}`;
    return "Throughput against load";
  }

  function latency({ over, points, judged, current, scenario }) {
    const series = lines(points, [
      ["first token, p95", "vermilion", (s) => s.latency_ms.ttft.p95],
      ["first token, median", "orange", (s) => s.latency_ms.ttft.p50],
      ["each further token, median", "green", (s) => s.latency_ms.tpot.p50],
    ]);
    const rules = now(current);
    const promise = scenario && scenario.slo && points.length && points[0].summary.goodput.slo;
    const limit = promise && (points[0].summary.goodput.limits || []).find((l) => l.metric === "ttft");
    if (limit && finite(limit.limit_ms)) rules.push({ at: limit.limit_ms, name: "promised", color: "vermilion" });
    const knee = judged && judged.knee && points.find((p) => p.value === judged.knee.value);
    const last = points[points.length - 1];
    let title = "Latency against load";
    if (knee && last && finite(knee.summary.latency_ms.ttft.p95) && finite(last.summary.latency_ms.ttft.p95)) {
      title = `First token (p95): ${duration(knee.summary.latency_ms.ttft.p95, 2)} at the knee, ${duration(last.summary.latency_ms.ttft.p95, 2)} at ${per(over, last.value)}`;
    }
    return {
      title, height: 300, x: loadAxis(over), y: { title: "Latency, log scale", unit: "ms", log: true },
      series, rules, notes: hollowNote(points), empty: series.length ? "" : "Not drawn yet",
    };
  }

  // thin joins buckets of time until there are few enough to draw.
  function thin(series, most = 160) {
    const each = Math.ceil(series.length / most);
    const out = [];
    for (let i = 0; i < series.length; i += each) {
      const part = series.slice(i, i + each);
      const mean = (name) => {
        const held = part.filter((b) => finite(b[name]));
        return held.length ? held.reduce((sum, b) => sum + b[name], 0) / held.length : null;
      };
      out.push({ at: (part[0].start_s + part[part.length - 1].end_s) / 2, end: part[part.length - 1].end_s, mean, preemptions: part.reduce((n, b) => n + b.preemptions, 0) });
    }
    return out;
  }

  const overTime = (series) => ({ title: "Simulated time, s", unit: "plain", min: 0, max: series.length ? series[series.length - 1].end_s : 1 });
  const timeline = (buckets, name, key, color, more) => ({ name, color, x: buckets.map((b) => b.at), y: buckets.map((b) => b.mean(key)), ...more });

  function batch(point) {
    const buckets = thin(point.series), c = point.summary.concurrency;
    return {
      title: `Batch: ${value(c.running.mean ?? 0, "plain", 2)} requests run and ${value(c.queue_depth.mean ?? 0, "plain", 1)} wait on average`, height: 220,
      x: overTime(point.series), y: { title: "Requests", unit: "plain" },
      series: [timeline(buckets, "running", "running_mean", "blue", { fill: true }), timeline(buckets, "waiting", "queue_depth_mean", "vermilion")],
      empty: buckets.length ? "" : "No data",
    };
  }

  function pool(point) {
    const buckets = thin(point.series), k = point.summary.system.kv_usage, n = point.summary.system.preemptions;
    const has = buckets.some((b) => finite(b.mean("kv_usage_mean")));
    const thrown = n ? `; ${scaled(n)} ${n === 1 ? "preemption" : "preemptions"}` : "";
    return {
      title: has ? `KV cache: ${value(k.mean, "fraction")} full on average, ${value(k.max, "fraction")} at most${thrown}` : "The KV cache has no limit", height: 220,
      x: overTime(point.series), y: { title: "Fraction of blocks in use", unit: "fraction", min: 0, max: 1.02 },
      series: [timeline(buckets, "in use", "kv_usage_mean", "purple", { fill: true })],
      empty: has ? "" : "A linear step time has no KV cache",
    };
  }

  // lives is how many replicas there are.
  function lives(point) {
    const buckets = thin(point.series), s = point.summary, n = s.system.replicas;
    const failed = s.requests.failed ? `; ${scaled(s.requests.failed)} ${s.requests.failed === 1 ? "request fails" : "requests fail"}` : "";
    return {
      title: `Replicas: ${value(n.ready, "plain", 3)} are ready on average, ${value(n.mean, "plain", 3)} are paid for${failed}`, height: 220,
      x: overTime(point.series), y: { title: "Replicas", unit: "plain", min: 0, max: 1.08 * Math.max(1, n.max) },
      series: [timeline(buckets, "ready", "replicas_ready", "green", { fill: true }), timeline(buckets, "paid for", "replicas_paid", "orange")],
      empty: buckets.length ? "" : "No data",
    };
  }

  // fleet is how evenly the replicas are used.
  function fleet(s) {
    const name = (r) => (r.pool ? `${r.pool} ${r.index}` : `replica ${r.index}`);
    const rows = s.replicas.map((r) => ({ name: name(r), sent: r.requests.sent, runs: r.concurrency.running.mean ?? 0, waits: r.concurrency.queue_depth.mean ?? 0, hits: r.system.prefix_hit_rate }));
    const even = s.imbalance && s.imbalance.requests_max_over_mean;
    const n = rows.length;
    return {
      title: finite(even) ? `The fleet: the busiest replica gets ${scaled(even, 3)} times the average` : "The fleet", height: 70 + 20 * n,
      x: { title: "Requests at a replica, on average", unit: "plain", min: 0, max: 1.05 * Math.max(1, ...rows.map((r) => r.runs + r.waits)) },
      y: { title: "", min: -0.6, max: n - 0.4, places: rows.map((r) => r.name).reverse() },
      bars: rows.flatMap((r, i) => [
        { from: 0, to: r.runs, y: n - 1 - i, color: "blue", plain: true, label: `${r.name}: ${scaled(r.runs)} run` },
        { from: r.runs, to: r.runs + r.waits, y: n - 1 - i, color: "vermilion", plain: true, label: `${r.name}: ${scaled(r.waits)} wait` },
      ]),
      kinds: [{ name: "running", color: "blue" }, { name: "waiting", color: "vermilion" }], series: [],
      table: { columns: ["", "requests sent there", "running", "waiting", "prefix hit rate"], rows: rows.map((r) => [r.name, scaled(r.sent), scaled(r.runs), scaled(r.waits), value(r.hits, "fraction")]) },
    };
  }

  // picture makes specs of a picture of a lesson.
  function picture(p) {
    if (p.lines) return p.lines.panels.map((panel, i) => panelSpec(p.lines, panel, i));
    if (p.timeline) return [timelineSpec(p.timeline)];
    return [waterfallSpec(p.waterfall)];
  }

  function panelSpec(chart, panel, i) {
    return {
      title: i === 0 ? chart.title : panel.title || panel.y.title,
      text: i === 0 ? [panel.title, chart.caption].filter(Boolean).join(". ") : "",
      height: 280, x: panel.x, y: panel.y,
      series: (panel.lines || []).map((l) => ({
        name: l.name, guide: l.guide, dots: l.dots, line: l.scattered ? false : undefined,
        x: (l.points || []).map((q) => q.x), y: (l.points || []).map((q) => q.y), hollow: (l.points || []).map((q) => q.hollow),
      })),
      tags: (panel.lines || []).flatMap((l) => (l.points || []).filter((q) => q.label).map((q) => ({ x: q.x, y: q.y, text: q.label }))),
      rules: (panel.rules || []).map((r) => ({ ...r, color: "grey" })),
      notes: i === chart.panels.length - 1 ? chart.notes || [] : [],
      empty: (panel.lines || []).some((l) => (l.points || []).length) ? "" : "No data",
    };
  }

  const kindColors = ["sky", "vermilion", "purple", "green"];

  function timelineSpec(t) {
    const n = t.lanes.length;
    const places = t.lanes.map((l) => l.name).reverse();
    return {
      title: t.title, text: t.caption, notes: t.notes || [], height: 60 + 46 * n, zoom: true,
      x: { title: "Time, s", unit: "number", min: t.from_s, max: t.to_s }, y: { title: "", min: -0.6, max: n - 0.4, places },
      kinds: t.kinds.map((name, i) => ({ name, color: kindColors[i % 4] })),
      bars: t.lanes.flatMap((l, i) => (l.slices || []).map((s) => ({ from: s.start_s, to: s.end_s, y: n - 1 - i, color: kindColors[s.kind % 4], label: t.kinds[s.kind] }))),
      series: [], empty: n ? "" : "No data",
    };
  }

  function waterfallSpec(w) {
    const places = [], bars = [];
    const rows = w.groups.flatMap((g) => g.values.map((v, k) => ({ g, v, k, before: k ? g.values[k - 1] : v })));
    rows.reverse().forEach(({ g, v, k, before }, y) => {
      places[y] = k === 0 ? `${g.name}: ${w.stages[0]}` : w.stages[k];
      bars.push({ from: 0, to: v, y, color: k === w.stages.length - 1 ? "green" : "blue", label: `${g.name}, ${w.stages[k]}: ${scaled(v)}`, inside: scaled(v), plain: true });
      if (before > v) bars.push({ from: v, to: before, y, height: 0.35, color: "pale", label: `lost: ${scaled(before - v)}`, plain: true });
    });
    return {
      title: w.title, text: w.caption, notes: w.notes || [], height: 60 + 24 * rows.length,
      x: { title: w.unit, unit: "plain", min: 0, max: 1.18 * Math.max(1, ...rows.map((r) => r.before)) }, y: { title: "", min: -0.6, max: rows.length - 0.4, places },
      kinds: [{ name: "left", color: "blue" }, { name: "lost", color: "pale" }], bars, series: [],
      table: { columns: ["", ...w.stages], rows: w.groups.map((g) => [g.name, ...g.values.map((v) => scaled(v))]) },
    };
  }

  return { tiles, throughput, latency, batch, pool, lives, fleet, picture };
})();
