// The trend as one HTML file: for each command a chart of the launch and one of each stage, drawn as SVG here; a few lines
// of script show what is under the pointer, in all charts of the command at once. Nothing comes from elsewhere.
import Foundation
import TraceAnalysis

public struct HistoryChart {
    private let trends: [HistoryTrend]
    private static let left = 58.0, right = 14.0, top = 20.0, bottom = 24.0
    /// A stage that never takes more of its launch has no chart.
    private static let leastShare = 0.01

    public init(_ all: [History.Series]) { trends = HistoryTrend.all(all) }

    public var html: String {
        """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><title>Start-up history</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <style>\(Self.style)</style></head><body>
        <h1>Start-up history</h1>
        <p class="soft">The line is the median of each series of launches, the band goes up to the 95th percentile. A ring marks a change \
        that is larger than the spread: <b class="up">slower</b>, <b class="down">faster</b>. Point at a chart, or use ← and →.</p>
        \(trends.map(section).joined())<div id="tip" role="status" hidden></div>
        <script>\(Self.script)</script></body></html>

        """
    }

    private func section(_ trend: HistoryTrend) -> String {
        let latest = trend.series.last!.entry, names = trend.stageNames
        var body = "<section><h2>\(escaped(trend.program))</h2>\n<p class=\"soft\"><code>\(escaped(trend.command))</code>"
        body += trend.settings.isEmpty ? "" : " with <code>\(escaped(trend.settings))</code>"
        body += " · \(counted(UInt64(trend.series.count), "series", "series")), the latest \(HistoryExport.timestamp(latest.time)) UTC on \(escaped(latest.host))</p>\n<div class=\"charts\">"
        var short: [String] = []
        for name in names {
            let matters = name == Baseline.wholeLaunch || trend.series.contains { series in
                let whole = series.stages.first?.p50 ?? 0
                return series.stages.contains { $0.name == name && $0.p50 >= whole * Self.leastShare }
            }
            if matters { body += chart(name, trend) } else { short.append(name) }
        }
        body += "</div>"
        if !short.isEmpty { body += "<p class=\"soft\">Below 1 % of the launch: \(escaped(short.joined(separator: ", "))).</p>" }
        return body + "</section>\n"
    }

