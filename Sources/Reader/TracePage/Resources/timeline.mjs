// The part of a thread's time that is in view, and where. A range is {from, to}, in nanoseconds.
import { SCHEMA } from "./schema.mjs";

/// The range within the whole, not narrower than can be distinguished.
export function clamped(from, to, whole) {
  const least = Math.max(whole / 1e7, 20), span = Math.min(Math.max(to - from, least), whole);
  const start = Math.min(Math.max((from + to) / 2 - span / 2, 0), whole - span);
  return { from: start, to: start + span };
}

/// Wider by a factor; what is at `at` stays where it is.
export const zoomed = ({ from, to }, at, factor) => ({ from: at - (at - from) * factor, to: at + (to - at) * factor });
/// Later by a part of its length.
export const moved = ({ from, to }, part) => ({ from: from + (to - from) * part, to: to + (to - from) * part });
/// With a part of its length more at both ends.
export const widened = ({ from, to }, part) => ({ from: from - (to - from) * part, to: to + (to - from) * part });

/// The agent's start, and no stage of the program's.
export const isTracers = stage => stage.tracer === stage.length;
/// A stage's name and the program's time in it; beside that the tracer's own.
export const stageText = (stage, time) =>
  `${stage.name}\n${time(isTracers(stage) ? stage.length : stage.length - stage.tracer)}` + (stage.tracer && !isTracers(stage) ? `\nbesides ${time(stage.tracer)} of the tracer's own` : "");

/// Round moments, about a hundred pixels apart.
export function ticks({ from, to }, width) {
  const rough = (to - from) / (width / 110), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough);
  const moments = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) moments.push(t);
  return moments;
}

/// Pixels of what lies in view, nil for what does not; what reaches beyond it ends a little outside.
export function pixels(start, length, { from, to }, width) {
  const x = t => (t - from) / (to - from) * width;
  const left = x(start), right = x(start + length);
  return right < 0 || left > width ? null : { x: Math.max(left, -2), end: Math.min(right, width + 2) };
}

export const position = names => Object.fromEntries(names.map((name, index) => [name, index]));
export const SLICE = position(SCHEMA.slice);
export const SAID = position(SCHEMA.said);
export const BAND_OF = position(SCHEMA.band);

/// Arguments and results by the indices of their slices.
export function textsOf(said) {
  const texts = new Map();
  for (let i = 0; i < said.length; i += SCHEMA.said.length) texts.set(said[i + SAID.slice], said[i + SAID.text]);
  return texts;
}

/// Calls `draw` with {index, start, length, fn, level}, x and width of the calls in view. They stand in the order of their start; those a
/// pixel wide or less are drawn once a pixel.
export function eachSlice(slices, range, width, draw) {
  const { from, to } = range, x = t => (t - from) / (to - from) * width, last = [];
  for (let i = 0; i < slices.length; i += SCHEMA.slice.length) {
    const start = slices[i + SLICE.start], length = slices[i + SLICE.length], level = slices[i + SLICE.level];
    if (start > to || start + length < from) continue;
    const left = Math.max(x(start), -2), w = Math.min(x(start + length), width + 2) - left;
    if (w < 1 && last[level] !== undefined && left - last[level] < 1) continue;
    last[level] = left;
    draw({ index: i / SCHEMA.slice.length, start, length, fn: slices[i + SLICE.fn], level }, left, w);
  }
}

/// Calls `draw` with {level, share}, x and width of each band in view.
export function eachBand(bands, range, width, draw) {
  const { from, to } = range, x = t => (t - from) / (to - from) * width;
  for (let i = 0; i < bands.length; i += SCHEMA.band.length) {
    const start = bands[i + BAND_OF.start], left = x(start), right = x(start + bands[i + BAND_OF.length]);
    if (right < 0 || left > width) continue;
    draw({ level: bands[i + BAND_OF.level], share: bands[i + BAND_OF.share] }, left, right - left);
  }
}

/// Returns the range to ask for in order to draw one: with as much again on both sides, in whole nanoseconds. null where what was
/// loaded has it, or nothing in view was omitted.
/// - loaded: {from, to} of what was asked for before, or null
export function missing(range, lanes, loaded, whole) {
  const span = range.to - range.from;
  const isLoaded = loaded && loaded.from <= range.from && loaded.to >= range.to && span * 12 >= loaded.to - loaded.from;
  if (isLoaded || span * 3 >= whole) return null;
  const isUndrawn = lanes.some(lane => {
    let isSome = false;
    eachBand(lane.dense, range, 1000, (band, x, w) => { isSome = isSome || (x < 1000 && x + w > 0); });
    return isSome;
  });
  return isUndrawn ? { from: Math.max(Math.floor(range.from - span), 0), to: Math.ceil(range.to + span) } : null;
}
