// A lesson as a tour: its idea, its steps to play with, and its results after a run.
"use strict";

Clifftop.Tour = (() => {
  const { element } = Clifftop.table;

  return class Tour {
    // load is called with a lesson and a step to play with.
    constructor(root, lessons, load) {
      Object.assign(this, { root, lessons, load, number: 0, engine: null, charts: [] });
    }

    // show opens a lesson, at a step; 0 closes it.
    show(number, step) {
      const lesson = this.lessons.find((l) => l.number === number);
      this.root.hidden = !lesson;
      if (!lesson) { this.leave(); this.number = 0; return; }
      if (this.number !== number) this.build(lesson);
      this.number = number;
      this.step = step;
      for (const [i, b] of this.steps.entries()) b.setAttribute("aria-pressed", String(i + 1 === step));
    }

    leave() {
      for (const c of this.charts) c.destroy();
      this.charts = [];
      if (this.engine && this.busy) this.engine.stop();
    }

    build(lesson) {
      this.leave();
      this.steps = lesson.steps.map((s, i) => {
        const b = element("button", { type: "button", "aria-pressed": "false" }, "Play with it");
        b.setAttribute("aria-label", `Play with it: step ${i + 1}, ${s.name}`);
        b.addEventListener("click", () => this.load(lesson.number, i + 1));
        return b;
      });
      this.hold = element("button", { type: "button", class: "primary", id: "hold" }, "Run the lesson");
      this.hold.addEventListener("click", () => this.held(lesson));
      this.bar = element("progress", { max: 1, value: 0, hidden: true, "aria-label": "Progress of the lesson" });
      this.said = element("span", { role: "status" });
      this.out = element("div", { id: "lesson-results" });
      const words = element("details", {}, element("summary", {}, "Terms"),
        element("dl", { class: "words" }, ...(lesson.terms || []).flatMap((t) => [element("dt", {}, t.Word), element("dd", {}, t.Meaning)])));
      const way = (to, text) => {
        const other = this.lessons.find((l) => l.number === to);
        if (!other) return [];
        const b = element("button", { type: "button" }, text);
        b.addEventListener("click", () => this.load(to, 1));
        return [b];
      };
      this.root.replaceChildren(
        element("h2", {}, `Lesson ${lesson.number}: ${lesson.title}`),
        element("p", { class: "idea" }, lesson.idea), words,
        element("h3", {}, "What is simulated"),
        element("ol", { class: "steps" }, ...lesson.steps.map((s, i) => element("li", {}, element("span", {}, s.text), " ", this.steps[i]))),
        element("div", { class: "tour-tools" }, this.hold, this.bar, this.said, ...way(lesson.number - 1, "Previous lesson"), ...way(lesson.number + 1, "Next lesson")),
        this.out);
    }

    // held runs the whole lesson in its own thread, so that the sliders continue to work.
    async held(lesson) {
      if (this.busy) { this.engine.stop(); return; }
      this.engine ||= new Clifftop.Engine(120);
      this.busy = true;
      this.hold.textContent = "Stop";
      this.bar.hidden = false;
      this.bar.value = 0;
      this.said.textContent = "simulating …";
      try {
        const result = await this.engine.ask("hold", { number: lesson.number }, (done, total) => { this.bar.value = done / total; });
        this.said.textContent = "";
        if (this.number === lesson.number) this.tell(result);
      } catch (e) {
        this.said.textContent = e.message;
      } finally {
        this.busy = false;
        this.hold.textContent = "Run the lesson";
        this.bar.hidden = true;
      }
    }

    tell(r) {
      for (const c of this.charts) c.destroy();
      const items = (list) => element("ul", {}, ...list.map((t) => element("li", {}, ...[].concat(t))));
      const head = element("tr", {}, ...r.table.columns.map((c) => element("th", { scope: "col" }, c)));
      const rows = r.table.rows.map((row) => element("tr", {}, ...row.map((v, i) => element(i ? "td" : "th", i ? {} : { scope: "row" }, v))));
      const table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
      const pictures = element("div", { class: "charts" });
      this.out.replaceChildren(
        element("h3", {}, "Results"), table, pictures,
        element("h3", {}, "What to look at"), items(r.look),
        element("h3", {}, "Common mistakes"), items(r.mistakes.map((m) => [element("q", {}, m.Said), " " + m.Right])),
        element("h3", {}, "A question for the class"), element("p", {}, r.question),
        element("details", {}, element("summary", {}, "Answer"), element("p", {}, r.answer)),
        element("details", {}, element("summary", {}, `Checked with these results: ${r.claims.filter((c) => c.holds).length} of ${r.claims.length} claims hold`),
          items(r.claims.map((c) => `${c.holds ? "holds" : "FAILS"}: ${c.text} (want ${c.wanted})`))),
      );
      this.charts = r.pictures.flatMap((p) => Clifftop.figures.picture(p)).map((spec) => {
        const root = element("div", {});
        pictures.append(root);
        return Clifftop.chart(root, spec, { level: 4 });
      });
      this.hold.focus();
    }
  };
})();
