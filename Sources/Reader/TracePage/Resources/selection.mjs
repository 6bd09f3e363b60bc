// Sums of what is drawn of a part of the time: of each call the part that lies there, as calls those that begin there.
import { SCHEMA } from "./schema.mjs";
import { BAND_OF, SLICE } from "./timeline.mjs";
import { hasShares, offCPU } from "./states.mjs";

/// The value at a share of sorted ones, by nearest rank.
export function percentile(sorted, share) {
  return sorted.length ? sorted[Math.min(Math.max(Math.ceil(sorted.length * share) - 1, 0), sorted.length - 1)] : null;
}

/// How much of the time bands fill: where there are several levels of them, the fullest.
function filled(bands, from, to) {
  const changes = [], shares = [];
  for (let i = 0; i < bands.length; i += SCHEMA.band.length) {
    const start = Math.max(bands[i + BAND_OF.start], from), end = Math.min(bands[i + BAND_OF.start] + bands[i + BAND_OF.length], to);
    if (end > start) changes.push([start, bands[i + BAND_OF.level], bands[i + BAND_OF.share]], [end, bands[i + BAND_OF.level], 0]);
  }
  changes.sort((a, b) => a[0] - b[0] || a[2] - b[2]);
  let sum = 0, before = from;
  for (const [at, level, share] of changes) {
    sum += (at - before) * Math.max(0, ...shares.filter(part => part));
    before = at;
    shares[level] = share;
  }
  return sum;
}

/// What a row has of a time by state: `off` of it the thread was waiting, and runnable.
const byState = (kind, whole, off) => ({
  [kind + "Running"]: off ? whole - off[0] - off[1] : null, [kind + "Waiting"]: off ? off[0] : null, [kind + "Runnable"]: off ? off[1] : null,
});

/// - lanes: threads with slices, bands and states
/// Rows as `SCHEMA.row` names their values; own code has no calls. And how much time calls fill that are not drawn one by one, so that
/// they are in no row: in the self time of what they are called from; and whether times by state are estimates.
export function drawnSums(lanes, { from, to }, isOwnCode) {
  const rows = new Map();
  const of = fn => {
    let row = rows.get(fn);
    if (!row) rows.set(fn, row = { fn, calls: 0, total: 0, self: 0, maximum: null, lengths: [], off: { self: [0, 0], total: [0, 0] } });
    return row;
  };
  const added = (sum, off, sign) => { for (const n of [0, 1]) sum[n] += sign * off[n]; };
  const known = lanes.filter(lane => lane.states), isEstimate = known.some(lane => hasShares(lane.states, { from, to }));
  let undrawn = 0;
  for (const lane of lanes) {
    const open = [], offOf = lane.states ? offCPU(lane.states) : () => [0, 0];
    for (let i = 0; i < lane.slices.length; i += SCHEMA.slice.length) {
      const start = lane.slices[i + SLICE.start], length = lane.slices[i + SLICE.length], level = lane.slices[i + SLICE.level];
      const fn = lane.slices[i + SLICE.fn], end = start + length, low = Math.max(start, from), high = Math.min(end, to);
      if (start >= to) break;
      if (high < low || end < from || (high === low && length > 0)) continue;
      const row = of(fn), part = high - low, off = offOf(low, high);
      // Its callers are longer than it, so that they are drawn, too; a nanosecond may have been rounded off.
      open.length = Math.min(open.length, level);
      const callers = open.filter(call => call.end >= end - 1), parent = callers[callers.length - 1];
      if (parent) {
        of(parent.fn).self -= part;
        added(of(parent.fn).off.self, off, -1);
      }
      row.self += part;
      added(row.off.self, off, 1);
      if (!callers.some(call => call.fn === fn)) {
        row.total += part;
        added(row.off.total, off, 1);
      }
      open[level] = { fn, end };
      if (isOwnCode(fn)) continue;
      if (start >= from) row.calls++;
      if (start >= from && end <= to) row.lengths.push(length);
    }
    undrawn += filled(lane.dense, from, to);
  }
  const result = [...rows.values()].map(({ lengths, off, ...row }) => {
    lengths.sort((a, b) => a - b);
    const exact = lengths.length ? 0 : null, times = ["self", "total"].map(kind => byState(kind, row[kind], known.length ? off[kind] : null));
    return {
      ...row, maximum: lengths.length ? lengths[lengths.length - 1] : null, p50: percentile(lengths, 0.5), p99: percentile(lengths, 0.99),
      p50Error: exact, p99Error: exact, ...times[0], ...times[1],
    };
  });
  return { rows: result, undrawn, isEstimate };
}

/// Adds to each row what its longest call was called with, and what it gave: where that call is drawn and has arguments. A call's length
/// is rounded by itself.
/// - lanes: {slices, values} of threads
export function withArguments(rows, lanes, { from, to }) {
  const longest = new Map();
  for (const { slices, values } of lanes) {
    if (!values.size) continue;
    for (let i = 0; i < slices.length; i += SCHEMA.slice.length) {
      const start = slices[i + SLICE.start], length = slices[i + SLICE.length], known = longest.get(slices[i + SLICE.fn]);
      if (start < from || start + length > to || (known && known.length >= length)) continue;
      longest.set(slices[i + SLICE.fn], { length, text: values.get(i / SCHEMA.slice.length) || "" });
    }
  }
  return rows.map(row => {
    const call = longest.get(row.fn);
    return { ...row, passed: call && row.maximum !== null && Math.abs(call.length - row.maximum) <= 1 ? call.text : "" };
  });
}

/// Rows that were asked for, by the page's own numbers of functions.
/// - known: number of a [name, module]
export function answeredSums({ functions, rows }, known) {
  return rows.map(values => {
    const row = {};
    SCHEMA.row.forEach((key, index) => { row[key] = values[index]; });
    return { ...row, fn: known(functions[row.fn]) };
  });
}
