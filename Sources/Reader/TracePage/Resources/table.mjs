// The rows of the table of functions.
import { SCHEMA } from "./schema.mjs";

/// Objects, with what follows from the figures of each: average, share of all self time, change.
export function tableRows(rows, functions, isComparison) {
  const names = isComparison ? SCHEMA.comparedRow : SCHEMA.row;
  const result = rows.map(values => {
    const row = {};
    names.forEach((key, index) => { row[key] = values[index]; });
    const [name, module] = functions[row.fn];
    return { ...row, name, module, average: row.calls ? row.total / row.calls : 0, change: row.self - (row.before || 0) };
  });
  const whole = result.reduce((sum, row) => sum + Math.max(row.self, 0), 0);
  for (const row of result) row.share = whole > 0 ? Math.max(row.self, 0) / whole : 0;
  return result;
}

/// Returns the columns of what a function's threads did in a time of it, `self` or `total`: key, title, how a figure is spelt, and what it
/// means. None where the kernel has reported nothing of any row.
export function stateColumns(rows, of, title, spelt) {
  if (!rows.some(row => typeof row[of + "Running"] === "number")) return [];
  return [
    [of + "Running", title + " running", spelt, "on a CPU, or the kernel has reported nothing"],
    [of + "Waiting", title + " waiting", spelt, "off-CPU until something happened"],
    [of + "Runnable", title + " runnable", spelt, "it could have run: others had the CPUs"],
  ];
}

/// The column of what the longest calls were called with; none where no row has it.
export function argumentColumns(rows, spelt) {
  return rows.some(row => row.passed) ? [["passed", "Longest call", spelt, "arguments and result of the longest call"]] : [];
}

/// A percentile as it is shown: an estimate has a mark.
export const percentileText = (row, key, spelt) => row[key] === null ? "" : (row[key + "Error"] > 0 ? "~" : "") + spelt(row[key]);

/// Sorts rows by one of their values, a change by its size; equal ones by name.
export function sorted(rows, key, isDown) {
  const sign = isDown ? -1 : 1, value = key === "change" ? row => Math.abs(row.change) : row => row[key];
  return rows.slice().sort((a, b) => {
    const x = value(a), y = value(b);
    return (x < y ? -1 : x > y ? 1 : 0) * sign || (a.name < b.name ? -1 : 1);
  });
}
