// Numbers as axes, hover texts and tables write them, and the ticks of axes.
// The forms are those of the pictures: 950, 1.2k, 46k; 0.5 ms, 80 ms, 1.2 s; 25 %; $1.2k.
"use strict";
var Clifftop = globalThis.Clifftop || {};
globalThis.Clifftop = Clifftop;

Clifftop.format = (() => {
  // sig writes v with n significant digits and no needless zero.
  function sig(v, n) {
    if (v === 0 || !Number.isFinite(v)) return "0";
    if (Math.abs(v) < 0.99e-4) return v.toExponential(n - 1);
    v = Number(v.toPrecision(n));
    const decimals = Math.max(0, n - 1 - Math.floor(Math.log10(Math.abs(v)) + 1e-9));
    const text = v.toFixed(Math.min(decimals, 20));
    return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
  }

  // scaled writes large numbers with k, M, G or T.
  function scaled(v, n = 3) {
    for (const [size, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (Math.abs(v) >= size * (1 - 0.5 * 10 ** -n)) return sig(v / size, n) + name;
    }
    return sig(v, n);
  }

  // duration writes milliseconds in the unit that suits them.
  function duration(ms, n = 3) {
    const size = Math.abs(ms);
    if (size === 0) return "0 s";
    if (size < 1) return sig(ms * 1e3, n) + " µs";
    if (size < 999.5) return sig(ms, n) + " ms";
    if (size < 6e5 || size === 1e6) return sig(ms / 1e3, n) + " s";
    if (size < 7.2e6) return sig(ms / 6e4, n) + " min";
    return scaled(ms / 3.6e6, n) + " h";
  }

  // percent writes a fraction.
  function percent(v) {
    const p = v * 100;
    if ((p > 0 && p < 1) || (p > 99 && p < 100)) return sig(p, p > 99 ? 3 : 2) + " %";
    return p.toFixed(0) + " %";
  }

  function load(v) {
    return v === Math.trunc(v) && Math.abs(v) < 1e5 ? v.toFixed(0) : scaled(v, 3);
  }

  // forms are the ways to write a value, by the unit of its axis; digits asks for more than an axis needs.
  const forms = {
    plain: (v, digits = 3) => scaled(v, digits),
    number: (v) => load(v),
    ms: (v, digits = 3) => duration(v, digits),
    s: (v, digits = 6) => sig(v, digits) + " s",
    seconds: (v, digits = 6) => sig(v, digits),
    fraction: (v) => percent(v),
    usd: (v, digits = 3) => "$" + scaled(v, digits),
  };

  // value writes v in a unit.
  function value(v, unit, digits) {
    if (v === null || v === undefined || !Number.isFinite(v)) return "–";
    return (forms[unit] || forms.plain)(v, digits);
  }

  // oneTwoFive is the nearest 1, 2 or 5 times a power of ten that is not below v, or not above it.
  function oneTwoFive(v, up) {
    if (!(v > 0)) return 1;
    const e = 10 ** Math.floor(Math.log10(v));
    const steps = [0.5, 1, 2, 5, 10];
    if (up) return (steps.find((s) => s * e >= v * (1 - 1e-9)) || 20) * e;
    return (steps.reverse().find((s) => s * e <= v * (1 + 1e-9)) || 0.2) * e;
  }

  // linearTicks are about n round values.
  function linearTicks(min, max, n) {
    const step = oneTwoFive(((max - min) / Math.max(n, 1)) * 0.9, true);
    const ticks = [];
    for (let k = Math.ceil(min / step - 1e-9); k * step <= max + step * 1e-9; k++) ticks.push(k * step + 0);
    return ticks;
  }

  // logTicks are 1-2-5 multiples, or 1-3, or powers of ten, as fits in n labels. Few that are so leave a linear division.
  function logTicks(min, max, n) {
    const of = (stride, digits) => {
      const ticks = [];
      for (let e = Math.floor(Math.log10(min)) - 1; e <= Math.ceil(Math.log10(max)) + 1; e++) {
        if (e % stride !== 0) continue;
        for (const d of digits) {
          const v = Number((d * 10 ** e).toPrecision(3));
          if (v >= min * (1 - 1e-9) && v <= max * (1 + 1e-9)) ticks.push(v);
        }
      }
      return ticks;
    };
    if (max / min < 3) return linearTicks(min, max, n);
    for (const digits of [[1, 2, 5], [1, 3], [1]]) {
      const ticks = of(1, digits);
      if (ticks.length <= Math.max(n, 2)) return ticks;
    }
    for (let stride = 2; ; stride++) {
      const ticks = of(stride, [1]);
      if (ticks.length <= Math.max(n, 2)) return ticks;
    }
  }

  return { sig, scaled, duration, percent, value, oneTwoFive, linearTicks, logTicks };
})();
