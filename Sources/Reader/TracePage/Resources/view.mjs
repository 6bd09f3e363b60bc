// The page of one trace (or of two, compared): flame graph, timeline, table, callers and callees, drawn from `DATA`, which comes before
// this script (schema.mjs says what is in it). Runs in the reader's browser.
import { SCHEMA } from "./schema.mjs";
import { change, many, moment, plural, share, time } from "./numbers.mjs";
import { CallTree } from "./tree.mjs";
import { difference, hues, inkOn, plain, shade, stateColours } from "./colours.mjs";
import { escaped, expression, found, matches } from "./search.mjs";
import { clamped, eachBand, eachSlice, isTracers, missing, moved, pixels, stageText, textsOf, ticks, widened, zoomed } from "./timeline.mjs";
import { argumentColumns, percentileText, sorted, stateColumns, tableRows } from "./table.mjs";
import { around, mergedThreads } from "./merge.mjs";
import { answeredSums, drawnSums, withArguments } from "./selection.mjs";
import { arranged, groups, isMeant, threadName } from "./threads.mjs";
import { ROW, drawText, sized } from "./canvas.mjs";
import { FlameGraph } from "./flame.mjs";
import { columnText, spanLines, stateAt, stateLane, stateSums, sumText } from "./states.mjs";
import { sampledTree } from "./samples.mjs";

const $ = id => document.getElementById(id);
const root = document.documentElement;
const functions = DATA.functions.slice(); // more may come with what is loaded
const tree = new CallTree(DATA.tree, functions);
const lanes = DATA.threads;
const laneValues = lanes ? lanes.map(lane => textsOf(lane.said)) : []; // arguments and results of calls
const everything = { from: 0, to: DATA.duration || 1 };
/// Rows with what is known of the longest calls in a time of some threads.
const withDrawn = (rows, range, chosen) => withArguments(rows, chosen.map(index => ({ slices: lanes[index].slices, values: laneValues[index] })), range);
const table = { rows: withDrawn(tableRows(DATA.table, functions, tree.isComparison), everything, [...laneValues.keys()]), key: tree.isComparison ? "change" : "self", down: true };
const rowOf = new Map(table.rows.map(row => [row.fn, row]));

function element(kind, className, text, onclick) {
  const made = document.createElement(kind);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  if (onclick) made.onclick = onclick;
  return made;
}

// MARK: colour

const hue = hues(DATA.executable);
const isDark = () => root.dataset.theme === "dark";
const isOwnCode = fn => functions[fn][0] === SCHEMA.ownCode;
const ink = name => getComputedStyle(root).getPropertyValue(name).trim();
const paint = {
  fill(of, i) {
    if (paint.isPlain(of, i)) return plain(isDark());
    if (of.isComparison) return difference(of.has(i, "noise") ? 0 : of.total[i] - of.before[i], of.largestChange, isDark());
    return shade(hue(of.module(i)), of.fn[i], isDark());
  },
  /// Threads, what was summed up, and what nobody knows.
  isPlain: (of, i) => !of.isFunction(i) || of.name(i) === SCHEMA.unknown,
  isHit: (of, i) => pattern !== null && of.isFunction(i) && isHit(of.fn[i]),
  isSearch: () => pattern !== null,
  ink, isDark,
};

// MARK: search

let pattern = null, current = "flame";
const hits = new Map();
function isHit(fn) {
  let is = hits.get(fn);
  if (is === undefined) hits.set(fn, is = matches(pattern, ...functions[fn]));
  return is;
}
function search(text) {
  pattern = expression(text);
  hits.clear();
  showMatches();
  redraw();
}
function showMatches() {
  $("matches").textContent = "";
  if (!pattern) return;
  const isOfSamples = current === "samples", { isFound, calls, part, whole } = found(pattern, isOfSamples ? samples.graph.tree : tree, isOfSamples ? [] : DATA.table);
  const saying = isOfSamples ? 0 : laneValues.reduce((sum, values) => sum + [...values.values()].filter(said => pattern.test(said)).length, 0);
  const texts = isFound ? [`${calls ? plural(calls, "call") + ", " : ""}${share(part, whole)} of the ${isOfSamples ? "samples" : "time"}`] : [];
  if (saying) texts.push(`arguments of ${plural(saying, "drawn call")}`);
  $("matches").textContent = texts.join("; ") || "no match";
}

const tip = $("tip");
function showTip(event, text) {
  if (!text) { tip.style.display = "none"; return; }
  tip.textContent = text;
  tip.style.display = "block";
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.min(event.clientX + 14, innerWidth - box.width - 8) + "px";
  tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + "px";
}

// MARK: details of a function, below every view

/// - said: text about what was chosen, put before that about the function in all of the trace
function describe(box, fn, title, module, said) {
  box.textContent = "";
  box.append(element("b", "", title), " ", element("span", "soft", module));
  if (said) box.append(element("br"), element("span", "soft", said));
  const row = rowOf.get(fn);
  if (!row || tree.isComparison) return;
  const all = [`${SCHEMA.ownCode === row.name ? "" : plural(row.calls, "call") + ", "}total ${time(row.total)}, self ${time(row.self)} (${share(row.share, 1)})`];
  if (row.calls) all.push(`average ${time(row.average)}`);
  for (const key of ["p50", "p99"]) if (row[key] !== null) all.push(`${key} ${percentileText(row, key, time)}`);
  if (row.maximum !== null) all.push(`longest ${time(row.maximum)}${row.passed ? " " + row.passed : ""}`);
  box.append(element("br"), element("span", "soft", "in all: " + all.join(", ")), element("br"));
  const states = ["total", "self"].map(of => stateColumns([row], of, of, time).map(([key, name]) => `${name} ${time(row[key])}`).join(", "));
  if (states[0]) box.append(element("span", "soft", states.join("; ")), element("br"));
  if (SCHEMA.ownCode !== row.name) box.append(element("button", "", "Callers and callees", () => openAround(fn)));
  box.append(element("button", "", "Find in the flame graph", () => {
    $("search").value = "^" + escaped(row.name) + "$";
    search($("search").value);
    page("flame");
  }));
}

