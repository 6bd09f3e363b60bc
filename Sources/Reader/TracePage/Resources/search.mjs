// Search by text or regular expression, in names of functions and modules.
import { SCHEMA } from "./schema.mjs";

export const escaped = text => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/// Returns the pattern of a search: text that is no regular expression is taken as it stands; null for nothing.
export function expression(text) {
  if (!text) return null;
  try { return new RegExp(text, "i"); } catch { return new RegExp(escaped(text), "i"); }
}

export const matches = (pattern, name, module) => pattern.test(name) || pattern.test(module);

/// Finds the nodes of the tree that match, how many calls they are (own code has none), and their share of the time as two sums.
/// - table: rows of all functions
export function found(pattern, tree, table) {
  const known = tree.functions.map(([name, module]) => matches(pattern, name, module));
  const nodes = new Uint8Array(tree.count);
  let part = 0, whole = 0, calls = 0;
  for (let i = 0; i < tree.count; i++) {
    nodes[i] = tree.isFunction(i) && known[tree.fn[i]] ? 1 : 0;
    if (tree.parent[i] < 0) whole += tree.total[i];
  }
  // The table has all calls; paths that were summed up have no names in the tree.
  const fn = SCHEMA.row.indexOf("fn"), count = SCHEMA.row.indexOf("calls");
  for (const row of table) if (known[row[fn]]) calls += row[count];
  // Time below a match counts once, however many matches lie inside each other.
  for (let i = 0; i < tree.count;) {
    if (nodes[i]) { part += tree.total[i]; i = tree.end[i]; } else i++;
  }
  return { nodes, isFound: calls > 0 || part > 0, calls, part, whole };
}
