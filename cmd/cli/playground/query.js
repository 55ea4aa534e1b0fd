// What is asked of the simulator, and how the address holds it: #lesson=4&step=1&rate=12&engine.policy=sglang, where all
// but lesson and step are keys of a scenario with their values, as --set takes them.
"use strict";

Clifftop.Query = class Query {
  constructor(lesson = 0, step = 0, settings = []) {
    this.lesson = lesson;
    this.step = step;
    this.settings = new Map(settings);
  }

  // fromHash reads an address. What it cannot read it throws as words.
  static fromHash(hash) {
    const query = new Query();
    for (const part of hash.replace(/^#/, "").split("&")) {
      if (!part) continue;
      const [name, ...rest] = part.split("=");
      let key, value;
      try {
        key = decodeURIComponent(name);
        value = decodeURIComponent(rest.join("=").replaceAll("+", " "));
      } catch {
        throw new Error(`“${part.slice(0, 60)}” is not a valid part of an address`);
      }
      if (!rest.length || !key) throw new Error(`“${part.slice(0, 60)}” is not KEY=VALUE`);
      if (key === "lesson" || key === "step") {
        if (!/^[0-9]{1,3}$/.test(value)) throw new Error(`${key} is “${value.slice(0, 20)}” (want a number)`);
        query[key] = Number(value);
      } else {
        query.settings.set(key, value);
      }
    }
    if (query.lesson && !query.step) query.step = 1;
    return query;
  }

  toHash() {
    const plain = (text) => encodeURIComponent(text).replaceAll("%20", "+").replace(/%(3A|2C|7B|7D|5B|5D)/g, decodeURIComponent);
    const parts = this.lesson ? [`lesson=${this.lesson}`, `step=${this.step}`] : [];
    for (const [key, value] of this.settings) parts.push(`${plain(key)}=${plain(value)}`);
    return parts.length ? "#" + parts.join("&") : "";
  }

  // asked is the query as the simulator reads it.
  asked() {
    return { lesson: this.lesson, step: this.step, set: [...this.settings].map(([k, v]) => `${k}=${v}`) };
  }

  // set changes a key; null takes the change back.
  set(key, value) {
    if (value === null) this.settings.delete(key);
    else this.settings.set(key, value);
  }

  get(key) { return this.settings.get(key); }
};