// MARK: flame graphs

/// A flame graph that is zoomed by clicks, with the way up above it, and below it what is said of a frame, or else the hint.
function zooming(name, hintText) {
  const graph = new FlameGraph($(name), $(name + "-box"), paint);
  const draw = () => {
    const above = graph.draw(), crumbs = $(name + "-crumbs");
    crumbs.textContent = "";
    const add = (text, node) => crumbs.append(element("button", "", text, () => zoomTo(node)));
    add("all", -1);
    if (graph.zoom >= 0) for (const node of [...above, graph.zoom].slice(-12)) add(graph.tree.name(node), node);
    if (graph.cutLevels) crumbs.append(element("span", "part", `${plural(graph.cutLevels, "level")} more below: zoom in`));
    const chosen = graph.chosen >= 0 ? graph.chosen : graph.zoom, box = $(name + "-details"), of = graph.tree;
    if (chosen >= 0) describe(box, of.fn[chosen], of.name(chosen), of.module(chosen), of.facts(chosen));
    else box.replaceChildren(element("span", "soft", hintText + "Click a frame to zoom in, Esc to zoom out, / to search, ? for all keys."));
  };
  const zoomTo = node => {
    graph.zoom = graph.chosen = node;
    $(name + "-box").scrollTop = 0;
    draw();
  };
  /// Chooses a neighbour of what is chosen, and brings it into view.
  const move = key => {
    const from = graph.chosen >= 0 ? graph.chosen : graph.zoom >= 0 ? graph.zoom : graph.tops[0];
    if (from === undefined) return;
    graph.chosen = graph.tree.neighbour(from, key);
    draw();
    const frame = graph.frames.find(f => f.node === graph.chosen), box = $(name + "-box");
    if (!frame) return;
    const y = frame.level * ROW;
    if (y < box.scrollTop || y + ROW > box.scrollTop + box.clientHeight) box.scrollTop = y - box.clientHeight / 2;
  };
  graph.canvas.onmousemove = event => pointed(graph, event);
  graph.canvas.onmouseleave = event => showTip(event, "");
  graph.canvas.onclick = event => { const i = graph.nodeAt(event); if (i >= 0) zoomTo(i); graph.canvas.focus(); };
  return { graph, draw, zoomTo, move };
}
function pointed(graph, event) {
  const i = graph.nodeAt(event), of = graph.tree;
  showTip(event, i < 0 ? "" : of.name(i) + (of.module(i) ? "  " + of.module(i) : "") + "\n" + of.facts(i));
}
/// The threads of a tree to choose from, each by itself, all, and equal ones as one. What was chosen of another tree stays, as far as it is there.
function offerThreads(menu, view, of) {
  const { graph, draw } = view, choices = [];
  menu.textContent = "";
  const add = (name, text, choose) => menu.append(Object.assign(element("option", "", text), { value: choices.push({ name, choose }) - 1 }));
  const merged = (tops, title) => () => { const one = mergedThreads(of, tops, title); graph.show(one, one.tops); };
  if (of.tops.length !== 1) add("all threads", "all threads", () => graph.show(of, of.tops));
  if (!of.isComparison) {
    const threads = of.tops.map((node, index) => ({ name: of.name(node).replace(/ \d+$/, ""), process: "", isMain: index === 0 }));
    if (of.tops.length > 1) add("all threads as one", "all threads as one", merged(of.tops, "all threads"));
    for (const { name, members } of groups(threads)) {
      const title = `${name} × ${members.length}`;
      if (members.length > 1) add(title, title + ", as one", merged(members.map(index => of.tops[index]), title));
    }
  }
  for (const node of of.tops) add(of.name(node), `${of.name(node)} — ${of.amount(of.total[node])}`, () => graph.show(of, [node]));
  const pick = index => {
    view.wanted = choices[index].name;
    choices[index].choose();
  };
  const kept = Math.max(choices.findIndex(({ name }) => name === view.wanted), 0);
  menu.selectedIndex = kept;
  pick(kept);
  menu.onchange = () => { pick(+menu.value); draw(); };
}

const flame = zooming("flame", tree.isComparison ? "Width: the longer of both times. Red: slower than before, blue: faster, grey: as before, or within the noise. " : "Width: time. Colour: module. ");
offerThreads($("root"), flame, tree);

// MARK: callers and callees

