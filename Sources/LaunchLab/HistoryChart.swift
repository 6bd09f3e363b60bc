// The trend as one HTML file: a chart for each program and each of its stages, drawn as SVG, with nothing from elsewhere.
import Foundation
import TraceAnalysis

public struct HistoryChart {
    private let all: [History.Series]
    private static let width = 860.0, height = 180.0, left = 64.0, right = 16.0, top = 12.0, bottom = 30.0

    public init(_ all: [History.Series]) { self.all = all }

    public var html: String {
        var body = ""
        for (program, series) in Dictionary(grouping: all, by: \.entry.program).sorted(by: { $0.key < $1.key }) {
            body += "<section><h2>\(escaped(program))</h2>\n"
            body += "<p class=\"what\">\(series.count) series of launches, the latest \(HistoryExport.timestamp(series.last!.entry.time)) UTC: <code>\(escaped(series.last!.entry.command))</code></p>\n"
            var names: [String] = []
            for stage in series.flatMap(\.stages).sorted(by: { $0.position < $1.position }) where !names.contains(stage.name) { names.append(stage.name) }
            for name in names { body += chart(name, series) }
            body += "</section>\n"
        }
        return """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><title>Start-up history</title>
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <style>
            :root { color-scheme: light dark; --ink: #1d2433; --soft: #667085; --line: #2563eb; --band: #2563eb22; --grid: #e4e7ec; --paper: #fff; }
            @media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #7aa7ff; --band: #7aa7ff2a; --grid: #2b3242; --paper: #12161f; } }
            body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 900px; padding: 0 1rem; }
            h1 { font-size: 1.5rem; } h2 { margin: 2rem 0 0; } h3 { font-size: 1rem; margin: 1.4rem 0 .2rem; }
            h3 span, .what, figcaption { color: var(--soft); font-weight: 400; font-size: .87rem; }
            svg { width: 100%; height: auto; } svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
            .grid { stroke: var(--grid); } .trend { fill: none; stroke: var(--line); stroke-width: 2; } .band { fill: var(--band); }
            circle { fill: var(--line); } circle:hover { r: 6; }
            </style></head><body>
            <h1>Start-up history</h1>
            <p class="what">The line is the median of each series, the band goes up to its 95th percentile. Point at a dot for the details.</p>
            \(body)</body></html>

            """
    }

    private func chart(_ name: String, _ series: [History.Series]) -> String {
        let points = series.enumerated().compactMap { index, series in
            series.stages.first { $0.name == name }.map { (index: index, stage: $0, entry: series.entry) }
        }
        guard let highest = points.map({ max($0.stage.p95, $0.stage.p50) }).max(), let last = points.last else { return "" }
        let peak = max(highest * 1.08, 1000)
        let inner = (width: Self.width - Self.left - Self.right, height: Self.height - Self.top - Self.bottom)
        func x(_ index: Int) -> Double { Self.left + (series.count == 1 ? inner.width / 2 : inner.width * Double(index) / Double(series.count - 1)) }
        func y(_ value: Double) -> Double { Self.top + inner.height * (1 - value / peak) }
        func place(_ x: Double, _ y: Double) -> String { "\(rounded(x)),\(rounded(y))" }

        var svg = "<figure style=\"margin:0\"><h3>\(escaped(name)) <span>now \(readable(Nanoseconds(UInt64(max(last.stage.p50, 0)))))\(change(points.map(\.stage.p50)))</span></h3>"
        svg += "<svg viewBox=\"0 0 \(Int(Self.width)) \(Int(Self.height))\" role=\"img\" aria-label=\"\(escaped(name))\">"
        for share in [0.0, 0.5, 1.0] {
            let value = peak / 1.08 * share
            svg += "<line class=\"grid\" x1=\"\(Self.left)\" x2=\"\(Self.width - Self.right)\" y1=\"\(rounded(y(value)))\" y2=\"\(rounded(y(value)))\"/>"
            svg += "<text x=\"\(Self.left - 6)\" y=\"\(rounded(y(value) + 4))\" text-anchor=\"end\">\(short(value))</text>"
        }
        let upper = points.map { place(x($0.index), y($0.stage.p95)) }, lower = points.reversed().map { place(x($0.index), y($0.stage.p50)) }
        svg += "<polygon class=\"band\" points=\"\((upper + lower).joined(separator: " "))\"/>"
        svg += "<polyline class=\"trend\" points=\"\(points.map { place(x($0.index), y($0.stage.p50)) }.joined(separator: " "))\"/>"
        for point in points {
            let entry = point.entry
            let text = "\(HistoryExport.timestamp(entry.time)) UTC\n\(name): \(short(point.stage.p50)), p95 \(short(point.stage.p95))\n\(entry.commit.isEmpty ? "no commit" : "commit \(entry.commit)"), \(entry.runs) launches\(entry.settings.isEmpty ? "" : ", \(entry.settings)")"
            svg += "<circle cx=\"\(rounded(x(point.index)))\" cy=\"\(rounded(y(point.stage.p50)))\" r=\"4\"><title>\(escaped(text))</title></circle>"
        }
        for (index, anchor) in [(0, "start"), (series.count - 1, "end")] where index == 0 || series.count > 1 {
            let entry = series[index].entry
            let label = entry.commit.isEmpty ? String(HistoryExport.timestamp(entry.time).prefix(10)) : String(entry.commit.prefix(10))
            svg += "<text x=\"\(rounded(x(index)))\" y=\"\(Self.height - 8)\" text-anchor=\"\(series.count == 1 ? "middle" : anchor)\">\(escaped(label))</text>"
        }
        return svg + "</svg></figure>\n"
    }

    /// Against the series before.
    private func change(_ medians: [Double]) -> String {
        guard medians.count > 1, medians[medians.count - 2] > 0 else { return "" }
        let share = medians[medians.count - 1] / medians[medians.count - 2] - 1
        return ", \(share >= 0 ? "+" : "−")\(percent(abs(share))) against the series before"
    }

    private func short(_ nanoseconds: Double) -> String {
        nanoseconds >= 1e9 ? "\(rounded(nanoseconds / 1e9)) s" : "\(rounded(nanoseconds / 1e6)) ms"
    }
    private func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }
    private func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
    }
}
