// The page: takes the state from the server's events and shows it.
"use strict";

(() => {
  const { scaled, duration, percent, sig } = Clifftop.format;
  const { element } = Clifftop.table;
  const get = (id) => document.getElementById(id);
  const ms = (seconds) => duration(seconds * 1e3);
  const whole = (v) => v.toLocaleString("en-US");
  const batch = Clifftop.batch(get("bars"));

  let about = null, chosen = Number(document.documentElement.dataset.replica), paused = false, source = null, retry = 0, lastState = 0, lateAt = -Infinity, warned = -Infinity;
  let history = [], changes = [];
  const most = 300; // points of the charts

  // tile sets a number at the top, and what stands below it.
  function tile(name, value, note) {
    document.querySelector(`[data-tile="${name}"]`).textContent = value;
    document.querySelector(`[data-note="${name}"]`).textContent = note || "";
  }

  function tiles(s) {
    tile("running", whole(s.running), `${whole(s.system)} in the system`);
    tile("waiting", whole(s.waiting + s.held), s.held ? `${whole(s.held)} at the router` : s.preemptions ? `${whole(s.preemptions)} preempted` : "");
    tile("kv", s.blocks ? percent(s.used / s.blocks) : whole(s.used), s.blocks ? `${scaled(s.used)} of ${scaled(s.blocks)}` : "blocks, no limit");
    tile("tokens", `${scaled(s.tokens)} tok/s`, `prompts ${scaled(s.prompts)} tok/s`);
    const failed = s.ended.slice(1).reduce((a, b) => a + b, 0);
    tile("requests", `${sig(s.requests, 3)}/s`, failed ? `${scaled(failed)} not completed` : `${sig(s.arrivals, 3)}/s arrive`);
    for (const name of ["ttft", "tpot", "itl"]) {
      const values = s.latencies[name];
      tile(name, values ? ms(values[0]) : "–", values ? `p99 ${ms(values[2])}` : "");
    }
    warn(s.lag);
    const speed = about.speed === 1 ? "" : ` · ${sig(about.speed, 3)} simulated seconds per second; rates and latencies are simulated`;
    get("caption").textContent = `${about.replicas.length} ${about.replicas.length === 1 ? "replica" : "replicas"}, policy ` +
      `${about.policy}${speed} · simulated time ${clock(s.t)} · ${s.lag_max < 0.001 ? "less than 1 ms" : `at most ${ms(s.lag_max)}`} ` +
      `behind the clock · clifftop ${about.version}`;
  }

  // warn says that the simulation is late. The text stays for a while: it is read aloud, and the page should not jump.
  function warn(lag) {
    const now = performance.now(), banner = get("lag");
    if (lag > 0.05) {
      if (now - warned > 5000) {
        warned = now;
        banner.textContent = `The simulation was up to ${ms(lag)} behind the clock: this machine is too slow for the load, or other programs use it.`;
      }
      lateAt = now;
      banner.hidden = false;
    } else if (now - lateAt > 8000) {
      banner.hidden = true;
    }
  }

  // clock writes a time as hours, minutes and seconds.
  function clock(seconds) {
    const s = Math.floor(seconds), two = (v) => String(v).padStart(2, "0");
    return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  }

  let rows = [];

  // table makes the rows of the replicas once.
  function table() {
    const meter = () => element("span", { class: "meter", "aria-hidden": "true" }, element("i"));
    rows = about.replicas.map((r, i) => {
      const button = element("button", { type: "button", "aria-pressed": String(i === chosen), title: "Show its batch" }, r.name);
      button.addEventListener("click", () => choose(i));
      const cells = ["state", "running", "waiting", "kv", "tokens", "preemptions"].map(() => element("td"));
      const row = { button, cells, text: cells.map((c) => c.appendChild(document.createTextNode(""))) };
      row.running = cells[1].appendChild(meter()).firstChild;
      if (r.blocks) row.kv = cells[3].appendChild(meter()).firstChild;
      row.tr = element("tr", {}, element("th", { scope: "row" }, button), ...cells);
      return row;
    });
    document.querySelector("#replicas tbody").replaceChildren(...rows.map((r) => r.tr));
  }

  function fill(bar, part) {
    bar.style.width = `${Math.min(1, part) * 100}%`;
    bar.className = part > 0.95 ? "full" : "";
  }

  function replicas(list) {
    list.forEach((r, i) => {
      const row = rows[i], known = about.replicas[i];
      const texts = [r.state, whole(r.running), whole(r.waiting),
        known.blocks ? percent(r.used / known.blocks) : whole(r.used), scaled(r.tokens), whole(r.preemptions)];
      texts.forEach((t, k) => { if (row.text[k].data !== t) row.text[k].data = t; });
      row.cells[0].className = `state-${r.state}`;
      fill(row.running, known.seats ? r.running / known.seats : 0);
      if (row.kv) {
        fill(row.kv, r.used / known.blocks);
        row.cells[3].title = `${whole(r.used)} of ${whole(known.blocks)} blocks`;
      }
    });
  }

  function showBatch(b) {
    if (!b || b.replica !== chosen) return;
    batch.draw(b.running);
    const n = b.running.length + b.more;
    const prefill = b.running.filter((s) => s[3] < s[1]).length;
    get("batch-of").textContent = `of ${about.replicas[chosen].name}`;
    get("bars").setAttribute("aria-label", `${n} sequences run; ${prefill} of them compute their prompts.`);
    const longest = Math.max(0, ...b.running.map((s) => s[1] + s[4]));
    get("bars-note").textContent = n ? `${whole(n)} sequences, ${prefill} in prefill; the longest has ${whole(longest)} tokens` +
      (b.more ? `; ${whole(b.more)} more are not drawn.` : ".") : "";
    get("queue").replaceChildren(...b.waiting.map((s) =>
      element("li", {}, `#${s[0]} · ${whole(s[1])} tok · ${ms(s[6])}`)));
    const waiting = b.waiting.length + b.behind;
    get("queue-note").textContent = waiting ? `of ${whole(waiting)}${b.behind ? `; the first ${b.waiting.length}` : ""}` : "is empty";
  }

  // choose shows the batch of another replica.
  function choose(i) {
    chosen = i;
    rows.forEach((r, k) => r.button.setAttribute("aria-pressed", String(k === i)));
    batch.draw([]);
    connect();
  }

  const parts = (name) => ["p50", "p90", "p99"].map((part, i) => [part, (p) => p[name] && p[name][i] * 1e3]);
  const lines = {
    running: { title: "Requests", unit: "number", y: "requests", series: [["running", (p) => p.running], ["waiting", (p) => p.waiting]] },
    tokens: { title: "Tokens per second", unit: "plain", y: "tokens/s", series: [["output", (p) => p.tokens], ["prompts", (p) => p.prompts]] },
    ttft: { title: "Time to first token", unit: "ms", y: "TTFT", series: parts("ttft") },
    tpot: { title: "Time per output token", unit: "ms", y: "TPOT", series: parts("tpot") },
    itl: { title: "Inter-token latency", unit: "ms", y: "ITL", series: parts("itl") },
    kv: { title: "KV blocks in use", unit: "fraction", y: "of all blocks", max: 1, series: [["", (p) => p.kv]] },
  };
  const charts = {};

  // top is the end of an axis: above a value, and not so close below a round number that the number has no place.
  function top(v) {
    if (!(v > 0)) return 0;
    const end = v * 1.08, size = 10 ** Math.floor(Math.log10(end));
    return end > 4.4 * size && end < 5 * size ? 5 * size : end;
  }

  function spec(c) {
    const now = history.length ? history[history.length - 1].t : 0;
    const x = history.map((p) => (p.t - now) / about.speed);
    const series = c.series.map(([name, of]) => ({ name, x, y: history.map((p) => of(p) ?? null) }));
    return {
      title: c.title, height: 134,
      empty: history.length > 1 ? "" : "No values yet.",
      x: { title: "seconds ago", unit: "number", min: Math.min(-60, x[0] || 0), max: 0 },
      y: { title: c.y, unit: c.unit, min: 0, max: c.max || top(Math.max(0, ...series.flatMap((s) => s.y))) },
      series,
    };
  }

  // draw draws the charts, but for those that are being read.
  function draw() {
    for (const [name, c] of Object.entries(lines)) {
      if (!charts[name]) {
        const slot = element("div");
        document.querySelector(".charts").append(slot);
        charts[name] = { slot, chart: Clifftop.chart(slot, spec(c), { level: 3 }) };
      } else if (!charts[name].slot.querySelector(".chart-plot:hover, .chart-plot:focus")) {
        charts[name].chart.feed(spec(c));
      }
    }
    charts.kv.slot.hidden = about.replicas.some((r) => !r.blocks);
  }

  function showChanges() {
    get("changes").hidden = !changes.length;
    const list = [...changes].reverse().map((c) => element("li", {}, `${clock(c.t)}  ${about.replicas[c.replica].name}: `,
      element("span", { class: `state-${c.state}` }, c.state)));
    document.querySelector("#changes ol").replaceChildren(...list);
  }

  function link(kind, text) {
    const at = get("link");
    if (at.textContent !== text) at.textContent = text;
    at.className = kind;
    document.body.classList.toggle("stale", kind === "lost");
  }

  const handlers = {
    hello(data) {
      const first = JSON.stringify(about) !== JSON.stringify(data.about); // the server may be another one
      about = data.about;
      history = data.history;
      changes = data.changes;
      if (chosen >= about.replicas.length) chosen = 0;
      if (first) {
        table();
        document.querySelector("h1").textContent = about.title;
        document.title = `${about.title} · clifftop serve`;
      }
      draw();
      showChanges();
    },
    state(data) {
      lastState = performance.now();
      link("live", "live");
      tiles(data);
      if (data.replicas) replicas(data.replicas);
      showBatch(data.batch);
    },
    point(data) {
      history.push(data.point);
      if (history.length > most) history.shift();
      draw();
      if (JSON.stringify(changes) !== JSON.stringify(data.changes)) {
        changes = data.changes;
        showChanges();
      }
    },
  };

  function connect() {
    clearTimeout(retry);
    if (source) source.close();
    source = null;
    if (paused || document.hidden) return; // the server then does nothing for this page
    source = new EventSource(`live/events?replica=${chosen}`);
    const own = source;
    for (const [name, handle] of Object.entries(handlers)) {
      own.addEventListener(name, (e) => { if (own === source) handle(JSON.parse(e.data)); });
    }
    own.onerror = () => {
      if (own !== source) return;
      link("lost", "no connection");
      own.close();
      retry = setTimeout(connect, 2000);
    };
  }

  document.addEventListener("visibilitychange", connect);

  get("pause").addEventListener("click", () => {
    paused = !paused;
    get("pause").setAttribute("aria-pressed", String(paused));
    get("pause").textContent = paused ? "Resume" : "Pause";
    if (paused) link("", "paused");
    connect();
  });
  setInterval(() => {
    if (source && lastState && performance.now() - lastState > 3000) link("lost", "no news");
  }, 1000);

  // The button goes to the other theme; without it the system decides.
  const root = document.documentElement, button = get("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => { button.textContent = dark() ? "Light" : "Dark"; };
  const redraw = () => {
    batch.draw();
    for (const c of Object.values(charts)) c.chart.redraw();
  };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    label();
    redraw();
  });
  system.addEventListener("change", () => { label(); redraw(); });
  button.hidden = false;
  label();
  connect();
})();