const up = new FlameGraph($("up"), $("around-box"), paint, true), down = new FlameGraph($("down"), $("around-box"), paint);
const focus = { fn: -1, calls: 0 };
function openAround(fn) {
  const { callers, callees, calls } = around(tree, fn);
  Object.assign(focus, { fn, calls });
  up.show(callers, callers.tops);
  down.show(callees, callees.tops);
  down.chosen = 0; // framed: the function itself
  page("around");
}
function drawAround() {
  if (tree.isComparison) return;
  if (focus.fn < 0) {
    const largest = sorted(table.rows, "self", true).find(one => one.name !== SCHEMA.ownCode);
    if (largest) openAround(largest.fn);
    return;
  }
  const row = rowOf.get(focus.fn), [name, module] = functions[focus.fn];
  $("around-name").value = name;
  const all = row ? row.calls : focus.calls, rest = all - focus.calls;
  $("around-facts").textContent = `${plural(all, "call")}`
    + (rest > 0 ? `; ${many(rest)} of them lie in paths too short to be in this page, and not in these graphs: tracer callers shows all` : "");
  up.draw(false);
  down.draw(false);
  $("up-title").textContent = up.tree.count > 1 ? `called from (${plural(up.tree.callees(0).length, "caller")})` : "no caller is recorded: called from the thread's own code";
  $("down-title").textContent = down.tree.count > 1 ? "and what it calls" : "it calls nothing that is recorded";
  describe($("around-details"), -1, name, module, down.tree.facts(0));
}
for (const graph of [up, down]) {
  graph.canvas.onmousemove = event => pointed(graph, event);
  graph.canvas.onmouseleave = event => showTip(event, "");
  graph.canvas.onclick = event => {
    const i = graph.nodeAt(event);
    if (i >= 0 && graph.tree.isFunction(i)) openAround(graph.tree.fn[i]);
  };
}
for (const row of sorted(table.rows, "self", true).slice(0, 2000)) {
  if (row.name !== SCHEMA.ownCode) $("around-names").append(Object.assign(element("option"), { value: row.name, label: row.module }));
}
$("around-name").onchange = event => {
  const meant = sorted(table.rows, "calls", true).find(row => row.name === event.target.value);
  if (meant) openAround(meant.fn); else $("around-facts").textContent = "no such function: choose one of the list";
};

// MARK: timeline

const first = DATA.shown || everything;
const mayOpenAll = lanes && lanes.length <= 12; // more would not fit on a screen
const line = { from: first.from, to: first.to, canvas: $("line"), boxes: [], selected: null, hidden: new Set(), open: new Set(mayOpenAll ? groups(lanes).map(group => group.key) : []), loaded: null, asked: null,
  pointed: null, chosen: null, centers: new Map() };
const hasStates = lanes !== null && lanes.some(lane => lane.states !== null);
const BAND = 18, HEAD = 22, STRIP = 4, STATE = 13;
const startup = DATA.startup;

/// Returns what is drawn of a lane: while loaded calls cover the view, those in place of the bands.
function drawnOf(index) {
  const lane = lanes[index], { loaded } = line;
  const part = loaded && loaded.from <= line.from && loaded.to >= line.to ? loaded.parts.get(index) : null;
  const own = { slices: lane.slices, values: laneValues[index] };
  return { calls: part ? [{ slices: part.slices, values: textsOf(part.said) }, own] : [own], dense: part ? part.dense : lane.dense, states: part ? part.states : lane.states, levels: Math.max(lane.levels, part ? part.levels : 0, 1) };
}

