// The merged call tree: columns of numbers, nodes in preorder with their depths.
import { SCHEMA } from "./schema.mjs";
import { change, many, plural, share, time } from "./numbers.mjs";

export class CallTree {
  /// - functions: [name, module] each
  constructor(columns, functions) {
    const isComparison = "before" in columns;
    for (const key of isComparison ? SCHEMA.comparedTree : SCHEMA.tree) this[key] = columns[key];
    this.isComparison = isComparison;
    this.functions = functions;
    this.count = this.fn.length;
    /// Each node's caller, -1 for a thread, and the node after the last of its subtree.
    this.parent = new Int32Array(this.count);
    this.end = new Uint32Array(this.count);
    const open = [];
    for (let i = 0; i < this.count; i++) {
      while (open.length > this.depth[i]) this.end[open.pop()] = i;
      this.parent[i] = open.length ? open[open.length - 1] : -1;
      open.push(i);
    }
    while (open.length) this.end[open.pop()] = this.count;
    this.tops = [];
    for (let i = 0; i < this.count; i = this.end[i]) this.tops.push(i);
    this.largestChange = 1;
    if (isComparison) for (let i = 0; i < this.count; i++) {
      if (this.parent[i] >= 0) this.largestChange = Math.max(this.largestChange, Math.abs(this.total[i] - this.before[i]));
    }
  }

  /// Threads, and what was summed up, have a name and no function.
  isFunction(i) { return this.fn[i] >= 0; }
  name(i) { return this.isFunction(i) ? this.functions[this.fn[i]][0] : this.names[-1 - this.fn[i]]; }
  module(i) { return this.isFunction(i) ? this.functions[this.fn[i]][1] : ""; }
  has(i, flag) { return (this.flags[i] & SCHEMA.flags[flag]) !== 0; }
  /// Time that a frame's width stands for: in a comparison the longer of both times of each path in it, so that what is gone is seen.
  size(i) { return this.isComparison ? this.width[i] : this.total[i]; }
  /// From the thread to the node's caller.
  callers(i) {
    const path = [];
    for (let p = this.parent[i]; p >= 0; p = this.parent[p]) path.unshift(p);
    return path;
  }

  callees(i) {
    const nodes = [];
    for (let child = i + 1; child < this.end[i]; child = this.end[child]) nodes.push(child);
    return nodes;
  }

  /// Frames in view: {x, width, level, node}, thinner ones omitted with all that is above them, since they are thinner still.
  /// - nodes: those that share the width at the bottom
  /// - above: its callers, which stay at full width
  layout(nodes, above, width) {
    const frames = above.map((node, level) => ({ x: 0, width, level, node }));
    const sum = nodes.reduce((part, i) => part + this.size(i), 0);
    const stack = [];
    let deepest = 0;
    const add = (siblings, x, scale, level) => {
      for (const node of siblings) {
        const w = scale(node);
        stack.push({ x, width: w, level, node });
        x += w;
      }
    };
    add(nodes, 0, node => sum > 0 ? width * this.size(node) / sum : 0, above.length);
    while (stack.length) {
      const frame = stack.pop(), whole = this.size(frame.node);
      if (frame.width < 0.4) continue;
      frames.push(frame);
      deepest = Math.max(deepest, frame.level);
      add(this.callees(frame.node), frame.x, node => whole > 0 ? frame.width * this.size(node) / whole : 0, frame.level + 1);
    }
    const levels = [];
    for (const frame of frames) (levels[frame.level] ||= []).push(frame);
    for (const level of levels) if (level) level.sort((a, b) => a.x - b.x);
    return { frames, levels, deepest };
  }

  /// Up and down: caller and longest callee; left and right: neighbours.
  neighbour(from, key) {
    const up = this.parent[from];
    let to = from;
    if (key === "ArrowUp") to = up >= 0 ? up : from;
    if (key === "ArrowDown" && from + 1 < this.end[from]) {
      to = this.callees(from).reduce((longest, i) => this.size(i) > this.size(longest) ? i : longest);
    }
    if (key === "ArrowRight" && up >= 0 && this.end[from] < this.end[up]) to = this.end[from];
    if (key === "ArrowLeft" && up >= 0) to = this.callees(up).filter(i => i < from).pop() ?? from;
    return to;
  }

  /// A size, for people.
  amount(ns) { return time(ns); }

  /// A line about a node.
  facts(i) {
    if (this.isComparison) {
      const own = this.isFunction(i) ? `, self ${time(this.selfBefore[i])} → ${time(this.self[i])}` : "";
      return `total ${time(this.before[i])} → ${time(this.total[i])} (${change(this.total[i] - this.before[i])})`
        + `${this.has(i, "noise") ? ", within the noise" : ""}${own}, calls ${many(this.callsBefore[i])} → ${many(this.calls[i])}`;
    }
    let top = i;
    while (this.parent[top] >= 0) top = this.parent[top];
    let text = `total ${time(this.total[i])} (${share(this.total[i], this.total[top])})`;
    if (this.isFunction(i)) {
      text += `, self ${time(this.self[i])}`;
      if (this.calls[i] > 0) text += `, ${plural(this.calls[i], "call")}`;
      if (this.calls[i] > 1) text += `, ${time(this.total[i] / this.calls[i])} each`;
    }
    if (this.has(i, "open")) text += ", still running at the end";
    if (this.has(i, "unwound")) text += ", left without returning";
    if (this.has(i, "cut")) text += ", cut by a gap in the trace";
    return text;
  }
}

/// The node whose frame is at `x` of a level, -1 for none.
export function nodeAt(level, x) {
  if (!level) return -1;
  let low = 0, high = level.length;
  while (low < high) {
    const middle = low + high >> 1;
    if (level[middle].x <= x) low = middle + 1; else high = middle;
  }
  const frame = level[low - 1];
  return frame && x < frame.x + Math.max(frame.width, 1.5) ? frame.node : -1;
}
