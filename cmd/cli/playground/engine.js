// Asks the simulator in its thread.
//
//   const engine = new Clifftop.Engine();
//   const point = await engine.ask("point", query)    // throws Faults, or Broken when the thread is of no use any more
"use strict";

// Faults are what is wrong with a query: [{key, problem, hint}].
Clifftop.Faults = class extends Error {
  constructor(list) {
    super(list.map((f) => (f.key ? f.key + ": " : "") + f.problem).join("\n"));
    this.list = list;
  }
};

Clifftop.Broken = class extends Error {};

Clifftop.Engine = class {
  // patience is how many seconds an answer may take.
  constructor(patience = 30) {
    this.patience = patience;
    this.waiting = new Map();
    this.next = 0;
    this.start();
  }

  start() {
    this.worker = new Worker("worker.js");
    this.worker.onmessage = ({ data }) => this.answered(data);
    this.worker.onerror = (e) => this.fail(e.message || "the simulator's thread cannot be started");
  }

  answered({ id, progress, ok, faults, broken, ms }) {
    const asked = this.waiting.get(id);
    if (!asked) return;
    if (progress) {
      clearTimeout(asked.timer);
      asked.timer = this.watch(id);
      if (asked.progress) asked.progress(...progress);
      return;
    }
    clearTimeout(asked.timer);
    this.waiting.delete(id);
    this.ms = ms;
    if (broken !== undefined) asked.reject(new Clifftop.Broken(broken));
    else if (faults) asked.reject(new Clifftop.Faults(faults));
    else asked.resolve(ok);
  }

  ask(method, query = {}, progress = null) {
    return new Promise((resolve, reject) => {
      const id = ++this.next;
      this.waiting.set(id, { resolve, reject, progress, timer: this.watch(id) });
      this.worker.postMessage({ id, method, query });
    });
  }

  // watch starts the thread anew when it takes too long, since nothing else can stop it.
  watch(id) {
    return setTimeout(() => {
      if (!this.waiting.has(id)) return;
      this.restart();
      this.fail(`no result within ${this.patience} s: this is too much for a browser. Copy the scenario and use clifftop run`);
    }, this.patience * 1000);
  }

  restart() {
    this.worker.terminate();
    this.start();
  }

  // stop ends what is being done.
  stop() {
    this.restart();
    this.fail("stopped");
  }

  fail(text) {
    for (const { reject, timer } of this.waiting.values()) {
      clearTimeout(timer);
      reject(new Clifftop.Broken(text));
    }
    this.waiting.clear();
  }
};