function drawLine() {
  if (!lanes) return;
  const width = Math.max($("line-box").clientWidth, 200), span = line.to - line.from, x = t => (t - line.from) / span * width;
  let height = HEAD + (startup ? (startup.stages.length ? BAND + 4 : 0) + (startup.constructors.length ? BAND + 4 : 0) : 0) + (startup && startup.marks.length ? BAND : 0);
  const tracks = arranged(lanes, line).map(track => {
    const stages = lanes[track.members[0]].stages, top = height, drawn = track.isGroup ? null : drawnOf(track.members[0]);
    height += 20 + (stages.length ? BAND + 4 : 0) + (drawn ? (drawn.states ? STATE + 2 : 0) + drawn.levels * BAND : track.members.length * (STRIP + (hasStates ? STRIP : 0))) + 8;
    return { ...track, top, stages, drawn };
  });
  const below = DATA.threadCount - lanes.length;
  if (below > 0) height += 20;
  const { context, cut, letter } = sized(line.canvas, width, Math.max(height, $("line-box").clientHeight - 4));
  const text = ink("--ink"), soft = ink("--soft"), edge = ink("--edge"), onFrame = ink("--on-frame"), hit = ink("--hit"), mark = ink("--mark"), own = ink("--own");
  line.boxes = [];
  line.centers.clear();
  const boxed = (left, top, w, h, tipText, range, onclick) => line.boxes.push({ left, top, width: Math.max(w, 2), height: h, tipText, range, onclick });

  const scale = ticks(line, width), step = scale.length > 1 ? scale[1] - scale[0] : span;
  for (const t of scale) {
    context.fillStyle = edge;
    context.fillRect(x(t), 0, 1, height);
    context.fillStyle = soft;
    context.fillText(moment(t, step), x(t) + 4, 10);
  }
  let y = HEAD;
  const row = (items, colour, tipOf) => {
    items.forEach((item, index) => {
      const extent = pixels(item.at, item.length, line, width);
      if (!extent) return;
      const { x: x0, end: x1 } = extent;
      context.fillStyle = colour(item, index);
      context.fillRect(x0, y, Math.max(x1 - x0 - 1, 0.7), BAND);
      context.fillStyle = onFrame;
      drawText(context, letter, item.name, x0, y + BAND / 2, x1 - x0);
      boxed(x0, y, x1 - x0, BAND, tipOf(item), [item.at, item.at + item.length]);
    });
    y += BAND + 4;
  };
  const stageColour = (s, n) => isTracers(s) ? soft : `hsl(${205 + n * 23} 55% ${isDark() ? 62 : 80}%)`, stageTip = s => stageText(s, time);
  if (startup) {
    if (startup.stages.length) row(startup.stages, stageColour, stageTip);
    if (startup.constructors.length) row(startup.constructors, c => `hsl(${hue(c.module)} 60% ${isDark() ? 58 : 74}%)`, c => `constructor ${c.name}\n${c.module}\n${time(c.length)}`);
    if (startup.marks.length) {
      for (const m of startup.marks) {
        const at = x(m.at);
        if (at < 0 || at > width) continue;
        context.fillStyle = mark;
        context.fillRect(at, y, 1.5, height - y);
        context.fillText(m.name, at + 5, y + 8);
        boxed(at - 3, y, 8 + m.name.length * letter, BAND, `mark ${m.name}\nat ${time(m.at)}`);
      }
      y += BAND;
    }
  }

  const slicesOf = (index, { slices, values }, base, high, hasText) => eachSlice(slices, line, width, (slice, x0, w) => {
    if (!hasText && slice.level > 0) return;
    const [named, module] = functions[slice.fn], upper = base + slice.level * BAND, isOwn = isOwnCode(slice.fn);
    const said = values.get(slice.index) || "", name = named + said, isFound = pattern !== null && (isHit(slice.fn) || (said !== "" && pattern.test(said)));
    context.globalAlpha = pattern && !isFound ? 0.3 : 1;
    context.fillStyle = isFound ? hit : isOwn ? own : shade(hue(module), slice.fn, isDark());
    context.fillRect(x0, upper, Math.max(w - (w > 3 ? 1 : 0), 0.7), high - 1);
    context.fillStyle = isOwn && !isFound ? soft : onFrame;
    if (hasText) drawText(context, letter, name, x0, upper + BAND / 2, w);
    if (w >= 1) {
      boxed(x0, upper, w, high, `${name}\n${module}\n${time(slice.length)} at ${moment(slice.start, slice.length / 100)}` + (hasText ? "" : `\n${threadName(lanes[index])}`),
        [slice.start, slice.start + slice.length], () => describeSlice(index, slice, name));
    }
  });
  const bandsOf = (bands, base, high, inset, isAll) => eachBand(bands, line, width, (band, x0, w) => {
    if (!isAll && band.level > 0) return;
    context.globalAlpha = 0.15 + 0.6 * band.share;
    context.fillStyle = soft;
    context.fillRect(x0, base + band.level * BAND + inset, Math.max(w, 0.7), high);
    boxed(x0, base + band.level * BAND, w, BAND - 1, `calls too short to be drawn one by one\nfill ~${Math.round(band.share * 100)} % of this`
      + (DATA.served ? "\nzoom in to load them" : ""));
  });
  const statesOf = (index, states, base, high) => {
    line.centers.set(index, base + high / 2);
    if (!states) return;
    const colours = stateColours(isDark()), shown = stateLane(states, line, width);
    shown.columns.forEach((column, n) => {
      let bottom = base + high;
      column.forEach((part, state) => {
        context.fillStyle = colours[state];
        context.fillRect(n, bottom - part * high, 1, part * high);
        bottom -= part * high;
      });
    });
    for (const { state, x: x0, width: w } of shown.spans) {
      context.fillStyle = colours[state];
      context.fillRect(x0, base, Math.max(w - (w > 4 ? 1 : 0), 1), high);
      if (high < STATE) continue;
      context.fillStyle = inkOn(colours[state]);
      drawText(context, letter, SCHEMA.stateNames[state], x0, base + high / 2 + 0.5, w);
    }
    const of = px => {
      const here = stateAt(shown, px);
      if (!here || Array.isArray(here)) return here && { tipText: columnText(here) };
      const lines = spanLines(here, states.waits, DATA.served), wait = { lane: index, span: here, details: here.wait < 0 ? null : states.waits[here.wait] };
      return { tipText: lines.join("\n"), range: [here.start, here.start + here.length], wait, onclick: () => describeWait(wait, lines) };
    };
    line.boxes.push({ left: 0, top: base, width, height: high, of });
  };
  for (const { group, members, isGroup, top, stages, drawn } of tracks) {
    const lane = lanes[members[0]];
    context.globalAlpha = 1;
    context.fillStyle = edge;
    context.fillRect(0, top, width, 1);
    context.fillStyle = text;
    const isOfGroup = group.members.length > 1, sum = key => members.reduce((part, index) => part + (lanes[index][key] || 0), 0);
    const title = isGroup ? `▸ ${group.process ? group.process + ": " : ""}${group.name || "thread"} × ${members.length}` : (isOfGroup ? "▾ " : "") + threadName(lane);
    context.fillText(title, 6, top + 10);
    context.fillStyle = soft;
    const parts = [plural(sum("calls"), "call")];
    if (members.some(index => lanes[index].own !== null)) parts.push(`own code ${time(sum("own"))}`);
    if (sum("short")) parts.push(`${plural(sum("short"), "short call")} as bands`);
    if (sum("deeper")) parts.push(`${plural(sum("deeper"), "deeper call")} not drawn`);
    context.fillText(parts.join(", "), 14 + context.measureText(title).width, top + 10);
    if (isOfGroup) boxed(0, top, width, 18, isGroup ? "equal threads: click to see each" : "click to draw equal threads as one", null, () => toggle(line.open, group.key));
    y = top + 20;
    if (stages.length) row(stages, stageColour, stageTip);
    if (isGroup) {
      for (const index of members) {
        if (hasStates) {
          statesOf(index, lanes[index].states, y, STRIP - 1);
          y += STRIP;
        }
        bandsOf(lanes[index].dense, y, STRIP - 1, 0, false);
        slicesOf(index, { slices: lanes[index].slices, values: laneValues[index] }, y, STRIP, false);
        y += STRIP;
      }
      continue;
    }
    statesOf(members[0], drawn.states, y, STATE);
    const base = y + (drawn.states ? STATE + 2 : 0);
    // The thread's life: a frame around what is not even own code.
    if (lane.begin !== null) {
      const extent = pixels(lane.begin, lane.end - lane.begin, line, width);
      if (extent) {
        context.fillStyle = edge;
        context.fillRect(extent.x, base + BAND - 1, extent.end - extent.x, 1);
      }
    }
    bandsOf(drawn.dense, base, BAND - 7, 3, true);
    for (const calls of drawn.calls) slicesOf(members[0], calls, base, BAND, true);
  }
  context.globalAlpha = 1;
  if (below > 0) {
    context.fillStyle = soft;
    context.fillText(`${plural(below, "thread")} more with less in them: not in this page`, 6, height - 10);
  }
  drawWaker(context, x, width, ink("--paper"), text);
  if (line.selected) {
    const { from, to } = line.selected;
    context.fillStyle = ink("--select");
    context.fillRect(x(from), 0, Math.max(x(to) - x(from), 1), Math.max(height, $("line-box").clientHeight));
  }
  $("line-range").textContent = `${moment(line.from, span / 1000)} to ${moment(line.to, span / 1000)} (${time(span)})`;
  const hidden = line.hidden.size ? `${plural(line.hidden.size, "thread")} hidden` : "";
  const tooHigh = cut > 0 ? "the lowest threads are cut: hide some" : "";
  $("line-state").textContent = [hidden, tooHigh, line.asked ? "loading calls …" : ""].filter(part => part).join(" · ");
  load();
}
/// From who woke a thread, at that moment, to when the thread ran: of the wait that is pointed at, or else of the one that was clicked.
function drawWaker(context, x, width, paper, text) {
  const wait = line.pointed || line.chosen;
  if (!wait || !wait.details || wait.details.waker === null) return;
  const { lane, span, details } = wait, from = line.centers.get(details.waker), to = line.centers.get(lane);
  if (from === undefined || to === undefined) return; // hidden
  const bounded = at => Math.min(Math.max(x(at), -50), width + 50);
  const x0 = bounded(details.woken), x1 = bounded(details.ran === null ? span.start + span.length : details.ran), angle = Math.atan2(to - from, x1 - x0);
  const end = side => [x1 - 9 * Math.cos(angle + side), to - 9 * Math.sin(angle + side)];
  for (const [colour, wide] of [[paper, 6], [text, 2]]) {
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = wide;
    context.beginPath();
    context.moveTo(x0, from);
    context.lineTo(x1, to);
    context.moveTo(...end(0.45));
    context.lineTo(x1, to);
    context.lineTo(...end(-0.45));
    context.stroke();
    context.beginPath();
    context.arc(x0, from, 2 + wide / 2, 0, 7);
    context.fill();
  }
}
/// Notes the wait that the pointer is at, null for none.
function point(wait) {
  const explained = wait && wait.details ? wait : null;
  if ((line.pointed && line.pointed.details) === (explained && explained.details)) return;
  line.pointed = explained;
  schedule(drawLine);
}
function toggle(set, key) {
  if (!set.delete(key)) set.add(key);
  schedule(drawLine);
}
function boxAt(event) {
  const area = line.canvas.getBoundingClientRect(), px = event.clientX - area.left, py = event.clientY - area.top;
  for (let i = line.boxes.length - 1; i >= 0; i--) {
    const box = line.boxes[i];
    if (px >= box.left && px < box.left + box.width && py >= box.top && py < box.top + box.height) return box.of ? box.of(px) : box;
  }
}
function show({ from, to }) {
  Object.assign(line, clamped(from, to, DATA.duration));
  schedule(drawLine);
}
const showAll = () => show(everything);
const waiting = new Set();
function schedule(draw) {
  if (waiting.has(draw)) return;
  waiting.add(draw);
  requestAnimationFrame(() => { waiting.delete(draw); draw(); });
}
function describeWait(wait, [title, ...texts]) {
  line.chosen = wait;
  const { start, length } = wait.span, range = { from: start, to: start + length };
  $("line-details").replaceChildren(element("b", "", title), element("span", "soft", ` in ${threadName(lanes[wait.lane])} `), element("button", "", "select this time", () => select(range)),
    ...texts.map(text => element("div", "soft", text)));
  schedule(drawLine);
}
function describeSlice(index, { start, length, fn }, name) {
  line.chosen = null;
  schedule(drawLine);
  describe($("line-details"), fn, name, functions[fn][1], `${time(length)}, ${moment(start, length / 100)} to ${moment(start + length, length / 100)}, in ${threadName(lanes[index])}`);
}

