import assert from "node:assert/strict";
import test from "node:test";
import { escaped, expression, found, matches } from "../../Sources/Reader/TracePage/Resources/search.mjs";
import { CallTree } from "../../Sources/Reader/TracePage/Resources/tree.mjs";
import { functions, strict, table, tree as columns } from "./page.mjs";

const tree = new CallTree(strict(columns), functions);

test("a text is a regular expression where it is one, whatever its case, and itself where not", () => {
  assert.equal(expression(""), null);
  assert(expression("^MAL+oc$").test("malloc"));
  assert(expression("operator(").test("operator()"));
  assert(!expression("operator(").test("operator"));
  assert(expression("^" + escaped("a.b(c)[*]+?^${}|\\") + "$").test("a.b(c)[*]+?^${}|\\"));
  assert(!expression(escaped("a.b")).test("axb"));
});

test("names and modules match", () => {
  assert(matches(/pars/i, "parse", "app") && matches(/libc/i, "malloc", "libc.so.6") && !matches(/libc/i, "parse", "app"));
});

test("calls are those of the table, since short paths have no names in the tree", () => {
  const { nodes, calls, part, whole } = found(/^malloc$/, tree, table);
  assert.deepEqual([...nodes], [0, 0, 0, 1, 0, 0, 1, 0, 0]);
  assert.deepEqual([calls, part, whole], [10, 50, 160]);
});

test("time counts once where matches lie inside each other", () => {
  assert.deepEqual([found(/main|parse|malloc/, tree, table).part, found(/./, tree, table).part], [100, 160]);
});

test("threads and sums do not match, whatever they are called", () => {
  const { nodes, calls } = found(/worker|short paths/, tree, table);
  assert.deepEqual([[...nodes].some(n => n), calls], [false, 0]);
});
