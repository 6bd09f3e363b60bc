// Drawing on a canvas that is as sharp as the screen.

/// Rows of frames. Browsers give up on canvases that are too high.
export const ROW = 20;
const highest = 30000;

/// A context for `width` by `height` pixels of the page, and how many of them are not there since they are too many.
export function sized(canvas, width, height) {
  const ratio = globalThis.devicePixelRatio || 1, most = Math.floor(highest / ratio), cut = Math.max(height - most, 0);
  canvas.style.width = width + "px";
  canvas.style.height = height - cut + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round((height - cut) * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = "12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  return { context, cut, letter: context.measureText("abcdefghijklmnopqrstuvwxyz").width / 26 + 0.4 };
}

/// A text in a frame, as much of it as there is space for.
export function drawText(context, letter, text, x, y, width) {
  if (width < 22) return;
  const capacity = Math.floor((width - 8) / letter);
  if (capacity < 2) return;
  context.fillText(text.length <= capacity ? text : text.slice(0, Math.max(capacity - 1, 1)) + "…", x + 4, y);
}