// MARK: what the page does not have, of the server that made it

const visible = () => lanes.map((_, index) => index).filter(index => !line.hidden.has(index));
const numbers = new Map(functions.map(([name, module], fn) => [name + "\n" + module, fn]));
function numberOf([name, module]) {
  const key = name + "\n" + module;
  if (!numbers.has(key)) numbers.set(key, functions.push([name, module]) - 1);
  return numbers.get(key);
}
async function ask(question, range, of) {
  const answer = await fetch(`${question}?from=${range.from}&to=${range.to}&lanes=${of.join(",")}`);
  if (!answer.ok) throw new Error(`the server says ${answer.status}`);
  return answer.json();
}
/// Asks for the calls in view once the view has come to rest.
function load() {
  clearTimeout(line.timer);
  if (!DATA.served || line.asked) return;
  const range = missing(line, visible().map(index => lanes[index]), line.loaded, DATA.duration);
  if (!range) return;
  line.timer = setTimeout(async () => {
    line.asked = range;
    schedule(drawLine);
    try {
      const { from, to, functions: named, parts } = await ask(SCHEMA.questions.calls, range, visible());
      const fnOf = named.map(numberOf);
      for (const part of parts) {
        for (let i = SCHEMA.slice.indexOf("fn"); i < part.slices.length; i += SCHEMA.slice.length) part.slices[i] = fnOf[part.slices[i]];
      }
      line.loaded = { from, to, parts: new Map(parts.map(part => [part.lane, part])) };
    } catch (error) {
      line.loaded = { ...range, parts: new Map() };
      $("line-details").textContent = `calls could not be loaded (${error.message}): is tracer view --serve still running?`;
    }
    line.asked = null;
    schedule(drawLine);
  }, 120);
}

// MARK: selection of a time

