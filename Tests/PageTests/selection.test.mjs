import assert from "node:assert/strict";
import test from "node:test";
import { answeredSums, drawnSums, percentile, withArguments } from "../../Sources/Reader/TracePage/Resources/selection.mjs";
import { answer, strict } from "./page.mjs";

/// start, length, function, level: main from 0 to 100, own code after it; parse twice, with malloc in the first.
const lane = { slices: [0, 100, 0, 0, 10, 30, 1, 1, 15, 10, 2, 2, 50, 20, 1, 1, 100, 40, 4, 0], dense: [] };
const isOwnCode = fn => fn === 4;
const sums = (from, to, ...lanes) => Object.fromEntries(drawnSums(lanes, { from, to }, isOwnCode).rows.map(row => [row.fn, row]));

const unknown = { selfRunning: null, selfWaiting: null, selfRunnable: null, totalRunning: null, totalWaiting: null, totalRunnable: null };

test("of all the time the sums are those of the calls", () => {
  const rows = sums(0, 140, lane);
  assert.deepEqual(rows[0], { fn: 0, calls: 1, total: 100, self: 50, maximum: 100, p50: 100, p99: 100, p50Error: 0, p99Error: 0, ...unknown });
  assert.deepEqual(rows[1], { fn: 1, calls: 2, total: 50, self: 40, maximum: 30, p50: 20, p99: 30, p50Error: 0, p99Error: 0, ...unknown });
  assert.deepEqual(rows[4], { fn: 4, calls: 0, total: 40, self: 40, maximum: null, p50: null, p99: null, p50Error: null, p99Error: null, ...unknown });
  assert.equal(Object.values(rows).reduce((sum, row) => sum + row.self, 0), 140);
});

test("of a part each call counts with what lies there, as a call where it begins, and has a length where all of it is", () => {
  const rows = sums(12, 60, lane);
  assert.deepEqual([rows[0].calls, rows[0].total, rows[0].self, rows[0].p50], [0, 48, 10, null]);
  assert.deepEqual([rows[1].calls, rows[1].total, rows[1].self, rows[1].p50], [1, 38, 28, null]);
  assert.deepEqual([rows[2].calls, rows[2].total, rows[2].maximum], [1, 10, 10]);
  assert.equal(rows[4], undefined);
});

test("threads add up, and a call within one of the same function counts once in the total", () => {
  const rows = sums(0, 100, { slices: [0, 90, 1, 0, 10, 50, 1, 1], dense: [] }, { slices: [0, 10, 1, 0], dense: [] });
  assert.deepEqual([rows[1].calls, rows[1].total, rows[1].self], [3, 100, 100]);
});

/// running to 20, a lock to 60 with a moment without a CPU at its end, running to 100; then half of the time waiting for a descriptor.
const states = { spans: [0, 20, 0, -1, 20, 35, 2, -1, 55, 5, 1, -1, 60, 40, 0, -1], bands: [100, 40, 0, 0.5, 100, 40, 4, 0.5], waits: [] };
const ofStates = row => ["self", "total"].map(of => ["Running", "Waiting", "Runnable"].map(state => row[of + state]));

test("a call has what its thread did in it, but for the calls that it makes in its self time", () => {
  const rows = sums(0, 100, { ...lane, states });
  assert.deepEqual(ofStates(rows[0]), [[40, 10, 0], [60, 35, 5]]);
  assert.deepEqual(ofStates(rows[1]), [[15, 20, 5], [20, 25, 5]]);
  assert.deepEqual(ofStates(rows[2]), [[5, 5, 0], [5, 5, 0]]);
  for (const row of Object.values(rows)) for (const [n, of] of ["self", "total"].entries()) assert.equal(ofStates(row)[n].reduce((sum, part) => sum + part, 0), row[of]);
});

test("where states are shares, what follows from them is an estimate", () => {
  const [part, all] = [100, 140].map(to => drawnSums([{ ...lane, states }], { from: 0, to }, isOwnCode));
  assert.deepEqual([part.isEstimate, all.isEstimate], [false, true]);
  assert.deepEqual(ofStates(all.rows.find(row => row.fn === 4))[0], [20, 20, 0]);
});

test("what bands fill is said, of several levels the fullest", () => {
  const bands = { slices: [], dense: [0, 100, 1, 0.5, 0, 50, 2, 0.8, 100, 100, 1, 1] };
  assert.equal(drawnSums([bands], { from: 0, to: 100 }, isOwnCode).undrawn, 65);
  assert.equal(drawnSums([bands], { from: 80, to: 110 }, isOwnCode).undrawn, 20);
});

test("a percentile is by nearest rank", () => {
  assert.deepEqual([percentile([], 0.5), percentile([7], 0.99), percentile([1, 2, 3, 4], 0.5), percentile([1, 2, 3, 4], 0.99)], [null, 7, 2, 4]);
});

test("sums that were asked for have the page's numbers of functions", () => {
  const rows = answeredSums(strict(answer.sums), ([name]) => ({ small: 12, parse: 1 })[name]);
  assert.deepEqual(rows.map(row => [row.fn, row.calls, row.total, row.self, row.p50]), [[12, 3, 3, 3, 1], [1, 1, 20, 20, 20]]);
});

test("a row has what its longest call was called with, if that is drawn and known", () => {
  const values = new Map([[1, "(\"a\") = 3"], [3, "(\"b\") = 4"]]), rows = fn => [{ fn, maximum: { 0: 100, 1: 30, 2: 10 }[fn] }];
  const passed = (fn, from, to, said = values, change = {}) => withArguments([{ ...rows(fn)[0], ...change }], [{ slices: lane.slices, values: said }], { from, to })[0].passed;
  assert.deepEqual([0, 1, 2].map(fn => passed(fn, 0, 140)), ["", "(\"a\") = 3", ""]);
  assert.equal(passed(1, 0, 140, values, { maximum: 31 }), "(\"a\") = 3", "a length may be rounded otherwise");
  assert.equal(passed(1, 0, 140, values, { maximum: 45 }), "", "the longest is not drawn");
  assert.equal(passed(1, 0, 140, values, { maximum: null }), "");
  assert.equal(passed(1, 45, 140, values, { maximum: 20 }), "(\"b\") = 4", "in a part of the time the longest there");
  assert.equal(passed(1, 0, 140, new Map()), "");
});
