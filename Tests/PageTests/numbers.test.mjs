import assert from "node:assert/strict";
import test from "node:test";
import { change, many, moment, plural, share, time } from "../../Sources/Reader/TracePage/Resources/numbers.mjs";

test("a time has three or four digits and a unit that fits", () => {
  const texts = {
    0: "0 ns", 7.4: "7 ns", 999: "999 ns", 1000: "1.00 µs", 12345: "12.3 µs", 123456: "123.5 µs", 1e6: "1.00 ms", 99.94e6: "99.9 ms",
    100e6: "100.0 ms", 1e9: "1.000 s", 83.456e9: "83.46 s",
  };
  for (const [ns, text] of Object.entries(texts)) assert.equal(time(Number(ns)), text);
});

test("less than nothing has a minus sign, and a change a sign either way", () => {
  assert.equal(time(-1500), "−1.50 µs");
  assert.deepEqual([-2e6, 0, 2e6].map(change), ["−2.00 ms", "0 ns", "+2.00 ms"]);
});

test("a share has three digits or fewer, and none of nothing", () => {
  assert.deepEqual([[1, 3], [1, 1], [99, 1000], [1, 10000], [5, 0]].map(([part, whole]) => share(part, whole)), ["33.3 %", "100.0 %", "9.90 %", "0.01 %", ""]);
});

test("one is not plural, and thousands are grouped", () => {
  assert.deepEqual([0, 1, 2, 1234567].map(n => plural(n, "call")), ["0 calls", "1 call", "2 calls", "1,234,567 calls"]);
  assert.equal(many(1000), "1,000");
});

test("a moment has digits enough to be distinguished from its neighbours", () => {
  assert.equal(moment(0, 100), "0 ns");
  assert.equal(moment(8990000, 2000), "8.990 ms");
  assert.equal(moment(8992000, 2000), "8.992 ms");
  assert.equal(moment(5e6, 1e6), "5 ms");
  assert.equal(moment(1.25e9, 5e7), "1.25 s");
  assert.equal(moment(12345678, 0.5), "12.3456780 ms");
});
