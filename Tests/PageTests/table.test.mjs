import assert from "node:assert/strict";
import test from "node:test";
import { difference, hues, plain, shade } from "../../Sources/Reader/TracePage/Resources/colours.mjs";
import { argumentColumns, percentileText, sorted, stateColumns, tableRows } from "../../Sources/Reader/TracePage/Resources/table.mjs";
import { functions, strict, table } from "./page.mjs";

test("rows have names, averages and shares", () => {
  const rows = tableRows(table, functions, false), malloc = strict(rows[2]);
  assert.deepEqual([malloc.name, malloc.module, malloc.calls, malloc.total, malloc.self, malloc.maximum, malloc.average],
    ["malloc", "libc.so.6", 10, 50, 50, 25, 5]);
  assert.equal(malloc.share, 50 / 150);
  assert.equal(rows.reduce((sum, row) => sum + row.share, 0), 1);
});

test("less than nothing is no share of the time", () => {
  assert.deepEqual(tableRows([[0, 1, 10, -5, 10], [1, 1, 10, 20, 10]], functions, false).map(row => row.share), [0, 1]);
});

const compared = tableRows([[0, 1, 0, 100, 0, 60, 2, 0], [1, 4, 0, 20, 0, 50, 4, 1], [2, 0, 0, 0, 0, 70, 3, 0]], functions, true);

test("rows of a comparison have both sides", () => {
  assert.deepEqual(compared.map(strict).map(row => [row.name, row.self, row.before, row.change, row.calls, row.callsBefore, row.noise]),
    [["main", 100, 60, 40, 1, 2, 0], ["parse", 20, 50, -30, 4, 4, 1], ["malloc", 0, 70, -70, 0, 3, 0]]);
});

test("a time by state has columns where the kernel has reported it", () => {
  const spelt = String, rows = tableRows(table, functions, false);
  assert.deepEqual(stateColumns(rows, "self", "Self", spelt).map(([key, title]) => [key, title]),
    [["selfRunning", "Self running"], ["selfWaiting", "Self waiting"], ["selfRunnable", "Self runnable"]]);
  assert.deepEqual(sorted(rows, "totalWaiting", true).map(row => row.totalWaiting), [30, 25, 10, 0]);
  const without = tableRows(table.map(row => row.map((value, index) => index > 8 ? null : value)), functions, false);
  assert.deepEqual(stateColumns(without, "self", "Self", spelt), []);
  assert.equal(stateColumns([rows[0], without[1]], "total", "Total", spelt).length, 3);
});

test("a percentile that is an estimate has a mark", () => {
  const [, parse] = tableRows(table, functions, false);
  assert.deepEqual([percentileText(parse, "p50", String), percentileText(parse, "p99", String)], ["~15", "20"]);
  assert.equal(percentileText({ p50: null, p50Error: null }, "p50", String), "");
});

test("rows are sorted either way, changes by their size, equal ones by name", () => {
  const names = (list, key, isDown) => sorted(list, key, isDown).map(row => row.name);
  const rows = tableRows(table, functions, false);
  assert.deepEqual(names(rows, "calls", true), ["malloc", "parse", "draw", "main"]);
  assert.deepEqual(names(rows, "calls", false), ["main", "draw", "parse", "malloc"]);
  assert.deepEqual(names(rows, "name", false), ["draw", "main", "malloc", "parse"]);
  assert.deepEqual(names(compared, "change", true), ["malloc", "main", "parse"]);
  assert.deepEqual(names([{ name: "b", calls: 1 }, { name: "a", calls: 1 }], "calls", true), ["a", "b"]);
});

test("a module has one hue, the program's is warm", () => {
  const hue = hues("app");
  assert.equal(hue("app"), 18);
  assert.equal(hue("libc.so.6"), hue("libc.so.6"));
  for (const module of ["libc.so.6", "libui.so", ""]) assert(hue(module) >= 60 && hue(module) < 320);
});

test("functions of a module are distinguished by lightness, in both themes", () => {
  assert.equal(shade(18, 0, false), "hsl(18 68% 76%)");
  assert.equal(shade(18, 7, true), "hsl(18 42% 59%)");
  assert.notEqual(plain(true), plain(false));
});

test("slower is red, faster blue, the largest change strongest, and none has no colour", () => {
  assert.equal(difference(100, 100, false), "hsl(4 80% 60%)");
  assert.equal(difference(-25, 100, false), "hsl(216 55% 78%)");
  assert.equal(difference(100, 100, true), "hsl(4 80% 62%)");
  assert(!difference(0, 100, false).startsWith("hsl"));
});

test("what the longest calls were called with has a column if some are known", () => {
  assert.deepEqual(argumentColumns([{ passed: "" }], String), []);
  assert.deepEqual(argumentColumns([{ passed: "" }, { passed: "(1)" }], String).map(([key]) => key), ["passed"]);
});