const lineHint = "Click a call for its details. Select a part of the time, with shift or in the scale, for its sums by function; v selects all that is in view.";
const hint = () => $("line-details").replaceChildren(element("span", "soft", lineHint));
hint();
async function select(range) {
  line.selected = range;
  line.chosen = null;
  schedule(drawLine);
  const box = $("line-details");
  box.textContent = "";
  if (!range) return hint();
  const chosen = visible(), title = element("b", "", `${moment(range.from, (range.to - range.from) / 1000)} to ${moment(range.to, (range.to - range.from) / 1000)} (${time(range.to - range.from)})`);
  let rows, note, isAll = true, mark = "";
  if (DATA.served) {
    box.append(title, element("span", "soft", " adding up …"));
    try {
      const whole = { from: Math.floor(range.from), to: Math.max(Math.ceil(range.to), Math.floor(range.from) + 1) };
      rows = answeredSums(await ask(SCHEMA.questions.sums, whole, chosen), numberOf);
      note = "all calls, also those that are not drawn";
    } catch (error) {
      box.textContent = `no sums (${error.message}): is tracer view --serve still running?`;
      return;
    }
    if (line.selected !== range) return;
    rows = withDrawn(rows, range, chosen);
  } else {
    const sums = drawnSums(chosen.map(index => lanes[index]), range, isOwnCode);
    rows = withDrawn(sums.rows, range, chosen);
    isAll = sums.undrawn <= 0;
    mark = sums.isEstimate ? "~" : "";
    note = !isAll
      ? `not those too short to be drawn, which fill ~${time(sums.undrawn)}, here in the self time of what calls them: tracer view --serve has all, with percentiles`
      : "";
  }
  rows = rows.filter(row => row.calls || row.self || row.total).sort((a, b) => b.self - a.self);
  box.textContent = "";
  const calls = rows.reduce((sum, row) => sum + row.calls, 0);
  box.append(title, element("span", "soft", ` in ${plural(chosen.length, "thread")}: ${plural(calls, "call")}${note ? ", " + note : ""} `),
    element("button", "", "zoom", () => show(range)), ...samples ? [element("button", "", "samples", () => page("samples"))] : [],
    element("button", "", "end", () => select(null)));
  const states = chosen.map(index => lanes[index].states).filter(one => one);
  if (states.length) box.append(element("div", "soft", sumText(states.map(one => stateSums(one, range)))));
  const list = element("div", "sums"), head = element("tr"), body = element("tbody");
  // Percentiles of the long calls alone would be wrong.
  const shown = [["name", "Function"], ...argumentColumns(rows, passed), ["self", "Self time", time], ...stateColumns(rows, "self", mark + "Self", known), ["total", "Total", time],
    ...stateColumns(rows, "total", mark + "Total", known), ["calls", isAll ? "Calls" : "Calls drawn", count], ...isAll ? percentiles : [], ["maximum", "Longest", known]];
  const grid = element("table", tableClass(shown));
  for (const [key, text, , meaning] of shown) head.append(heading(key, text, meaning));
  for (const row of rows.slice(0, MOST)) {
    const tr = element("tr", "", undefined, () => { if (!isOwnCode(row.fn) && rowOf.has(row.fn)) openAround(row.fn); });
    for (const [key, , format] of shown) {
      if (key !== "name") {
        tr.append(element("td", classOf(key), format(row[key], row)));
        if (key === "passed") tr.lastChild.title = row.passed;
        continue;
      }
      const cell = element("td", "name", functions[row.fn][0]);
      cell.append(element("span", "", "  " + functions[row.fn][1]));
      tr.append(cell);
    }
    body.append(tr);
  }
  const top = element("thead");
  top.append(head);
  grid.append(top, body);
  list.append(grid);
  if (rows.length > MOST) list.append(element("span", "soft", `${many(rows.length - MOST)} functions more`));
  box.append(list);
}

