// Controls of a fleet whose replicas fail and are scaled: a replica that crashes at a given time, and an autoscaler. They change
// parts of the scenario's lifecycle, and keep what else is in it.
"use strict";

Clifftop.lifecycle = (seconds) => {
  const usual = { least: 1, most: 4, target: 20, back: 20, coldStart: "10s" };
  // Loops that are quick enough for runs of two minutes.
  const quick = { hpa: { scrape: "5s", stabilization_window: "30s" }, keda: { scrape: "5s", polling_interval: "10s", stabilization_window: "30s", cooldown_period: "30s" }, knative: { scrape: "5s" } };

  const crashOf = (life) => ((life && life.failures) || []).find((f) => f.kind === "crash");
  const crash = (s) => crashOf(s.lifecycle);
  const scaler = (s) => (s.lifecycle && s.lifecycle.autoscale) || null;

  // What was set last: the scenario that is shown may be older than that.
  let last = { text: undefined, life: null, scenario: null };
  function current(query, s) {
    const text = query.get("lifecycle");
    return last.text === text && (text !== undefined || last.scenario === s) ? last.life : s.lifecycle;
  }

  // flow writes a value as YAML does on one line.
  function flow(v) {
    if (Array.isArray(v)) return `[${v.map(flow).join(", ")}]`;
    if (v !== null && typeof v === "object") return `{${Object.entries(v).map(([k, w]) => `${k}: ${flow(w)}`).join(", ")}}`;
    return String(v);
  }

  // change sets the lifecycle to what it is, but for some of its keys; null takes one away. Where nothing happens there is none.
  function change(query, s, keys) {
    let life = { ...(current(query, s) || { cold_start: usual.coldStart, probe: "1s" }), ...keys };
    for (const key of Object.keys(life)) if (life[key] === null || (key === "failures" && !life[key].length)) delete life[key];
    if (!life.failures && !life.autoscale && !life.random_crashes) life = null;
    query.set("lifecycle", life && flow(life));
    last = { text: query.get("lifecycle"), life, scenario: s };
  }

  // changeCrash puts what edit makes of the first crash, or of none, in its place.
  function changeCrash(query, s, edit) {
    const life = current(query, s), was = crashOf(life), one = edit(was);
    const others = ((life && life.failures) || []).filter((f) => f !== was);
    change(query, s, { failures: one ? [one, ...others] : others });
  }

  // changeScaler changes keys of the autoscaler.
  function changeScaler(query, s, edit) {
    const { initial, ...rest } = (current(query, s) || {}).autoscale || {};
    change(query, s, { autoscale: { ...rest, ...edit(rest) } });
  }

  const seconds_ = (v) => `${Number(v.toPrecision(3))}s`;
  const pools = (s) => Boolean(s.pools);
  const still = (s) => pools(s) || !s.lifecycle;
  const unscaled = (s) => pools(s) || !scaler(s);

  return [
    { id: "kill", label: "A replica crashes after", min: 1, max: 110, unit: "s", none: "never", hidden: pools, keys: ["lifecycle.failures"],
      read: (s) => (crash(s) ? seconds(crash(s).at) : null),
      write: (query, v, s) => changeCrash(query, s, (was) => (v === null ? null : { ...(was || { kind: "crash", at: "", replica: 0, for: seconds_(usual.back) }), at: seconds_(v) })),
      note: (s) => (crash(s) ? "Its requests fail, and its cache is lost" : "") },
    { id: "back", label: "It restarts after", min: 1, max: 100, unit: "s", none: "never", hidden: (s) => pools(s) || !crash(s),
      read: (s) => (crash(s) && crash(s).for ? seconds(crash(s).for) : null),
      write: (query, v, s) => changeCrash(query, s, ({ for: _, ...one }) => (v === null ? one : { ...one, for: seconds_(v) })) },
    { id: "scaler", label: "Autoscaler", hidden: pools, keys: ["lifecycle.autoscale"],
      options: [{ value: "none", text: "none" }, { value: "hpa", text: "hpa: Kubernetes" }, { value: "keda", text: "keda" }, { value: "knative", text: "knative" }],
      read: (s) => (scaler(s) ? scaler(s).policy : "none"),
      write: (query, v, s) => {
        const was = (current(query, s) || {}).autoscale;
        if (v === "none") {
          change(query, s, { autoscale: null });
          if (was) query.set("deployment.replicas", String(was.max));
          return;
        }
        const most = was ? was.max : Math.max(usual.most, s.deployment.replicas);
        change(query, s, { autoscale: { policy: v, min: was ? Math.max(was.min, 1) : usual.least, max: most, metric: "concurrency", target: was ? was.target : usual.target, ...quick[v] } });
        query.set("deployment.replicas", null); // max takes its place
      } },
    { id: "least", label: "Minimum number of replicas", min: 1, max: 16, whole: true, hidden: unscaled, keys: ["lifecycle.autoscale.min"],
      read: (s) => scaler(s) && scaler(s).min, write: (query, v, s) => changeScaler(query, s, (a) => ({ min: v, max: Math.max(v, a.max) })) },
    { id: "most", label: "Maximum number of replicas", min: 1, max: 16, whole: true, hidden: unscaled, keys: ["lifecycle.autoscale.max"],
      read: (s) => scaler(s) && scaler(s).max, write: (query, v, s) => changeScaler(query, s, (a) => ({ max: v, min: Math.min(v, a.min) })) },
    { id: "target", label: "Target: requests per replica, waiting and running", min: 1, max: 250, log: true, whole: true, hidden: unscaled, keys: ["lifecycle.autoscale.target"],
      read: (s) => scaler(s) && scaler(s).target, write: (query, v, s) => changeScaler(query, s, () => ({ target: v })) },
    { id: "cold", label: "Cold start: time until a new replica is ready", min: 1, max: 100, unit: "s", hidden: still, keys: ["lifecycle.cold_start"],
      read: (s) => { const c = s.lifecycle && s.lifecycle.cold_start; return c && typeof c === "object" ? seconds(c.mean ?? c.value) ?? 0 : seconds(c || "0s"); },
      write: (query, v, s) => change(query, s, { cold_start: seconds_(v) }) },
  ];
};
