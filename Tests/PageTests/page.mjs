// The folder of the page's files, and a small page's data, which fail when asked for a name that the schema does not have.
import assert from "node:assert/strict";
import fs from "node:fs";

export const folder = new URL("../../Sources/Reader/TracePage/Resources/", import.meta.url);
export const read = name => fs.readFileSync(new URL(name, folder), "utf8");

/// Reading a key that is not there fails, where it would give `undefined`. What was read is in `asked`, as "name.key".
export const asked = new Set();
export function strict(object, name = "data") {
  const within = (value, key) => Array.isArray(value) ? value.map(item => within(item, key))
    : value && typeof value === "object" && !ArrayBuffer.isView(value) ? strict(value, key) : value;
  return new Proxy(object, {
    get(target, key) {
      if (typeof key === "symbol" || key === "then") return Reflect.get(target, key); // a promise asks for the latter
      assert(key in target, `${name} has no ${key}`);
      asked.add(`${name}.${key}`);
      const value = Reflect.get(target, key);
      return Array.isArray(value) && !value.some(item => item && typeof item === "object") ? value : within(value, key);
    },
  });
}

export const functions = [["main", "app"], ["parse", "app"], ["malloc", "libc.so.6"], ["draw", "libui.so"], ["(own code)", "app"]];

/// Two threads, 100 and 60 long:
///
///     main 1
///       main ─ parse ─ malloc
///                    └ 3 short paths
///            └ draw ── malloc
///     worker 2
///       draw
export const tree = {
  depth: [0, 1, 2, 3, 3, 2, 3, 0, 1],
  fn: [-1, 0, 1, 2, -3, 3, 2, -2, 3],
  calls: [1, 1, 4, 8, 5, 2, 2, 1, 1],
  total: [100, 100, 60, 20, 10, 30, 30, 60, 60],
  self: [0, 10, 30, 20, 0, 0, 30, 0, 60],
  flags: [0, 1, 0, 0, 0, 2, 4, 0, 0],
  names: ["main 1", "worker 2", "3 short paths"],
};

export const table = [
  [0, 1, 100, 10, 100, 100, 100, 0, 0, 5, 3, 2, 60, 30, 10], [1, 4, 60, 30, 20, 15, 20, 1, 0, 30, 0, 0, 60, 0, 0],
  [2, 10, 50, 50, 25, 4, 25, 0, 0, 20, 25, 5, 20, 25, 5], [3, 3, 90, 60, 60, 15, 60, 1, 0, 60, 0, 0, 80, 10, 0],
];

/// main got slower by 40, parse faster by 30, malloc is within the noise; draw is gone.
export const comparedTree = {
  depth: [0, 1, 2, 2, 2],
  fn: [-1, 0, 1, 2, 3],
  calls: [9, 1, 4, 4, 0],
  total: [170, 170, 20, 50, 0],
  self: [0, 100, 20, 50, 0],
  flags: [0, 0, 0, 8, 0],
  width: [270, 270, 50, 51, 69],
  before: [220, 220, 50, 51, 69],
  selfBefore: [0, 60, 50, 51, 69],
  callsBefore: [9, 1, 4, 4, 1],
  names: ["all threads"],
};

/// Main runs, waits for a lock that pool holds, and has short states after it.
export const states = {
  spans: [0, 100, 0, -1, 100, 300, 2, 0, 400, 50, 1, -1, 450, 150, 0, -1],
  bands: [600, 200, 0, 0.5, 600, 200, 3, 0.25, 800, 200, 0, 1],
  waits: [{ what: "pthread_mutex_lock(0x10) in parse", details: ["held by pool/2", "woken by pool"], length: 350, stretches: 2, waker: 1, woken: 390, ran: 400 }],
};

export const data = {
  title: "app", facts: "pid 1", executable: "app", losses: ["7 calls dropped"], notes: ["a note"], duration: 1000, shown: { from: 0, to: 1000 },
  tree, table, functions, threadCount: 3, served: false,
  samples: {
    period: 1000000, step: 0, depth: [0, 1, 2, 0, 1], fn: [-1, 0, 1, -2, 3], names: ["main 1", "pool 2"], lanes: [0, 1],
    moments: [10, 2, 1, 500, 1, 2, 500, 4, 1, 900, 2, 4],
  },
  startup: {
    stages: [{ name: "main", at: 0, length: 500, tracer: 100 }, { name: "tracer's own start", at: 500, length: 50, tracer: 50 }],
    constructors: [{ name: "init", module: "libui.so", at: 100, length: 50 }],
    marks: [{ name: "loaded", at: 300 }],
  },
  threads: [
    {
      name: "main", tid: 1, isMain: true, process: "", begin: 0, end: 1000, own: 40, stages: [{ name: "loading", at: 0, length: 100, tracer: 0 }], states, calls: 8, levels: 3, deeper: 2, short: 5,
      slices: [0, 900, 0, 0, 10, 600, 1, 1, 900, 100, 4, 0], said: [1, '("/etc/passwd", 64) = -1 ENOENT'], dense: [700, 100, 1, 0.5],
    },
    { name: "pool", tid: 2, isMain: false, process: "", begin: null, end: null, own: null, stages: [], states: null, calls: 1, levels: 1, deeper: 0, short: 0, slices: [0, 60, 3, 0], said: [], dense: [] },
  ],
};

/// A server's answer: other functions, with numbers of its own.
export const answer = {
  calls: {
    from: 0, to: 500, functions: [["small", "app"], ["parse", "app"]],
    parts: [{ lane: 0, states, calls: 2, levels: 2, deeper: 0, short: 0, slices: [5, 1, 0, 1, 10, 20, 1, 1], said: [0, "(7)"], dense: [400, 10, 1, 0.1] }],
  },
  sums: { from: 0, to: 500, functions: [["small", "app"], ["parse", "app"]], rows: [[0, 3, 3, 3, 1, 1, 1, 0, 0, 3, 0, 0, 3, 0, 0], [1, 1, 20, 20, 20, 20, 20, 0, 0, 5, 10, 5, 5, 10, 5]] },
};
