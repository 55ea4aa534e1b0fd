// The page: one query and its results.
"use strict";

(() => {
  const { element } = Clifftop.table;
  const $ = (id) => document.getElementById(id);

  function message(text, more = []) {
    const box = $("message");
    box.hidden = !text;
    box.replaceChildren(...(text ? [element("p", {}, text), ...more.map((t) => element("p", {}, t))] : []));
  }

  // unable returns what the browser lacks.
  function unable() {
    if (typeof WebAssembly !== "object" || !WebAssembly.instantiateStreaming) return "WebAssembly";
    if (typeof Worker !== "function") return "Web Workers";
    if (typeof DecompressionStream !== "function") return "DecompressionStream";
    return "";
  }

  class Play {
    constructor(description) {
      this.engine = new Clifftop.Engine();
      this.query = new Clifftop.Query();
      this.charts = {};
      this.curve = { key: null, over: "rate", points: [], judged: null, done: null };
      this.tiles = description.tiles;
      this.controls = new Clifftop.Controls($("controls"), description, this.query, () => this.changed());
      this.tour = new Clifftop.Tour($("tour"), description.lessons, (lesson, step) => this.lesson(lesson, step));
      $("version").textContent = `Clifftop ${description.clifftop}`;
      for (const l of description.lessons) $("lesson").append(element("option", { value: l.number }, `${l.number}: ${l.title}`));
      $("lesson").addEventListener("change", (e) => this.lesson(Number(e.target.value), 1));
      $("fresh").addEventListener("click", () => this.lesson(0, 0));
      $("copy-yaml").addEventListener("click", (e) => this.copy(e.target, () => $("yaml").textContent));
      $("copy-link").addEventListener("click", (e) => this.copy(e.target, () => location.href));
      $("copy-summary").addEventListener("click", (e) => this.copy(e.target, () => this.engine.ask("summary", this.query.asked())));
      window.addEventListener("hashchange", () => this.fromAddress());
      const redraw = () => Object.values(this.charts).forEach((c) => c.redraw());
      window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    }

    fromAddress() {
      try {
        this.use(Clifftop.Query.fromHash(location.hash));
      } catch (e) {
        message(`The address cannot be read: ${e.message}.`, ["The page shows the default scenario instead."]);
        this.use(new Clifftop.Query(), true);
        return;
      }
      this.redraw();
    }

    // use takes another query in the place of the present one.
    use(query, draw) {
      Object.assign(this.query, { lesson: query.lesson, step: query.step, settings: query.settings });
      $("lesson").value = String(query.lesson);
      this.tour.show(query.lesson, query.step);
      if (draw) this.redraw();
    }

    // lesson begins with what a lesson simulates, or with the default.
    lesson(number, step) {
      this.use(new Clifftop.Query(number, step));
      document.activeElement && document.activeElement.blur && document.activeElement.closest("#controls") && document.activeElement.blur();
      history.pushState(null, "", this.query.toHash() || location.pathname);
      this.redraw();
    }

    changed() {
      clearTimeout(this.saving); // browsers refuse to change the address all the time
      this.saving = setTimeout(() => history.replaceState(null, "", this.query.toHash() || location.pathname), 250);
      this.redraw();
    }

    // redraw computes what the query asks for. When it is called again before the end, the rest is left out.
    async redraw() {
      this.again = true;
      if (this.running) return;
      this.running = true;
      try {
        while (this.again) {
          this.again = false;
          await this.compute();
        }
      } finally {
        this.running = false;
      }
    }

    async compute() {
      try {
        await this.point();
        if (this.again) return;
        await this.loads();
      } catch (e) {
        this.refused(e);
      }
    }

    refused(e) {
      $("results").classList.add("stale");
      $("progress").hidden = true;
      if (e instanceof Clifftop.Faults) {
        const rest = this.controls.faults(e.list);
        $("status").textContent = "This cannot be simulated. The page still shows the previous results.";
        message(rest.map((f) => (f.key ? `${f.key}: ` : "") + f.problem + (f.hint ? ` (${f.hint})` : ""))[0] || "", rest.slice(1).map((f) => (f.key ? `${f.key}: ` : "") + f.problem));
        return;
      }
      $("status").textContent = "The simulator did not answer.";
      message(e.message);
    }

    async point() {
      const asked = this.query.asked();
      const point = await this.engine.ask("point", asked);
      this.pointMs = this.engine.ms;
      message("");
      this.controls.faults([]);
      $("results").classList.remove("stale");
      this.now = point;
      const s = point.summary;
      this.controls.show(s.scenario, point);
      $("yaml").textContent = point.yaml;
      $("tiles").replaceChildren(...Clifftop.figures.tiles(s, this.tiles, point.withheld).map(([name, text, remark]) =>
        element("div", {}, element("dt", {}, name), element("dd", {}, element("strong", {}, text), element("span", {}, remark)))));
      const warnings = s.warnings.filter((w) => w.code !== "few_samples");
      $("warnings").hidden = !warnings.length;
      $("warnings").replaceChildren(...warnings.map((w) => element("li", {}, w.text)));
      this.draw("batch", Clifftop.figures.batch(point));
      this.draw("pool", Clifftop.figures.pool(point));
      $("lives").hidden = !s.system.replicas;
      if (s.system.replicas) this.draw("lives", Clifftop.figures.lives(point));
      $("fleet").hidden = !s.replicas;
      if (s.replicas) this.draw("fleet", Clifftop.figures.fleet(s));
      this.tell(`${s.requests.offered.toLocaleString("en")} requests simulated in ${Math.round(this.pointMs)} ms`);
    }

    tell(text) { $("status").textContent = text; }

    // load is where on the curve the present run is.
    load() {
      const a = this.now.summary.scenario.workload.arrivals;
      return a ? (this.curve.over === "users" ? a.users : a.rate) : null;
    }

    drawCurve() {
      const of = { over: this.curve.over, points: this.curve.points.filter(Boolean), judged: this.curve.judged, current: this.load(), before: this.curve.before, bound: this.curve.bound, loads: this.curve.loads || [], scenario: this.now.summary.scenario };
      this.draw("throughput", Clifftop.figures.throughput(of));
      this.draw("latency", Clifftop.figures.latency(of));
    }

    // loads draws the curve in two rounds, unless only the load has changed, which is a place on the same curve.
    async loads() {
      const asked = this.query.asked();
      const key = JSON.stringify([asked.lesson, asked.step, asked.set.filter((t) => !/^(rate|users|run\.requests)=/.test(t)), Boolean(this.now.summary.scenario.workload.arrivals.users)]);
      const last = this.curve.points.length ? this.curve.points[this.curve.points.length - 1].value : 0;
      const beyond = this.load() > last && this.load() <= 4 * last; // then the curve goes up to it
      if (key === this.curve.key && !beyond) { this.drawCurve(); return; }
      const start = performance.now();
      let plan;
      try {
        plan = await this.engine.ask("curve", asked);
      } catch (e) {
        if (!(e instanceof Clifftop.Faults)) throw e;
        for (const id of ["throughput", "latency"]) this.draw(id, { title: "No curve", x: {}, y: {}, empty: e.list[0].problem });
        this.curve = { key, over: "rate", points: [], judged: null };
        return;
      }
      const c = { key: null, over: plan.over, loads: plan.loads, bound: plan.bound, points: [], judged: null, before: this.curve.over === plan.over ? this.curve.done || this.curve.before : null };
      this.curve = c;
      this.drawCurve();
      $("progress").hidden = false;
      for (let round = 0; round < plan.rounds; round++) {
        for (let i = 0; i < plan.loads.length; i++) {
          if (this.again) return;
          c.points[i] = await this.engine.ask("load", { load: i, round });
          $("progress").value = (round * plan.loads.length + i + 1) / (plan.rounds * plan.loads.length);
          if (round === 0 || i === plan.loads.length - 1) this.drawCurve();
        }
        if (this.again) return;
        c.judged = await this.engine.ask("judge");
        c.judged.points.forEach((p, i) => { c.points[i] = p; });
        this.drawCurve();
        if (round === 0) this.curveMs = performance.now() - start;
        if (round === 0) c.done = c.points.slice();
      }
      c.done = c.points.slice();
      c.key = key;
      $("progress").hidden = true;
      const again = plan.rounds > 1 ? ", and was drawn again with longer runs" : "";
      this.tell(`${$("status").textContent.split(";")[0]}; the curve took ${Math.round(this.curveMs)} ms${again}`);
    }

    draw(id, spec) {
      if (this.charts[id]) this.charts[id].update(spec);
      else this.charts[id] = Clifftop.chart($(id), spec, { level: 2 });
    }

    async copy(button, text) {
      const was = button.textContent;
      try {
        await navigator.clipboard.writeText(await text());
        button.textContent = "Copied";
      } catch {
        $("scenario").open = true;
        button.textContent = "Not allowed; copy the text below";
      }
      setTimeout(() => { button.textContent = was; }, 1500);
    }
  }

  async function start() {
    const lacks = unable();
    if (lacks) {
      $("status").textContent = "The simulator cannot run here.";
      message(`This browser lacks ${lacks}. Use Firefox, Chrome, Edge or Safari of 2023 or later.`);
      return;
    }
    try {
      const response = await fetch("description.json");
      if (!response.ok) throw new Error(`description.json: ${response.status} ${response.statusText}`);
      const play = new Play(await response.json());
      window.play = play;
      play.fromAddress();
    } catch (e) {
      $("status").textContent = "The page could not be loaded.";
      message(location.protocol === "file:" ? "Browsers run this page only from a web server. Start one with clifftop play." : e.message);
    }
  }

  start();
})();
