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

/// Sorts rows by one of their values, a change by its size; equal ones by name.
export function sorted(rows, key, isDown) {
  const sign = isDown ? -1 : 1, value = key === "change" ? row => Math.abs(row.change) : row => row[key];
  return rows.slice().sort((a, b) => {
    const x = value(a), y = value(b);
    return (x < y ? -1 : x > y ? 1 : 0) * sign || (a.name < b.name ? -1 : 1);
  });
}
