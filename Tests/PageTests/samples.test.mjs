import assert from "node:assert/strict";
import test from "node:test";
import { mergedThreads } from "../../Sources/Reader/TracePage/Resources/merge.mjs";
import { sampledTree } from "../../Sources/Reader/TracePage/Resources/samples.mjs";
import { data, functions } from "./page.mjs";

const all = () => true, of = (range, isShown = all) => sampledTree(data.samples, range, isShown, functions);

test("of all the time every sample counts in its node and in those above", () => {
  const tree = of(null);
  assert.deepEqual([tree.total, tree.self], [[7, 7, 5, 1, 1], [0, 2, 5, 0, 1]]);
  assert.equal(tree.facts(2), "total 5 samples (71.4 %), self 5 (71.4 %)");
  assert.equal(tree.amount(tree.total[3]), "1 sample");
});

test("of a part of the time, or of some threads, those that are there, and no path without any", () => {
  assert.deepEqual(of({ from: 500, to: 600 }).total, [2, 2, 1, 1]);
  assert.deepEqual(of({ from: 0, to: 20 }).depth, [0, 1, 2]);
  assert.deepEqual(of(null, lane => lane === 1).total, [1, 1]);
  assert.equal(of({ from: 1, to: 2 }).count, 0);
});

test("threads as one count samples, too", () => {
  const tree = of(null), one = mergedThreads(tree, tree.tops, "all threads");
  assert.equal(one.facts(0), "total 8 samples (100.0 %)");
});
