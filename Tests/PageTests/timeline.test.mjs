import assert from "node:assert/strict";
import test from "node:test";
import { clamped, eachBand, eachSlice, isTracers, missing, moved, pixels, stageText, textsOf, ticks, widened, zoomed } from "../../Sources/Reader/TracePage/Resources/timeline.mjs";

test("a range stays within the whole, keeps its length, and is not narrower than can be distinguished", () => {
  assert.deepEqual(clamped(200, 300, 1000), { from: 200, to: 300 });
  assert.deepEqual(clamped(-50, 50, 1000), { from: 0, to: 100 });
  assert.deepEqual(clamped(950, 1050, 1000), { from: 900, to: 1000 });
  assert.deepEqual(clamped(-500, 5000, 1000), { from: 0, to: 1000 });
  assert.deepEqual(clamped(500, 500, 1000), { from: 490, to: 510 });
  assert.deepEqual(clamped(5e9, 5e9, 1e10), { from: 5e9 - 500, to: 5e9 + 500 });
});

test("zooming keeps the moment under the pointer, and back is where it was", () => {
  const range = { from: 100, to: 300 }, closer = zoomed(range, 150, 0.5);
  assert.deepEqual(closer, { from: 125, to: 225 });
  assert.deepEqual(zoomed(closer, 150, 2), range);
});

test("moving keeps the length, widening the middle", () => {
  assert.deepEqual(moved({ from: 100, to: 300 }, -0.25), { from: 50, to: 250 });
  assert.deepEqual(widened({ from: 100, to: 300 }, 0.25), { from: 50, to: 350 });
  assert.deepEqual(widened({ from: 100, to: 300 }, -0.25), { from: 150, to: 250 });
});

test("a stage is as long as the program was at it", () => {
  const text = (length, tracer) => stageText({ name: "main", at: 0, length, tracer }, String);
  assert.equal(text(500, 0), "main\n500");
  assert.equal(text(500, 100), "main\n400\nbesides 100 of the tracer's own");
  assert.equal(text(500, 500), "main\n500");
  assert.ok(isTracers({ length: 5, tracer: 5 }) && !isTracers({ length: 5, tracer: 4 }));
});

test("ticks are round, within the range, and about a hundred pixels apart", () => {
  assert.deepEqual(ticks({ from: 0, to: 1000 }, 1100), [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
  assert.deepEqual(ticks({ from: 130, to: 1010 }, 550), [200, 400, 600, 800, 1000]);
  for (const span of [37, 999, 1.7e6, 8.2e9]) {
    const moments = ticks({ from: span / 3, to: span / 3 + span }, 1280), step = moments[1] - moments[0];
    assert(moments[0] >= span / 3 && moments[moments.length - 1] <= span / 3 + span);
    assert(step / span * 1280 >= 109 && step / span * 1280 <= 280, `${step} of ${span}`);
    const digit = step / 10 ** Math.floor(Math.log10(step) + 1e-9);
    assert([1, 2, 5].some(d => Math.abs(digit - d) < 1e-6), `${step}`);
  }
});

test("what reaches out of view ends a little outside, and what lies outside is not drawn", () => {
  const range = { from: 1000, to: 2000 };
  assert.deepEqual(pixels(1100, 200, range, 100), { x: 10, end: 30 });
  assert.deepEqual(pixels(0, 9000, range, 100), { x: -2, end: 102 });
  assert.equal(pixels(0, 900, range, 100), null);
  assert.equal(pixels(2100, 50, range, 100), null);
});

/// start, length, function, level
const slices = [0, 1000, 7, 0, 10, 100, 8, 1, 500, 1, 9, 1, 501, 1, 10, 1, 501, 1, 11, 2, 502, 300, 12, 1, 990, 10, 13, 1];
function drawn(range, width) {
  const calls = [];
  eachSlice(slices, range, width, (slice, x, w) => calls.push([slice.fn, slice.level, slice.start, slice.length, x, w]));
  return calls;
}

test("calls are drawn where they are", () => {
  assert.deepEqual(drawn({ from: 0, to: 1000 }, 1000).slice(0, 2), [[7, 0, 0, 1000, 0, 1000], [8, 1, 10, 100, 10, 100]]);
});

test("a call has the text that was said of it", () => {
  const texts = textsOf([1, "(a)", 5, "(b) = 2"]), drawnTexts = [];
  eachSlice(slices, { from: 0, to: 1000 }, 1000, slice => drawnTexts.push([slice.fn, texts.get(slice.index)]));
  assert.deepEqual(drawnTexts.filter(([, text]) => text), [[8, "(a)"], [12, "(b) = 2"]]);
});

test("short calls of one level are drawn once a pixel, long ones always", () => {
  assert.deepEqual(drawn({ from: 0, to: 1000 }, 100).map(([fn]) => fn), [7, 8, 9, 11, 12, 13]);
  assert.deepEqual(drawn({ from: 495, to: 515 }, 100).map(([fn]) => fn), [7, 9, 10, 11, 12]);
});

test("calls outside the range are omitted, and the one around it is cut to the view", () => {
  assert.deepEqual(drawn({ from: 200, to: 300 }, 100), [[7, 0, 0, 1000, -2, 104]]);
});

test("bands of short calls are drawn where they are", () => {
  const bands = [];
  eachBand([0, 100, 2, 0.5, 400, 100, 3, 1], { from: 0, to: 200 }, 100, (band, x, w) => bands.push([band, x, w]));
  assert.deepEqual(bands, [[{ level: 2, share: 0.5 }, 0, 50]]);
});

test("what is missing in view is asked for with as much on both sides, once", () => {
  const lanes = [{ dense: [0, 500, 1, 0.5] }], range = { from: 100, to: 110 };
  assert.deepEqual(missing(range, lanes, null, 1000), { from: 90, to: 120 });
  assert.equal(missing(range, lanes, { from: 90, to: 120 }, 1000), null);
  assert.deepEqual(missing({ from: 115, to: 125 }, lanes, { from: 90, to: 120 }, 1000), { from: 105, to: 135 });
  // For a wide range only the longest calls were sent: a part of it has more.
  assert.deepEqual(missing({ from: 100, to: 101 }, lanes, { from: 90, to: 120 }, 1000), { from: 99, to: 102 });
  assert.equal(missing({ from: 0, to: 400 }, lanes, null, 1000), null);
  assert.equal(missing({ from: 600, to: 610 }, lanes, null, 1000), null);
});
