import assert from "node:assert/strict";
import test from "node:test";
import { CallTree } from "../../Sources/Reader/TracePage/Resources/tree.mjs";
import { around, mergedThreads } from "../../Sources/Reader/TracePage/Resources/merge.mjs";
import { functions, strict, tree as columns } from "./page.mjs";

const tree = new CallTree(strict(columns), functions);
const lines = of => Array.from({ length: of.count }, (_, i) => `${of.depth[i]} ${of.name(i)} ${of.calls[i]} ${of.total[i]} ${of.self[i]}`);

test("threads as one have each path once, the largest first, and all of their time", () => {
  assert.deepEqual(lines(mergedThreads(tree, tree.tops, "all")), [
    "0 all 2 160 0", "1 main 1 100 10", "2 parse 4 60 30", "3 malloc 8 20 20", "3 3 short paths 5 10 0", "2 draw 2 30 0", "3 malloc 2 30 30", "1 draw 1 60 60",
  ]);
  assert.deepEqual(lines(mergedThreads(tree, [7], "pool")), ["0 pool 1 60 0", "1 draw 1 60 60"]);
});

test("callers are a tree upside down, with the calls and the time that came from each", () => {
  const { callers, calls } = around(tree, 2);
  assert.equal(calls, 10);
  assert.deepEqual(lines(callers), [
    "0 malloc 10 50 50", "1 draw 2 30 30", "2 main 2 30 30", "3 main 1 2 30 30", "1 parse 8 20 20", "2 main 8 20 20", "3 main 1 8 20 20",
  ]);
});

test("callees are what is below the function, wherever it is called", () => {
  assert.deepEqual(lines(around(tree, 3).callees), ["0 draw 3 90 60", "1 malloc 2 30 30"]);
  assert.deepEqual(lines(around(tree, 1).callees), ["0 parse 4 60 30", "1 malloc 8 20 20", "1 3 short paths 5 10 0"]);
});

test("a recursive call's time is in its outermost's, above and below", () => {
  const of = { depth: [0, 1, 2, 3, 2], fn: [-1, 0, 1, 0, 0], calls: [1, 1, 2, 3, 4], total: [100, 100, 60, 50, 20], self: [0, 20, 10, 50, 20], flags: [0, 0, 0, 0, 0], names: ["t"] };
  const { callers, callees, calls } = around(new CallTree(of, functions), 0);
  assert.equal(calls, 8);
  assert.deepEqual(lines(callees), ["0 main 1 100 20", "1 parse 2 60 10", "2 main 3 50 50", "1 main 4 20 20"]);
  assert.deepEqual([callers.calls[0], callers.total[0], callers.self[0]], [8, 100, 90]);
});
