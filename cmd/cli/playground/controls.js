// The form with the settings. Each control shows a value of the scenario. Moving it changes keys of the query.
//
//   const controls = new Clifftop.Controls(form, description, query, changed)
//   controls.show(scenario, point)     // the scenario as resolved
"use strict";

Clifftop.Controls = (() => {
  const { element } = Clifftop.table;
  const { sig, scaled } = Clifftop.format;
  const steps = 400; // of a slider

  // seconds reads a duration such as 1m30s; null stays null.
  function seconds(text) {
    if (text === null || text === undefined) return null;
    const size = { h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9 };
    let sum = 0;
    for (const [, n, unit] of String(text).matchAll(/([0-9.]+)([a-zµ]+)/g)) sum += Number(n) * size[unit];
    return sum;
  }

  const at = (scenario, key) => key.split(".").reduce((v, name) => (v === null || v === undefined ? v : v[name]), scenario);
  const mean = (law) => (law ? law.mean ?? law.value ?? null : null);
  const number = (v) => String(Number(v.toPrecision(6)));

  // A control for a single key.
  function plain(key, unit = "") {
    return {
      read: (scenario) => (unit === "s" ? seconds(at(scenario, key)) : at(scenario, key)),
      write: (query, v) => query.set(key, v === null ? "null" : typeof v === "number" ? number(v) + unit : v),
      keys: [key],
    };
  }

  const closed = (scenario) => {
    const a = scenario.workload.arrivals;
    return Boolean(a && (a.process === "closed" || a.users));
  };

  // The load is a rate or a number of users. Setting one of them removes the other.
  function setLoad(query, base, key, v) {
    const burstiness = query.get("burstiness") ?? null;
    for (const k of ["rate", "users", "workload.arrivals", "burstiness"]) query.set(k, null);
    if (key === "users") query.set("users", number(v));
    else if (base.closed) query.set("workload.arrivals", `{process: poisson, rate: ${number(v)}}`);
    else query.set("rate", number(v));
    if (key === "rate") {
      query.set("workload.arrivals.think_time", null);
      query.set("burstiness", burstiness); // after the arrivals, which it changes
    }
  }

  function lengths(query, side, change) {
    const law = { mean: side === "input" ? 1000 : 250, cv: 1, ...change };
    query.set(`workload.${side}`, law.cv > 0 ? `{distribution: lognormal, mean: ${number(law.mean)}, cv: ${number(law.cv)}}` : `{distribution: fixed, value: ${number(Math.round(law.mean))}}`);
  }

  const lawOf = (scenario, side) => {
    const law = scenario.workload[side];
    return law ? { mean: mean(law) ?? undefined, cv: law.cv ?? (law.distribution === "fixed" ? 0 : 1) } : {};
  };

  // table returns all controls, by group.
  function table(d) {
    const named = (list, text) => list.items.map((m) => ({ value: m.name, text: text(m) }));
    const words = (list) => list.map((v) => ({ value: v, text: v }));
    const own = { value: "own", text: "custom lengths" };
    return [
      ["Machine", [
        { id: "model", label: "Model", options: named(d.models, (m) => `${m.name} (${sig(m.params_b, 3)} B)`), ...plain("model") },
        { id: "gpu", label: "GPU", options: named(d.gpus, (g) => `${g.name} (${Math.round(g.memory_gb)} GB)`), ...plain("gpu") },
        { id: "tp", label: "Tensor parallelism (GPUs that share every layer)", options: words(["1", "2", "4", "8", "16"]), ...plain("deployment.tensor_parallel_size") },
        { id: "dtype", label: "Weights", options: words(d.choices["deployment.dtype"]), ...plain("deployment.dtype") },
        { id: "kvtype", label: "KV cache", options: words(d.choices["deployment.kv_cache_dtype"]), ...plain("deployment.kv_cache_dtype") },
      ]],
      ["Traffic", [
        { id: "loop", label: "Load", options: [{ value: "rate", text: "open loop: a fixed rate" }, { value: "users", text: "closed loop: users who wait for the output" }],
          read: (s) => (closed(s) ? "users" : "rate"),
          write: (query, v, s, base) => setLoad(query, base, v, v === "users" ? 50 : 5) },
        { id: "rate", label: "Requests per second", min: 0.05, max: 500, log: true, hidden: closed, keys: ["rate", "workload.arrivals", "workload.arrivals.rate"],
          read: (s) => at(s, "workload.arrivals.rate"), write: (query, v, s, base) => setLoad(query, base, "rate", v) },
        { id: "burstiness", label: "Burstiness of arrivals (1 is Poisson, less comes in bursts)", min: 0.05, max: 4, log: true, none: "preset", hidden: closed,
          keys: ["burstiness", "workload.arrivals.process", "workload.arrivals.cv"],
          read: (s) => { const a = at(s, "workload.arrivals"); return a.process === "gamma" ? 1 / (a.cv * a.cv) : a.process === "poisson" ? 1 : null; },
          write: (query, v, s) => {
            if (v !== null && query.get("rate") === undefined && query.get("workload.arrivals") === undefined) query.set("rate", number(at(s, "workload.arrivals.rate")));
            query.set("burstiness", v === null ? null : number(v));
          } },
        { id: "users", label: "Users", min: 1, max: 3000, log: true, whole: true, hidden: (s) => !closed(s), keys: ["users", "workload.arrivals.users"],
          read: (s) => at(s, "workload.arrivals.users"), write: (query, v) => query.set("users", number(v)) },
        { id: "think", label: "Think time between output and next request", min: 0, max: 120, unit: "s", hidden: (s) => !closed(s), keys: ["workload.arrivals.think_time"],
          read: (s) => { const t = at(s, "workload.arrivals.think_time"); return t && typeof t === "object" ? seconds(t.mean ?? t.value) ?? 0 : seconds(t ?? "0s"); },
          write: (query, v) => query.set("workload.arrivals.think_time", number(v) + "s") },
        { id: "preset", label: "Lengths", options: [own, ...d.presets.items.filter((p) => !(p.needs || []).some((key) => /input|output/.test(key))).map((p) => ({ value: p.name, text: p.title }))],
          read: (s) => (s.workload.input || s.workload.output ? "own" : s.workload.preset),
          write: (query, v, s, base) => {
            for (const side of ["input", "output"]) {
              query.set(`workload.${side}`, null);
              if (v === "own") lengths(query, side, lawOf(s, side));
              else if (base.lengths) query.set(`workload.${side}`, "null");
            }
            if (v !== "own") query.set("workload.preset", v);
          } },
        ...["input", "output"].map((side) => ({
          id: side, label: side === "input" ? "Prompt, tokens on average" : "Output, tokens on average", min: 1, max: side === "input" ? 32000 : 8000, log: true, whole: true,
          keys: [`workload.${side}`], hidden: (s) => mean(s.workload[side]) === null,
          read: (s) => mean(s.workload[side]), write: (query, v, s) => lengths(query, side, { ...lawOf(s, side), mean: v }),
        })),
        { id: "spread", label: "Spread of lengths (standard deviation over mean)", min: 0, max: 2, hidden: (s) => mean(s.workload.input) === null || mean(s.workload.output) === null,
          read: (s) => lawOf(s, "output").cv ?? null,
          write: (query, v, s) => { for (const side of ["input", "output"]) lengths(query, side, { ...lawOf(s, side), cv: v }); } },
      ]],
      ["Engine", [
        { id: "policy", label: "Batching policy", options: words(d.policies.items.map((p) => p.name)), ...plain("engine.policy") },
        { id: "seqs", label: "Seats (max_num_seqs)", min: 1, max: 2048, log: true, whole: true, ...plain("engine.max_num_seqs") },
        { id: "budget", label: "Token budget of an iteration (max_num_batched_tokens)", min: 64, max: 65536, log: true, whole: true, ...plain("engine.max_num_batched_tokens") },
        { id: "blocks", label: "KV cache, blocks", min: 32, max: 200000, log: true, whole: true, none: "all that fits",
          read: (s) => at(s, "engine.num_gpu_blocks_override"), write: plain("engine.num_gpu_blocks_override").write,
          note: (s, point) => (point && point.pool ? `${scaled(point.pool.blocks, 3)} blocks hold ${scaled(point.pool.blocks * point.pool.block_tokens, 3)} tokens` : "") },
        { id: "caching", label: "Prefix cache", options: [{ value: "true", text: "on" }, { value: "false", text: "off" }], ...plain("engine.enable_prefix_caching"),
          read: (s) => String(at(s, "engine.enable_prefix_caching")) },
      ]],
      ["Fleet", [
        { id: "replicas", label: "Replicas", min: 1, max: 16, whole: true, hidden: (s) => Boolean(s.pools || (s.lifecycle && s.lifecycle.autoscale)), ...plain("deployment.replicas") },
        { id: "router", label: "Router", options: words(d.routers.items.map((r) => r.name)), hidden: (s) => !s.pools && s.deployment.replicas === 1 && !s.lifecycle, ...plain("deployment.router"),
          read: (s) => { const r = at(s, "deployment.router"); return r && typeof r === "object" ? r.policy : r; },
          note: (s) => d.routers.items.find((r) => r.name === (s.deployment.router.policy ?? s.deployment.router))?.does ?? "" },
        ...Clifftop.lifecycle(seconds),
      ]],
      ["Clients", [
        { id: "timeout", label: "Timeout for the whole output", min: 0.5, max: 120, log: true, unit: "s", none: "no limit", ...plain("clients.timeout", "s") },
        { id: "first", label: "Timeout for the first token", min: 0.1, max: 60, log: true, unit: "s", none: "no limit", ...plain("clients.ttft_timeout", "s") },
        { id: "retries", label: "Retries", options: words(["0", "1", "2", "3", "5", "10"]), ...plain("clients.retries") },
        { id: "told", label: "The server is told about a timeout", options: [{ value: "true", text: "yes" }, { value: "false", text: "no: it continues" }], ...plain("clients.cancel_on_timeout"),
          read: (s) => String(at(s, "clients.cancel_on_timeout")) },
        { id: "slo", label: "SLO: 95 % of first tokens within", min: 0.05, max: 20, log: true, unit: "s", none: "no SLO", keys: ["slo"],
          read: (s) => seconds(s.slo && s.slo.ttft_p95), write: (query, v) => query.set("slo", v === null ? "null" : `{ttft_p95: ${number(v)}s}`) },
      ]],
      ["Run", [
        { id: "requests", label: "Requests to simulate", min: 100, max: 20000, log: true, whole: true, hidden: (s) => s.run.requests === null, ...plain("run.requests") },
        { id: "seed", label: "Seed of the random numbers", min: 1, max: 50, whole: true, ...plain("run.seed") },
      ]],
    ];
  }

  class Controls {
    constructor(form, description, query, changed) {
      Object.assign(this, { form, query, changed, base: { closed: false, lengths: false }, scenario: null });
      this.controls = [];
      const groups = table(description).map(([name, controls]) => {
        // On a small screen, only the group Traffic is open.
        const open = name === "Traffic" || window.matchMedia("(min-width: 901px)").matches;
        const set = element("details", { open, class: "group", role: "group", "aria-label": name }, element("summary", {}, name));
        for (const c of controls) set.append(this.build(c));
        return set;
      });
      form.replaceChildren(...groups);
      form.addEventListener("submit", (e) => e.preventDefault());
    }

    build(c) {
      c.box = element("div", { class: "control" });
      const id = "control-" + c.id;
      c.note_ = element("p", { class: "control-note" });
      c.problem = element("p", { class: "control-problem", id: id + "-problem", role: "alert", hidden: true });
      if (c.options) {
        c.input = element("select", { id, "aria-describedby": id + "-problem" }, ...c.options.map((o) => element("option", { value: o.value }, o.text)));
        c.input.addEventListener("change", () => this.moved(c, c.input.value));
        c.box.append(element("label", { for: id }, c.label), c.input);
      } else {
        c.input = element("input", { id, type: "range", min: 0, max: steps, step: 1, "aria-describedby": id + "-problem" });
        c.exact = element("input", { type: "text", inputmode: "decimal", class: "exact", size: 9, "aria-label": c.label + ", exact value" });
        c.input.addEventListener("input", () => this.moved(c, this.valueAt(c, Number(c.input.value))));
        c.exact.addEventListener("change", () => this.typed(c));
        const row = element("div", { class: "control-row" }, c.input, c.exact);
        if (c.unit) row.append(element("span", { class: "unit", "aria-hidden": "true" }, c.unit));
        c.box.append(element("label", { for: id }, c.label), row);
      }
      c.box.append(c.note_, c.problem);
      this.controls.push(c);
      return c.box;
    }

    // valueAt returns the value at a position of a slider. If the control has a value none, it is the last position.
    valueAt(c, place) {
      const last = c.none ? steps - 10 : steps;
      if (c.none && place > last) return null;
      const share = place / last;
      const v = c.log ? c.min * (c.max / c.min) ** share : c.min + (c.max - c.min) * share;
      if (c.whole) return Math.max(Math.ceil(c.min), v < 100 ? Math.round(v) : Number(v.toPrecision(2)));
      return Number(v.toPrecision(2));
    }

    placeOf(c, v) {
      if (v === null || v === undefined) return steps;
      const last = c.none ? steps - 10 : steps;
      const clamped = Math.min(Math.max(v, c.min), c.max);
      return Math.round(last * (c.log ? Math.log(clamped / c.min) / Math.log(c.max / c.min) : (clamped - c.min) / (c.max - c.min)));
    }

    text(c, v) { return v === null || v === undefined ? c.none || "" : number(v); }

    typed(c) {
      const text = c.exact.value.trim().replace(",", ".");
      if (c.none && (text === "" || text === c.none)) { this.moved(c, null); return; }
      const v = Number(text);
      if (text === "" || !Number.isFinite(v)) { this.fault(c, `“${text.slice(0, 20)}” is not a number`); return; }
      this.moved(c, v);
    }

    moved(c, v) {
      this.fault(c, "");
      if (c.exact) this.describe(c, v);
      c.write(this.query, v, this.scenario, this.base);
      this.changed();
    }

    // describe writes a slider's value beside it, and for screen readers.
    describe(c, v) {
      c.exact.value = this.text(c, v);
      c.input.setAttribute("aria-valuetext", v === null ? c.none || "none" : `${this.text(c, v)} ${c.unit || ""}`.trim());
    }

    // show updates all controls from the scenario, except the one that the user is moving.
    show(scenario, point) {
      this.scenario = scenario;
      const changed = ["rate", "users", "workload.arrivals", "workload.input", "workload.output"].some((k) => this.query.get(k) !== undefined);
      if (!changed) this.base = { closed: closed(scenario), lengths: Boolean(scenario.workload.input) };
      for (const c of this.controls) {
        c.box.hidden = Boolean(c.hidden && c.hidden(scenario));
        if (c.note) c.note_.textContent = c.note(scenario, point);
        const v = c.read(scenario);
        if (c.options) {
          const text = String(v);
          if (![...c.input.options].some((o) => o.value === text)) c.input.append(element("option", { value: text }, text));
          c.input.value = text;
        } else {
          if (document.activeElement !== c.input) c.input.value = this.placeOf(c, v);
          if (document.activeElement !== c.exact) this.describe(c, v ?? null);
        }
      }
    }

    fault(c, text) {
      c.problem.textContent = text;
      c.problem.hidden = !text;
      c.input.toggleAttribute("aria-invalid", Boolean(text));
    }

    // faults shows what is wrong beside the controls that it is about, and answers with the rest.
    faults(list) {
      for (const c of this.controls) this.fault(c, "");
      return list.filter((f) => {
        const c = f.key && this.controls.find((c) => (c.keys || []).some((k) => f.key === k || f.key.startsWith(k + ".")));
        if (!c || c.box.hidden) return true;
        this.fault(c, f.problem + (f.hint ? ` (${f.hint})` : ""));
        return false;
      });
    }
  }

  return Controls;
})();
