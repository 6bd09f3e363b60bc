import assert from "node:assert/strict";
import test from "node:test";
import { SCHEMA } from "../../Sources/Reader/TracePage/Resources/schema.mjs";
import { columnText, spanLines, stateAt, stateLane, stateSums, sumText } from "../../Sources/Reader/TracePage/Resources/states.mjs";
import { states } from "./page.mjs";

const [running, runnable, lock, condition] = ["running", "runnable", "lock", "condition"].map(name => SCHEMA.stateNames.indexOf(name));

test("states of a part of the time add up, bands by their shares", () => {
  const all = stateSums(states, { from: 0, to: 1000 });
  assert.deepEqual([all[running], all[runnable], all[lock], all[condition]], [550, 50, 300, 50]);
  assert.equal(stateSums(states, { from: 350, to: 425 })[lock], 50);
  assert.equal(sumText([all, all]), "running 57.9 %, lock 31.6 %, runnable 5.26 %, condition 5.26 %");
});

test("a span that is wide enough is drawn by itself, others are shares of their pixels", () => {
  const wide = stateLane(states, { from: 0, to: 1000 }, 100);
  assert.deepEqual(wide.spans.map(span => [span.state, span.x, span.width]), [[running, 0, 10], [lock, 10, 30], [runnable, 40, 5], [running, 45, 15]]);
  assert.equal(stateAt(wide, 12.5).state, lock);
  assert.deepEqual([stateAt(wide, 70)[running], stateAt(wide, 70)[condition]], [0.5, 0.25]);
  assert.equal(stateAt(wide, 100), undefined);
  const narrow = stateLane(states, { from: 0, to: 1000 }, 10);
  assert.deepEqual(narrow.spans.map(span => span.state), [lock]);
  assert.deepEqual([narrow.columns[4][runnable], narrow.columns[4][running]], [0.5, 0.5]);
  assert.equal(columnText(narrow.columns[4]), "short states: running 50.0 %, runnable 50.0 %");
});

test("a span that reaches out of view is cut there", () => {
  const { spans } = stateLane(states, { from: 200, to: 300 }, 100);
  assert.deepEqual(spans.map(span => [span.state, span.x, span.width, span.start]), [[lock, 0, 100, 100]]);
});

test("a wait whose reason is not shown says so, what runs has none", () => {
  const span = { start: 400, length: 50, state: runnable, wait: -1 };
  assert.equal(spanLines(span, [], false).length, 2);
  assert.match(spanLines(span, [], true)[1], /zoom in/);
  assert.deepEqual(spanLines({ ...span, state: running }, [], false), ["running 50 ns at 400.0 ns"]);
});
