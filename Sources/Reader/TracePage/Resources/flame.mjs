// A flame graph on a canvas: callers above what they call, or upside down.
import { ROW, drawText, sized } from "./canvas.mjs";
import { nodeAt } from "./tree.mjs";

export class FlameGraph {
  /// - box: the element that scrolls; - paint: {fill, isPlain, isHit, ink}: colours of a tree's nodes
  /// - isInverted: callers grow up, and the lowest level, which is the function itself, is not shown
  constructor(canvas, box, paint, isInverted = false) {
    Object.assign(this, { canvas, box, paint, isInverted, tree: null, zoom: -1, chosen: -1, tops: [], frames: [], levels: [], deepest: 0 });
  }

  show(tree, tops) { Object.assign(this, { tree, tops, zoom: -1, chosen: -1 }); }
  y(level) { return (this.isInverted ? this.deepest - level : level) * ROW; }

  draw(isFilling = true) {
    const { tree, paint } = this, width = Math.max(this.box.clientWidth, 200);
    const above = this.zoom >= 0 ? tree.callers(this.zoom) : [];
    Object.assign(this, tree.layout(this.zoom >= 0 ? [this.zoom] : this.tops, above, width));
    const rows = this.isInverted ? this.deepest : this.deepest + 1;
    const { context, cut, letter } = sized(this.canvas, width, Math.max(rows * ROW + (this.isInverted ? 0 : 4), isFilling ? this.box.clientHeight - 4 : 1));
    this.cutLevels = Math.ceil(cut / ROW);
    const ancestors = new Set(above), hit = paint.ink("--hit"), text = paint.ink("--ink"), onFrame = paint.ink("--on-frame");
    for (const { x, width: w, level, node: i } of this.frames) {
      if (this.isInverted && level === 0) continue;
      const y = this.y(level), isHit = paint.isHit(tree, i);
      context.globalAlpha = ancestors.has(i) ? 0.45 : paint.isSearch() && !isHit ? 0.35 : 1;
      context.fillStyle = isHit ? hit : paint.fill(tree, i);
      context.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.4), ROW - 1);
      if (i === this.chosen) {
        context.strokeStyle = text;
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, Math.max(w - 3, 1), ROW - 3);
      }
      if (w > 22) {
        context.fillStyle = paint.isDark() && !isHit && (tree.isComparison || paint.isPlain(tree, i)) ? text : onFrame;
        drawText(context, letter, tree.name(i), x, y + ROW / 2, w);
      }
    }
    context.globalAlpha = 1;
    return above;
  }

  nodeAt(event) {
    const area = this.canvas.getBoundingClientRect(), row = Math.floor((event.clientY - area.top) / ROW);
    const level = this.isInverted ? this.deepest - row : row;
    return this.isInverted && level < 1 ? -1 : nodeAt(this.levels[level], event.clientX - area.left);
  }
}