let drag = null;
line.canvas.addEventListener("wheel", event => {
  if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY) && event.altKey) return;
  event.preventDefault();
  const area = line.canvas.getBoundingClientRect();
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    return show(moved(line, (event.deltaX || event.deltaY) / area.width));
  }
  const at = line.from + (line.to - line.from) * (event.clientX - area.left) / area.width;
  show(zoomed(line, at, Math.exp(Math.sign(event.deltaY) * 0.2)));
}, { passive: false });
const timeAt = event => {
  const area = line.canvas.getBoundingClientRect();
  return line.from + (line.to - line.from) * Math.min(Math.max((event.clientX - area.left) / area.width, 0), 1);
};
line.canvas.onmousedown = event => {
  const isScale = event.clientY - line.canvas.getBoundingClientRect().top < HEAD;
  drag = { x: event.clientX, from: line.from, to: line.to, moved: false, selects: event.shiftKey || isScale, at: timeAt(event) };
};
addEventListener("mousemove", event => {
  if (!drag) return;
  if (Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
  if (!drag.moved) return;
  showTip(event, "");
  if (!drag.selects) return show(moved(drag, (drag.x - event.clientX) / line.canvas.clientWidth));
  const to = timeAt(event);
  line.selected = { from: Math.min(drag.at, to), to: Math.max(drag.at, to) };
  schedule(drawLine);
});
addEventListener("mouseup", event => {
  if (!drag) return;
  const { moved: isMoved, selects } = drag;
  drag = null;
  if (isMoved) { if (selects) select(line.selected); return; }
  const box = boxAt(event);
  if (box && box.onclick) box.onclick();
});
line.canvas.onmousemove = event => { if (!drag) { const box = boxAt(event); showTip(event, box ? box.tipText : ""); point(box && box.wait); } };
line.canvas.onmouseleave = event => { showTip(event, ""); point(null); };
line.canvas.ondblclick = event => {
  const box = boxAt(event), range = box && box.range;
  if (range) show(widened({ from: range[0], to: range[1] }, 0.05)); else if (!box || !box.onclick) showAll();
};

// MARK: threads of the timeline

function listThreads() {
  const list = $("threads-list"), text = $("threads-search").value;
  list.textContent = "";
  let left = 0;
  const add = (title, members, className) => {
    const row = element("label", className), box = element("input");
    box.type = "checkbox";
    box.checked = members.some(index => !line.hidden.has(index));
    box.onchange = () => {
      for (const index of members) if (box.checked) line.hidden.delete(index); else line.hidden.add(index);
      refresh();
    };
    row.title = title;
    row.append(box, title);
    list.append(row);
  };
  for (const { name, process, members } of groups(lanes)) {
    const meant = members.filter(index => isMeant(lanes[index], text));
    left += members.length - meant.length;
    if (meant.length > 1) add(`${process ? process + ": " : ""}${name || "thread"} × ${meant.length}`, meant, "");
    for (const index of meant) add(`${threadName(lanes[index])} — ${plural(lanes[index].calls, "call")}`, [index], meant.length > 1 ? "member" : "");
  }
  if (left) list.append(element("span", "soft", `${plural(left, "thread")} not meant by the search`));
}
function refresh() {
  listThreads();
  schedule(drawLine);
  if (line.selected) select(line.selected);
}
const meantThreads = () => lanes.map((_, index) => index).filter(index => isMeant(lanes[index], $("threads-search").value));
$("threads-search").oninput = listThreads;
$("threads-all").onclick = () => { for (const index of meantThreads()) line.hidden.delete(index); refresh(); };
$("threads-none").onclick = () => { for (const index of meantThreads()) line.hidden.add(index); refresh(); };
$("threads-button").onclick = () => {
  const panel = $("threads");
  panel.hidden = !panel.hidden;
  $("threads-button").setAttribute("aria-expanded", !panel.hidden);
  if (!panel.hidden) listThreads();
  schedule(drawLine);
};

// MARK: samples

const samples = DATA.samples ? zooming("sampled", "Width: samples, which are CPU time. Colour: module. ") : null;
/// Draws the samples of the time that is selected in the timeline, and of the threads that are shown there.
function drawSamples() {
  const { selected, hidden } = line, shownNow = visible().join();
  if (samples.range !== selected || samples.shown !== shownNow || !samples.graph.tree) {
    Object.assign(samples, { range: selected, shown: shownNow });
    offerThreads($("samples-root"), samples, sampledTree(DATA.samples, selected, lane => lane < 0 ? !hidden.size : !hidden.has(lane), functions));
  }
  const { period, step } = DATA.samples, of = samples.graph.tree, sum = of.tops.reduce((part, top) => part + of.total[top], 0);
  $("samples-of").textContent = [
    plural(sum, "sample") + (period === null ? "" : `, one for each ${time(period)} of CPU time`),
    selected ? `${moment(selected.from, (selected.to - selected.from) / 1000)} to ${moment(selected.to, (selected.to - selected.from) / 1000)}` : "",
    selected && step ? `in steps of ${time(step)}` : "",
    hidden.size ? `without ${plural(hidden.size, "hidden thread")}` : "",
  ].filter(part => part).join("; ");
  $("samples-all").hidden = !selected;
  samples.draw();
}
$("samples-all").onclick = () => { select(null); drawSamples(); };

// MARK: table

const percentiles = ["p50", "p99"].map(key => [key, key, (value, row) => percentileText(row, key, time)]);
const columns = tree.isComparison
  ? [["name", "Function"], ["before", "Self before", time], ["self", "Self after", time], ["change", "Change", (d, row) => change(d) + (row.noise ? " (noise)" : "")], ["callsBefore", "Calls before", many], ["calls", "Calls after", many]]
  : [["name", "Function"], ...argumentColumns(table.rows, passed), ["share", "Self", meter], ["self", "Self time", time], ...stateColumns(table.rows, "self", "Self", known), ["total", "Total", time],
    ...stateColumns(table.rows, "total", "Total", known), ["calls", "Calls", count], ["average", "Average", ofCalls], ...percentiles, ["maximum", "Longest", known]];
/// The head of a column, with what its figures mean where the title does not say it.
function heading(key, title, meaning) {
  const th = element("th", classOf(key) || (meaning ? "state" : ""), title);
  if (meaning) th.title = meaning;
  return th;
}
function count(n) { return n ? many(n) : ""; }
function passed(text) { return text; }
function classOf(key) { return key === "name" || key === "passed" ? key : ""; }
function known(value) { return value === null ? "" : time(value); }
function ofCalls(value, row) { return row.calls ? time(value) : ""; }
table.most = Math.max(...table.rows.slice(0, 100000).map(row => row.share), 1e-9);
function meter(value) {
  const box = element("span", "meter"), bar = element("i");
  bar.style.width = (value / table.most * 100).toFixed(1) + "%";
  box.append(bar);
  return box;
}
/// Columns of states make a table wide.
const tableClass = shown => shown.some(([, , , meaning]) => meaning) ? "wide" : "";
const MOST = 1000;
function drawTable() {
  const head = $("table-head"), body = $("table-body");
  head.textContent = body.textContent = "";
  body.parentElement.className = tableClass(columns);
  for (const [key, title, , meaning] of columns) {
    const th = heading(key, title, meaning);
    th.tabIndex = 0;
    th.setAttribute("role", "button");
    if (table.key === key) th.setAttribute("aria-sort", table.down ? "descending" : "ascending");
    th.onclick = () => { if (table.key === key) table.down = !table.down; else { table.key = key; table.down = key !== "name"; } drawTable(); };
    th.onkeydown = event => { if (event.key === "Enter") th.onclick(); };
    head.append(th);
  }
  let rows = table.rows;
  if (pattern) rows = rows.filter(row => matches(pattern, row.name, row.module) || pattern.test(row.passed));
  rows = sorted(rows, table.key, table.down);
  const fragment = document.createDocumentFragment();
  for (const row of rows.slice(0, MOST)) {
    const tr = element("tr");
    for (const [key, , format] of columns) {
      const td = element("td");
      if (key === "name") {
        td.className = "name";
        td.title = row.name + "  " + row.module;
        td.append(row.name, element("span", "", "  " + row.module));
      } else {
        const shown = format(row[key], row);
        td.append(shown);
        td.className = classOf(key);
        if (key === "passed") td.title = row.passed;
        if (key === "share") td.append(" " + share(row[key], 1));
      }
      tr.append(td);
    }
    tr.onclick = () => {
      for (const other of body.children) other.classList.toggle("chosen", other === tr);
      describe($("table-details"), row.fn, row.name, row.module);
    };
    fragment.append(tr);
  }
  body.append(fragment);
  $("table-count").textContent = `${plural(rows.length, "function")}` + (rows.length > MOST ? `, the first ${many(MOST)} shown` : "") + (pattern ? " match" : "")
    + (tree.isComparison ? "" : ". Click one for its details, its callers and callees.");
}

// MARK: pages, keys, theme

const pages = { flame: flame.draw, line: drawLine, table: drawTable, around: drawAround, samples: drawSamples };
const isThere = { flame: true, line: !!lanes, table: true, around: !tree.isComparison, samples: samples !== null };
const graphs = { flame, samples };
function page(name) {
  if (!isThere[name]) return;
  current = name;
  for (const key of Object.keys(pages)) {
    $("page-" + key).classList.toggle("on", key === name);
    $("tab-" + key).setAttribute("aria-selected", key === name);
  }
  showTip(null, "");
  pages[name]();
  showMatches();
}
const redraw = () => schedule(pages[current]);
for (const key of Object.keys(pages)) {
  $("tab-" + key).onclick = () => page(key);
  $("tab-" + key).hidden = !isThere[key];
}
$("search").oninput = event => search(event.target.value);
/// Draws the legend of the states that occur.
function drawLegend() {
  const sums = hasStates ? lanes.filter(lane => lane.states).map(lane => stateSums(lane.states, everything)) : [], colours = stateColours(isDark());
  const seen = SCHEMA.stateNames.map((name, state) => ({ name, state })).filter(({ state }) => sums.some(one => one[state] > 0));
  $("line-legend").hidden = !seen.length;
  $("line-legend").replaceChildren(...seen.map(({ name, state }) => {
    const item = element("span", "", name), swatch = element("i");
    swatch.style.background = colours[state];
    item.prepend(swatch);
    return item;
  }));
}
function theme(name) {
  root.dataset.theme = name;
  drawLegend();
  redraw();
}
$("theme").onclick = () => theme(isDark() ? "light" : "dark");
$("help").onclick = () => $("keys").showModal();
addEventListener("keydown", event => {
  const graph = graphs[current];
  const isSearch = event.target === $("search"), isTyping = event.target.tagName === "INPUT" && event.target.type !== "checkbox";
  if (event.key === "Escape") {
    if ($("keys").open) return;
    if (isTyping && !isSearch) event.target.blur();
    else if (isSearch || pattern) { $("search").value = ""; $("search").blur(); search(""); }
    else if (current === "line") { if (line.selected || line.chosen) select(null); else showAll(); }
    else if (graph) graph.zoomTo(graph.graph.zoom >= 0 ? graph.graph.tree.parent[graph.graph.zoom] : -1);
    return;
  }
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
  switch (event.key) {
  case "/": event.preventDefault(); $("search").focus(); $("search").select(); break;
  case "1": page("flame"); break;
  case "2": page("line"); break;
  case "3": page("table"); break;
  case "4": page("around"); break;
  case "5": page("samples"); break;
  case "h": if (current === "line") $("threads-button").click(); break;
  case "v": if (current === "line") select({ from: line.from, to: line.to }); break;
  case "t": $("theme").click(); break;
  case "?": $("keys").showModal(); break;
  case "0": if (current === "line") showAll(); else if (graph) graph.zoomTo(-1); break;
  case "ArrowUp": case "ArrowDown": case "ArrowLeft": case "ArrowRight":
    if (graph) { event.preventDefault(); graph.move(event.key); }
    if (current === "line" && event.key === "ArrowLeft") show(moved(line, -0.15));
    if (current === "line" && event.key === "ArrowRight") show(moved(line, 0.15));
    break;
  case "Enter": if (graph && graph.graph.chosen >= 0) graph.zoomTo(graph.graph.chosen); break;
  case "+": case "=": case "w": if (current === "line") show(widened(line, -0.15)); break;
  case "-": case "s": if (current === "line") show(widened(line, 0.2)); break;
  }
});
addEventListener("resize", redraw);

$("title").textContent = $("title").title = DATA.title;
$("facts").textContent = DATA.facts;
$("facts").title = DATA.facts;
document.title = DATA.title + " — tracer";
for (const [id, texts, before] of [["losses", DATA.losses, "Not in this trace: "], ["notes", DATA.notes, tree.isComparison ? "" : "Not shown: "]]) {
  $(id).hidden = !texts.length;
  $(id).textContent = texts.length ? before + texts.join(" · ") : "";
  $(id).title = texts.join("\n");
}
$("keys-samples").hidden = !isThere.samples;
root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
drawLegend();
const asked = { "#timeline": "line", "#table": "table", "#around": "around", "#samples": "samples" }[location.hash];
page(isThere[asked] ? asked : "flame");
root.dataset.ready = "yes"; // for tests
