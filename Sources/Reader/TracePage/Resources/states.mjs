// The states of a thread: what of them lies in view, what they sum up to, what is said of one.
import { SCHEMA } from "./schema.mjs";
import { many, moment, share, time } from "./numbers.mjs";
import { position } from "./timeline.mjs";

const SPAN = position(SCHEMA.span), SHARE_OF = position(SCHEMA.stateBand);

/// Calls `call` with start, length, state, share and wait of each span, whose share is 1, and of each band, which has no wait.
function eachState({ spans, bands }, call) {
  for (let i = 0; i < spans.length; i += SCHEMA.span.length) {
    call(spans[i + SPAN.start], spans[i + SPAN.length], spans[i + SPAN.state], 1, spans[i + SPAN.wait]);
  }
  for (let i = 0; i < bands.length; i += SCHEMA.stateBand.length) {
    call(bands[i + SHARE_OF.start], bands[i + SHARE_OF.length], bands[i + SHARE_OF.state], bands[i + SHARE_OF.share]);
  }
}

/// How long a thread was in each state, in the order of `SCHEMA.stateNames`.
export function stateSums(states, { from, to }) {
  const sums = SCHEMA.stateNames.map(() => 0);
  eachState(states, (start, length, state, part) => {
    sums[state] += Math.max(Math.min(start + length, to) - Math.max(start, from), 0) * part;
  });
  return sums;
}

/// "running 61.2 %, lock 9.10 %", of several threads: the longest first, and none that is next to nothing.
export function sumText(all) {
  const sums = SCHEMA.stateNames.map((name, state) => ({ name, sum: all.reduce((sum, one) => sum + one[state], 0) }));
  const whole = sums.reduce((sum, one) => sum + one.sum, 0);
  return sums.filter(one => one.sum > whole / 20000).sort((a, b) => b.sum - a.sum).map(({ name, sum }) => `${name} ${share(sum, whole)}`).join(", ");
}

const least = 2; // pixels of a span that is drawn by itself

/// Returns what is drawn of a range: spans as {start, length, state, wait, x, width}; and of pixels that hold shorter ones how much of
/// each state.
export function stateLane(states, range, width) {
  const scale = width / (range.to - range.from), spans = [], columns = [];
  eachState(states, (start, length, state, part, wait) => {
    const x = Math.max((start - range.from) * scale, 0), end = Math.min((start + length - range.from) * scale, width);
    if (end < x || (end === x && length > 0) || x >= width) return;
    if (wait !== undefined && length * scale >= least) { spans.push({ start, length, state, wait, x, width: end - x }); return; }
    for (let n = Math.floor(x); n < end; n++) {
      const column = columns[n] ||= SCHEMA.stateNames.map(() => 0);
      column[state] += (Math.min(n + 1, end) - Math.max(n, x)) * part;
    }
  });
  return { spans, columns };
}

/// The span at a pixel, or the shares there; undefined for nothing.
export const stateAt = ({ spans, columns }, x) => spans.find(span => x >= span.x && x < span.x + span.width) || columns[Math.floor(x)];

/// A thread that does not run is off-CPU, as far as that is known.
const isOff = state => !["running", "unknown"].includes(SCHEMA.stateNames[state]);

/// Returns a function of two moments, which says how long of the time between them the thread was waiting, and how long runnable:
/// of a band, the states that it has are taken for spread evenly.
export function offCPU(states) {
  const changes = [], moments = [], sums = [];
  eachState(states, (start, length, state, part) => {
    if (!isOff(state) || !(length > 0)) return;
    const kind = SCHEMA.stateNames[state] === "runnable" ? 1 : 0;
    changes.push([start, kind, part], [start + length, kind, -part]);
  });
  changes.sort((a, b) => a[0] - b[0]);
  const sum = [0, 0], rate = [0, 0];
  let before = 0;
  for (const [at, kind, part] of changes) {
    for (const n of [0, 1]) sum[n] += rate[n] * (at - before);
    before = at;
    rate[kind] += part;
    moments.push(at);
    sums.push([...sum, ...rate]);
  }
  const until = at => {
    let low = 0, high = moments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (moments[middle] <= at) low = middle + 1; else high = middle;
    }
    if (!low) return [0, 0];
    const [waiting, runnable, ofWaiting, ofRunnable] = sums[low - 1], since = at - moments[low - 1];
    return [waiting + ofWaiting * since, runnable + ofRunnable * since];
  };
  return (from, to) => {
    const begin = until(from), end = until(to);
    return [end[0] - begin[0], end[1] - begin[1]];
  };
}

/// True if some of what is known of a range are shares, of states too short to be in the page one by one.
export function hasShares({ bands }, { from, to }) {
  for (let i = 0; i < bands.length; i += SCHEMA.stateBand.length) {
    const start = bands[i + SHARE_OF.start];
    if (bands[i + SHARE_OF.share] < 1 && start < to && start + bands[i + SHARE_OF.length] > from) return true;
  }
  return false;
}

/// Returns the lines that hovering over a span shows: the texts are those of `tracer waits`.
export function spanLines({ start, length, state, wait }, waits, isServed) {
  const lines = [`${SCHEMA.stateNames[state]} ${time(length)} at ${moment(start, length / 100)}`];
  if (wait >= 0) {
    const { what, details, stretches, length: together } = waits[wait];
    if (stretches > 1) lines.push(`one of ${many(stretches)} stretches, ${time(together)} together`);
    return [...lines, what, ...details].filter(line => line !== "-");
  }
  return isOff(state) ? [...lines, isServed ? "zoom in to load why" : "one of the short waits whose reason is not in this page: tracer waits has it"] : lines;
}

/// And of a pixel with several.
export const columnText = column => "short states: " + sumText([column]);
