// Samples: of a part of the time and of some threads a tree, which is drawn as that of calls is.
import { SCHEMA } from "./schema.mjs";
import { many, plural, share } from "./numbers.mjs";
import { position } from "./timeline.mjs";
import { CallTree } from "./tree.mjs";

const MOMENT = position(SCHEMA.moment);

/// Totals are numbers of samples.
export class SampleTree extends CallTree {
  amount(n) { return plural(n, "sample"); }
  facts(i) {
    let top = i;
    while (this.parent[top] >= 0) top = this.parent[top];
    const own = this.isFunction(i) ? `, self ${many(this.self[i])} (${share(this.self[i], this.total[top])})` : "";
    return `total ${plural(this.total[i], "sample")} (${share(this.total[i], this.total[top])})${own}`;
  }
}

/// - range: null for all of the time; - isShown: whether a lane is, which may be -1 for a thread that has none
export function sampledTree(samples, range, isShown, functions) {
  const { depth, fn, lanes, moments, names } = samples, count = depth.length;
  const own = new Float64Array(count), total = new Float64Array(count), root = new Int32Array(count);
  for (let i = 0, tops = 0, top = 0; i < count; i++) {
    if (depth[i] === 0) top = tops++;
    root[i] = top;
  }
  for (let i = 0; i < moments.length; i += SCHEMA.moment.length) {
    const at = moments[i + MOMENT.at], node = moments[i + MOMENT.node];
    if (range && (at < range.from || at > range.to) || !isShown(lanes[root[node]])) continue;
    own[node] += moments[i + MOMENT.count];
  }
  // In preorder what is below a node stands after it.
  const sums = [];
  for (let i = count - 1; i >= 0; i--) {
    total[i] = own[i] + (sums[depth[i] + 1] || 0);
    sums[depth[i] + 1] = 0;
    sums[depth[i]] = (sums[depth[i]] || 0) + total[i];
  }
  const columns = { depth: [], fn: [], calls: [], total: [], self: [], flags: [], names };
  for (let i = 0; i < count; i++) {
    if (total[i] === 0) continue;
    columns.depth.push(depth[i]);
    columns.fn.push(fn[i]);
    columns.total.push(total[i]);
    columns.self.push(own[i]);
    columns.calls.push(0);
    columns.flags.push(0);
  }
  return new SampleTree(columns, functions);
}
