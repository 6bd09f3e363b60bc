import assert from "node:assert/strict";
import test from "node:test";
import { CallTree, nodeAt } from "../../Sources/Reader/TracePage/Resources/tree.mjs";
import { comparedTree, functions, strict, tree as columns } from "./page.mjs";

const tree = new CallTree(strict(columns), functions);
const compared = new CallTree(strict(comparedTree), functions);

test("who belongs to whom follows from the depths", () => {
  assert.deepEqual([...tree.parent], [-1, 0, 1, 2, 2, 1, 5, -1, 7]);
  assert.deepEqual([...tree.end], [7, 7, 5, 4, 5, 7, 7, 9, 9]);
  assert.deepEqual(tree.tops, [0, 7]);
  assert.deepEqual(tree.callers(6), [0, 1, 5]);
  assert.deepEqual(tree.callees(1), [2, 5]);
  assert.deepEqual(tree.callees(8), []);
});

test("a tree of nothing is one", () => {
  const empty = new CallTree(strict({ depth: [], fn: [], calls: [], total: [], self: [], flags: [], names: [] }), []);
  assert.deepEqual([empty.count, empty.tops.length, empty.layout([], [], 100).frames.length], [0, 0, 0]);
});

test("threads and what was summed up have names of their own, and no module", () => {
  assert.deepEqual([0, 2, 4, 7].map(i => [tree.name(i), tree.module(i), tree.isFunction(i)]),
    [["main 1", "", false], ["parse", "app", true], ["3 short paths", "", false], ["worker 2", "", false]]);
});

test("threads share the width by their time, and callees lie within their caller", () => {
  const { frames, levels, deepest } = tree.layout(tree.tops, [], 1600);
  const boxes = Object.fromEntries(frames.map(f => [f.node, [f.x, f.width, f.level]]));
  assert.deepEqual(boxes, { 0: [0, 1000, 0], 1: [0, 1000, 1], 2: [0, 600, 2], 3: [0, 200, 3], 4: [200, 100, 3], 5: [600, 300, 2], 6: [600, 300, 3],
    7: [1000, 600, 0], 8: [1000, 600, 1] });
  assert.equal(deepest, 3);
  assert.deepEqual(levels.map(level => level.map(f => f.node)), [[0, 7], [1, 8], [2, 5], [3, 4, 6]]);
});

test("callers of what is zoomed in to stay at full width, below it", () => {
  const { frames, deepest } = tree.layout([5], tree.callers(5), 500);
  assert.deepEqual(frames.map(f => [f.node, f.x, f.width, f.level]), [[0, 0, 500, 0], [1, 0, 500, 1], [5, 0, 500, 2], [6, 0, 500, 3]]);
  assert.equal(deepest, 3);
});

test("what is thinner than can be seen is omitted with all above it", () => {
  const { frames } = tree.layout(tree.tops, [], 2);
  assert.deepEqual(frames.map(f => f.node).sort(), [0, 1, 2, 7, 8]);
});

test("a point belongs to the frame that it lies in", () => {
  const { levels } = tree.layout(tree.tops, [], 1600);
  assert.deepEqual([0, 199, 200, 299, 300, 600, 899, 901, 1599].map(x => nodeAt(levels[3], x)), [3, 3, 4, 4, -1, 6, 6, -1, -1]);
  assert.equal(nodeAt(undefined, 5), -1);
  assert.equal(nodeAt([{ x: 10, width: 0.5, node: 3 }], 11), 3, "a thin frame can be hit");
});

test("arrow keys lead to caller, longest callee and neighbours, and nowhere from an end", () => {
  const to = (from, key) => tree.neighbour(from, "Arrow" + key);
  assert.deepEqual([to(2, "Up"), to(0, "Up"), to(1, "Down"), to(2, "Down"), to(8, "Down")], [1, 0, 2, 3, 8]);
  assert.deepEqual([to(2, "Right"), to(5, "Right"), to(5, "Left"), to(2, "Left"), to(0, "Right")], [5, 5, 2, 2, 0]);
  assert.equal(compared.neighbour(1, "ArrowDown"), 4, "the widest is the longest");
});

test("facts show total, self, calls, and how calls ended", () => {
  assert.equal(tree.facts(0), "total 100 ns (100.0 %)");
  assert.equal(tree.facts(1), "total 100 ns (100.0 %), self 10 ns, 1 call, still running at the end");
  assert.equal(tree.facts(2), "total 60 ns (60.0 %), self 30 ns, 4 calls, 15 ns each");
  assert.match(tree.facts(5), /, left without returning$/);
  assert.match(tree.facts(6), /, cut by a gap in the trace$/);
});

test("in a comparison facts show both sides, and what is noise", () => {
  assert.equal(compared.facts(0), "total 220 ns → 170 ns (−50 ns), calls 9 → 9");
  assert.equal(compared.facts(1), "total 220 ns → 170 ns (−50 ns), self 60 ns → 100 ns, calls 1 → 1");
  assert.equal(compared.facts(3), "total 51 ns → 50 ns (−1 ns), within the noise, self 51 ns → 50 ns, calls 4 → 4");
});

test("in a comparison what is gone keeps its width, and the threads' change is no measure of the strongest colour", () => {
  const { frames } = compared.layout(compared.tops, [], 270);
  assert.deepEqual(frames.filter(f => f.level === 2).map(f => [f.node, f.width]).sort(), [[2, 50], [3, 51], [4, 69]]);
  assert.equal(compared.largestChange, 69);
  assert.equal(tree.largestChange, 1);
});
