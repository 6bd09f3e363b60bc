import assert from "node:assert/strict";
import test from "node:test";
import { arranged, groups, isMeant, threadName } from "../../Sources/Reader/TracePage/Resources/threads.mjs";

const threads = ["main", "worker-1", "worker-2", "io 7", "worker-3", "8"].map((name, index) => ({ name, process: "", tid: 100 + index }));
const titles = tracks => tracks.map(track => `${track.group.name}${track.isGroup ? " × " : " "}${track.members.join(",")}`);

test("threads whose names differ in a number at the end are a group", () => {
  assert.deepEqual(groups(threads).map(group => [group.name, group.members]), [["main", [0]], ["worker", [1, 2, 4]], ["io", [3]], ["8", [5]]]);
});

test("a main thread is by itself, whoever has its name", () => {
  assert.deepEqual(groups([{ name: "a", process: "", isMain: true }, { name: "a", process: "", isMain: false }]).map(group => group.members), [[0], [1]]);
});

test("equal names of two processes are two groups", () => {
  assert.deepEqual(groups([{ name: "a", process: "x 1" }, { name: "a", process: "y 2" }]).map(group => group.members), [[0], [1]]);
});

test("a closed group is one track, an open one a track for each, what is hidden none", () => {
  assert.deepEqual(titles(arranged(threads, { hidden: new Set(), open: new Set() })), ["main 0", "worker × 1,2,4", "io 3", "8 5"]);
  assert.deepEqual(titles(arranged(threads, { hidden: new Set([2, 3]), open: new Set([groups(threads)[1].key]) })), ["main 0", "worker 1", "worker 4", "8 5"]);
  assert.deepEqual(titles(arranged(threads, { hidden: new Set([1, 2]), open: new Set() })), ["main 0", "worker 4", "io 3", "8 5"]);
});

test("a search means names, numbers and processes", () => {
  const thread = { name: "Pool", process: "cc1 77", tid: 123 };
  assert.equal(threadName(thread), "cc1 77: Pool 123");
  assert.equal(threadName({ ...thread, isMain: true }), "cc1 77");
  assert.equal(threadName({ name: "", process: "", tid: 5 }), "thread 5");
  assert(isMeant(thread, " pool ") && isMeant(thread, "123") && isMeant(thread, "cc1") && isMeant(thread, "") && !isMeant(thread, "io"));
});
