// Numbers for people.

export function time(ns) {
  const sign = ns < 0 ? "−" : "", v = Math.abs(ns);
  if (v < 1e3) return sign + Math.round(v) + " ns";
  if (v < 1e6) return sign + (v / 1e3).toPrecision(v < 1e5 ? 3 : 4) + " µs";
  if (v < 1e9) return sign + (v / 1e6).toPrecision(v < 1e8 ? 3 : 4) + " ms";
  return sign + (v / 1e9).toPrecision(4) + " s";
}
/// A moment, with digits enough to distinguish it from one that is `step` away.
export function moment(ns, step) {
  const v = Math.abs(ns), [unit, name] = v < 1e3 ? [1, "ns"] : v < 1e6 ? [1e3, "µs"] : v < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  const digits = Math.max(Math.ceil(Math.log10(unit / Math.max(step, 1e-3)) - 1e-9), 0);
  return (ns / unit).toFixed(Math.min(digits, 12)) + " " + name;
}
export const change = ns => (ns > 0 ? "+" : "") + time(ns);
export const many = n => n.toLocaleString("en-US");
export const share = (part, whole) => whole > 0 ? (part / whole * 100).toFixed(part / whole < 0.0995 ? 2 : 1) + " %" : "";
export const plural = (n, noun) => many(n) + " " + noun + (n === 1 ? "" : "s");
