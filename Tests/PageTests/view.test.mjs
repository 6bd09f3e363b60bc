import assert from "node:assert/strict";
import test from "node:test";
import { SCHEMA } from "../../Sources/Reader/TracePage/Resources/schema.mjs";
import { answer, asked, comparedTree, data, states, strict, tree } from "./page.mjs";

// Elements, canvases and all that they return are one kind of thing here: it has every method and attribute, and is 800 as a number.
function anything() {
  return new Proxy(function () {}, {
    get(target, key) {
      if (key === Symbol.toPrimitive) return () => 800;
      if (!(key in target) || key === "name" || key === "length") target[key] = anything();
      return target[key];
    },
    apply: anything,
  });
}

test("what is tested with is as the schema says", () => {
  const same = (object, names) => assert.deepEqual(Object.keys(object).sort(), SCHEMA[names].slice().sort(), names);
  same(data, "page");
  same(data.shown, "shown");
  same(data.startup, "startup");
  same(data.startup.stages[0], "stage");
  same(data.startup.constructors[0], "constructor");
  same(data.startup.marks[0], "mark");
  for (const thread of data.threads) same(thread, "thread");
  same(states, "states");
  same(states.waits[0], "wait");
  same(data.samples, "samples");
  for (const [values, name] of [[states.spans, "span"], [states.bands, "stateBand"], [data.samples.moments, "moment"]]) assert.equal(values.length % SCHEMA[name].length, 0, name);
  same(answer.calls, "calls");
  same(answer.calls.parts[0], "part");
  same(answer.sums, "sums");
  for (const row of answer.sums.rows) assert.equal(row.length, SCHEMA.row.length);
  same(tree, "tree");
  same(comparedTree, "comparedTree");
  for (const row of data.table) assert.equal(row.length, SCHEMA.row.length);
  for (const name of data.functions) assert.equal(name.length, SCHEMA.function.length);
});

/// The page in a browser that is none: what is drawn is in `texts`.
async function opened(pageData, name) {
  const elements = new Map(), texts = [], listeners = {};
  const element = id => {
    if (!elements.has(id)) elements.set(id, anything());
    return elements.get(id);
  };
  const context = new Proxy({}, {
    get: (target, key) => key === "measureText" ? () => ({ width: 100 }) : key === "fillText" ? text => texts.push(text) : () => {},
    set: () => true,
  });
  for (const id of ["flame", "line", "up", "down", "sampled"]) element(id).getContext = () => context;
  element("threads-search").value = "";
  Object.assign(globalThis, {
    DATA: pageData, document: Object.assign(anything(), { getElementById: element }), window: { devicePixelRatio: 1 }, location: { hash: "" },
    matchMedia: () => ({ matches: false }), getComputedStyle: anything, requestAnimationFrame: draw => draw(), innerWidth: 800, innerHeight: 800,
    addEventListener: (event, heard) => { listeners[event] = heard; },
  });
  await import("../../Sources/Reader/TracePage/Resources/view.mjs?" + name);
  const press = key => listeners.keydown({ key, target: { tagName: "CANVAS" }, preventDefault() {} });
  return { element, texts, press };
}

test("the page reads all that the schema names, and nothing else", async () => {
  const { element, texts, press } = await opened(strict(data), "embedded");
  assert(texts.includes("parse"), "the flame graph");
  texts.length = 0;
  element("tab-line").onclick();
  for (const name of ["main", "init", "loaded", "main 1", "8 calls, own code 40 ns, 5 short calls as bands, 2 deeper calls not drawn", 'parse("/etc/passwd", 64) = -1 ENOENT', "loading", "(own code)",
    "running", "lock", "1 thread more with less in them: not in this page"]) {
    assert(texts.includes(name), `the timeline has ${name}: ${texts}`);
  }
  const at = { clientX: 240, clientY: 128 };
  element("line").getBoundingClientRect = () => ({ left: 0, top: 0, width: 800, height: 800 });
  element("line").onmousemove(at);
  assert.equal(element("tip").textContent, "lock 300 ns at 100 ns\none of 2 stretches, 350 ns together\npthread_mutex_lock(0x10) in parse\nheld by pool/2\nwoken by pool");
  press("v");
  element("threads-button").onclick();
  element("tab-table").onclick();
  texts.length = 0;
  element("tab-around").onclick();
  assert(texts.includes("main") && texts.includes("malloc"), `callers and callees: ${texts}`);
  texts.length = 0;
  element("tab-samples").onclick();
  assert(texts.includes("parse"), `samples: ${texts}`);
  assert.equal(element("samples-of").textContent, "8 samples, one for each 1.00 ms of CPU time; 0 ns to 1.000 µs");
  element("tab-around").onclick();
  element("search").oninput({ target: { value: "malloc" } });
  assert.equal(element("matches").textContent, "10 calls, 31.3 % of the time");
  assert.equal(element("title").textContent, "app");
  assert.equal(element("losses").textContent, "Not in this trace: 7 calls dropped");
  const parts = { page: "data", shown: "shown", startup: "startup", stage: "stages", constructor: "constructors", mark: "marks", thread: "threads", states: "states", wait: "waits", samples: "samples" };
  for (const [part, name] of Object.entries(parts)) {
    for (const key of SCHEMA[part]) assert(asked.has(`${name}.${key}`), `nothing reads ${key} of ${part}`);
  }
});

test("a served page asks for what is in view once it is zoomed, and for sums of what is selected", async () => {
  const questions = [];
  globalThis.fetch = async address => {
    questions.push(address);
    const [, question, from, to] = address.match(/^(\w+)\?from=(\d+)&to=(\d+)/).map((part, index) => index > 1 ? +part : part);
    const said = { ...structuredClone(answer[address.split("?")[0]]), from, to };
    return { ok: true, json: async () => strict(said, question) };
  };
  const timers = [];
  Object.assign(globalThis, { setTimeout: wake => timers.push(wake), clearTimeout: () => { timers.length = 0; } });
  const served = { ...data, duration: 1e6, served: true, shown: null, threads: data.threads.map(thread => ({ ...thread, dense: [0, 1e6, 1, 0.5] })) };
  const { element, texts, press } = await opened(strict(served), "served");
  element("tab-line").onclick();
  assert.equal(timers.length, 0, "all of the time is as the page has it");
  for (let n = 0; n < 12; n++) press("w");
  assert.equal(timers.length, 1);
  texts.length = 0;
  await timers[0]();
  assert.match(questions[0], /^calls\?from=\d+&to=\d+&lanes=0,1$/);
  await press("v");
  await new Promise(done => setImmediate(done));
  assert.match(questions[1], /^sums\?from=\d+&to=\d+&lanes=0,1$/);
  for (const [part, name] of [["calls", "calls"], ["part", "parts"], ["sums", "sums"]]) {
    for (const key of SCHEMA[part]) {
      if (["lane", "slices", "dense", "levels", "functions", "parts", "rows"].includes(key)) assert(asked.has(`${name}.${key}`), `nothing reads ${key} of ${part}`);
    }
  }
});
