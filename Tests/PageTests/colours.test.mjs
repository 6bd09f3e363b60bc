import assert from "node:assert/strict";
import test from "node:test";
import { inkOn, stateColours } from "../../Sources/Reader/TracePage/Resources/colours.mjs";
import { SCHEMA } from "../../Sources/Reader/TracePage/Resources/schema.mjs";

// Matrices from linear RGB to what most people see, and people without one kind of cones (Machado, Oliveira and Fernandes 2009, severity 1).
const seers = {
  most: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

const linear = colour => [1, 3, 5].map(offset => parseInt(colour.slice(offset, offset + 2), 16) / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
/// CIE L*a*b*, in which distances are about as large as they look.
function lab(rgb) {
  const rows = [[0.4124, 0.3576, 0.1805, 0.9505], [0.2126, 0.7152, 0.0722, 1], [0.0193, 0.1192, 0.9505, 1.089]];
  const [x, y, z] = rows.map(([r, g, b, white]) => (r * rgb[0] + g * rgb[1] + b * rgb[2]) / white).map(t => t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
const seen = (colour, rows) => lab(rows.map(row => Math.min(Math.max(row.reduce((sum, part, n) => sum + part * linear(colour)[n], 0), 0), 1)));
const distance = (a, b, rows) => Math.hypot(...seen(a, rows).map((value, n) => value - seen(b, rows)[n]));

test("states are distinguished by everybody, on both papers", () => {
  for (const isDark of [false, true]) {
    const colours = stateColours(isDark), paper = isDark ? "#11151d" : "#ffffff";
    assert.equal(colours.length, SCHEMA.stateNames.length);
    for (const [name, rows] of Object.entries(seers)) {
      colours.forEach((colour, state) => {
        for (const other of colours.slice(0, state)) assert(distance(colour, other, rows) > 15, `${colour} and ${other}: ${name}`);
        if (SCHEMA.stateNames[state] !== "unknown") assert(distance(colour, paper, rows) > 15, `${colour} on paper: ${name}`);
      });
    }
  }
});

test("text on a colour can be read", () => {
  assert.deepEqual([inkOn("#ecde4b"), inkOn("#441f6e")], ["#10151f", "#ffffff"]);
});