    private func chart(_ name: String, _ trend: HistoryTrend) -> String {
        let points = trend.points(name), isWhole = name == Baseline.wholeLaunch
        guard let last = points.last else { return "" }
        let size = isWhole ? (width: 900.0, height: 210.0) : (width: 436.0, height: 150.0)
        let scale = Axis(highest: points.map { max($0.stage.p95, $0.stage.p50) }.max() ?? 0)
        let inner = (width: size.width - Self.left - Self.right, height: size.height - Self.top - Self.bottom)
        let count = trend.series.count
        func x(_ index: Int) -> Double { Self.left + (count == 1 ? inner.width / 2 : inner.width * Double(index) / Double(count - 1)) }
        func y(_ value: Double) -> Double { Self.top + inner.height * (1 - value / scale.peak) }
        func place(_ x: Double, _ y: Double) -> String { "\(rounded(x)),\(rounded(y))" }

        let change = last.change.map { "<b\(last.isClear ? $0 > 0 ? " class=\"up\"" : " class=\"down\"" : "")>\(signedPercent($0))</b>\(isWhole ? " against the series before" : "")" } ?? ""
        var svg = "<figure\(isWhole ? " class=\"whole\"" : "")><figcaption>\(escaped(name)) <span>\(Axis.text(last.stage.p50)) \(change)</span></figcaption>"
        svg += "<svg viewBox=\"0 0 \(Int(size.width)) \(Int(size.height))\" role=\"img\" tabindex=\"0\" aria-label=\"\(escaped("\(name): \(Axis.text(last.stage.p50))"))\">"
        for value in scale.ticks {
            svg += "<line class=\"grid\" x1=\"\(Self.left)\" x2=\"\(size.width - Self.right)\" y1=\"\(rounded(y(value)))\" y2=\"\(rounded(y(value)))\"/>"
            svg += "<text x=\"\(Self.left - 8)\" y=\"\(rounded(y(value) + 4))\" text-anchor=\"end\">\(scale.label(value))</text>"
        }
        let upper = points.map { place(x($0.index), y($0.stage.p95)) }, lower = points.reversed().map { place(x($0.index), y($0.stage.p50)) }
        svg += "<polygon class=\"band\" points=\"\((upper + lower).joined(separator: " "))\"/>"
        svg += "<polyline class=\"trend\" points=\"\(points.map { place(x($0.index), y($0.stage.p50)) }.joined(separator: " "))\"/>"
        svg += "<line class=\"cursor\" y1=\"\(Self.top)\" y2=\"\(size.height - Self.bottom)\" hidden=\"\"/>"
        for point in points {
            let clear = point.isClear ? (point.change ?? 0) > 0 ? " up" : " down" : ""
            svg += "<circle class=\"dot\(clear)\" data-i=\"\(point.index)\" data-tip=\"\(escaped(tip(name, point)))\" cx=\"\(rounded(x(point.index)))\" cy=\"\(rounded(y(point.stage.p50)))\" r=\"\(count > 60 && clear.isEmpty ? 2 : 3.5)\"/>"
        }
        for (index, anchor) in [(0, "start"), (count - 1, "end")] where index == 0 || count > 1 {
            let entry = trend.series[index].entry
            let label = String(HistoryExport.timestamp(entry.time).prefix(10)) + (entry.commit.isEmpty ? "" : " · \(entry.commit.prefix(8))")
            svg += "<text x=\"\(rounded(x(index)))\" y=\"\(size.height - 6)\" text-anchor=\"\(count == 1 ? "middle" : anchor)\">\(escaped(label))</text>"
        }
        return svg + "</svg></figure>\n"
    }

    private func tip(_ name: String, _ point: HistoryTrend.Point) -> String {
        let entry = point.entry
        var lines = ["\(name): \(Axis.text(point.stage.p50))" + (point.change.map { " (\(signedPercent($0)))" } ?? ""),
                     "p90 \(Axis.text(point.stage.p90)), p95 \(Axis.text(point.stage.p95)), spread \(Axis.text(point.stage.spread))",
                     "\(HistoryExport.timestamp(entry.time)) UTC, \(entry.host)"]
        if !entry.commit.isEmpty { lines.append("commit \(entry.commit)") }
        lines.append("\(counted(UInt64(entry.runs), "launch", "launches"))" + (entry.disturbed > 0 ? ", \(entry.disturbed) disturbed and made again" : ""))
        return lines.joined(separator: "\n")
    }

    private func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }
    private func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;").replacing("\"", with: "&quot;").replacing("\n", with: "&#10;")
    }

    private static let style = """
        :root { color-scheme: light dark; --ink: #1d2433; --soft: #5b6577; --line: #2563eb; --band: #2563eb26; --grid: #e4e7ec; --paper: #fff; --up: #c2410c; --down: #047857; }
        @media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #7aa7ff; --band: #7aa7ff33; --grid: #2b3242; --paper: #12161f; --up: #fb923c; --down: #34d399; } }
        body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 920px; padding: 0 1rem; }
        h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.2rem; margin: 2.2rem 0 0; } .soft { color: var(--soft); font-size: .9rem; margin: .2rem 0 .8rem; }
        .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(380px, 100%), 1fr)); gap: 1rem 1.6rem; }
        figure { margin: 0; } .whole { grid-column: 1 / -1; } figcaption { font-weight: 600; } figcaption span { color: var(--soft); font-weight: 400; font-size: .87rem; }
        .up { color: var(--up); } .down { color: var(--down); }
        svg { display: block; width: 100%; height: auto; touch-action: pan-y; } svg:focus-visible { outline: 2px solid var(--line); outline-offset: 2px; }
        svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
        @media (max-width: 560px) { .whole svg text { font-size: 20px; } }
        .grid { stroke: var(--grid); } .trend { fill: none; stroke: var(--line); stroke-width: 1.8; stroke-linejoin: round; } .band { fill: var(--band); }
        .cursor { stroke: var(--soft); stroke-dasharray: 3 3; } .cursor[hidden] { display: none; }
        .dot { fill: var(--line); } .dot.up, .dot.down { fill: var(--paper); stroke-width: 2.2; r: 4.5px; } .dot.up { stroke: var(--up); } .dot.down { stroke: var(--down); }
        .dot.on { fill: var(--ink); r: 5.5px; }
        #tip { position: fixed; z-index: 1; max-width: 22rem; padding: .5rem .7rem; border-radius: 6px; background: var(--ink); color: var(--paper); font-size: .82rem; white-space: pre-line; pointer-events: none; }
        #tip[hidden] { display: none; } #tip::first-line { font-weight: 600; }
        """

    private static let script = """
        const tip = document.getElementById('tip');
        function show(svg, index, x, y) {
          const section = svg.closest('section');
          hide();
          for (const other of section.querySelectorAll('svg')) {
            const dot = other.querySelector(`[data-i="${index}"]`);
            if (!dot) continue;
            dot.classList.add('on');
            const cursor = other.querySelector('.cursor');
            cursor.removeAttribute('hidden');
            cursor.setAttribute('x1', dot.getAttribute('cx'));
            cursor.setAttribute('x2', dot.getAttribute('cx'));
          }
          const dot = svg.querySelector(`[data-i="${index}"]`);
          if (!dot) return;
          const box = dot.getBoundingClientRect();
          tip.textContent = dot.dataset.tip;
          tip.hidden = false;
          const wide = document.documentElement.clientWidth, high = document.documentElement.clientHeight;
          tip.style.left = Math.max(4, Math.min((x ?? box.right) + 14, wide - tip.offsetWidth - 4)) + 'px';
          const below = (y ?? box.bottom) + 14;
          tip.style.top = (below + tip.offsetHeight > high ? below - tip.offsetHeight - 28 : below) + 'px';
        }
        function hide() {
          tip.hidden = true;
          document.querySelectorAll('.dot.on').forEach(dot => dot.classList.remove('on'));
          document.querySelectorAll('.cursor').forEach(cursor => cursor.setAttribute('hidden', ''));
        }
        for (const svg of document.querySelectorAll('svg')) {
          const dots = [...svg.querySelectorAll('.dot')];
          let place = dots.length - 1;
          svg.addEventListener('pointermove', event => {
            const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
            const away = dot => Math.abs(dot.getAttribute('cx') - at);
            place = dots.reduce((best, dot, i) => away(dot) < away(dots[best]) ? i : best, 0);
            show(svg, dots[place].dataset.i, event.clientX, event.clientY);
          });
          svg.addEventListener('pointerleave', hide);
          svg.addEventListener('blur', hide);
          svg.addEventListener('keydown', event => {
            if (event.key === 'Escape') return hide();
            const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
            if (!step) return;
            event.preventDefault();
            place = Math.max(0, Math.min(dots.length - 1, place + (tip.hidden ? 0 : step)));
            show(svg, dots[place].dataset.i);
          });
        }
        document.documentElement.dataset.ready = 'yes';
        """
}

/// A scale with round numbers, from 0.
private struct Axis {
    let peak: Double
    let ticks: [Double]
    private let unit: (name: String, size: Double)

    init(highest: Double) {
        let highest = max(highest, 100)
        // Three or four steps of 1, 2 or 5 times a power of ten.
        let power = pow(10, floor(log10(highest / 4)))
        let step = [1, 2, 5, 10].map { $0 * power }.first { highest / $0 <= 4 } ?? power * 10
        let count = Int((highest / step).rounded(.up))
        peak = Double(count) * step
        ticks = (0...count).map { Double($0) * step }
        unit = Axis.unit(peak)
    }

    private static func unit(_ value: Double) -> (name: String, size: Double) {
        value >= 1e9 ? ("s", 1e9) : value >= 1e6 ? ("ms", 1e6) : ("µs", 1e3)
    }

    func label(_ value: Double) -> String {
        value == 0 ? "0" : String(format: "%g ", value / unit.size) + unit.name
    }

    /// Three digits.
    static func text(_ value: Double) -> String {
        let (name, size) = unit(value), number = value / size
        return String(format: number >= 100 ? "%.0f " : number >= 10 ? "%.1f " : "%.2f ", number) + name
    }
}
