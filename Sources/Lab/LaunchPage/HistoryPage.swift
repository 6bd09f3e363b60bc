// The trend as one HTML file: for each command a chart of the launch and one of each stage, drawn as SVG here; a short script
// shows what is under the pointer, in all charts of the command at once. Nothing comes from elsewhere.
import Foundation
import Presentation
import LaunchLab
import TraceAnalysis
import TracePage

package struct HistoryPage {
    private let trends: [HistoryTrend]
    private static let left = 58.0, right = 14.0, top = 20.0, bottom = 24.0
    /// A stage that never takes more of its launch has no chart.
    private static let leastShare = 0.01

    package init(_ all: [History.Series]) { trends = HistoryTrend.all(all) }

    package var html: String { PageTemplate.history.filled(["sections": trends.map(section).joined()]) }

    private func section(_ trend: HistoryTrend) -> String {
        let latest = trend.series.last!.entry, names = trend.stageNames
        var body = "<section><h2>\(escaped(trend.program))</h2>\n<p class=\"soft\"><code>\(escaped(trend.command))</code>"
        body += trend.settings.isEmpty ? "" : " with <code>\(escaped(trend.settings))</code>"
        body +=
            " · \(counted(UInt64(trend.series.count), "series", "series")), the latest \(UTC(seconds: latest.time).text) UTC on \(escaped(latest.hostname))</p>\n<div class=\"charts\">"
        var short: [String] = []
        for name in names {
            let matters =
                name == LaunchSummary.wholeLaunch
                || trend.series.contains { series in
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
        let points = trend.points(name), isWhole = name == LaunchSummary.wholeLaunch
        guard let last = points.last else { return "" }
        let size = isWhole ? (width: 900.0, height: 210.0) : (width: 436.0, height: 150.0)
        let scale = Axis(highest: points.map { max($0.stage.p95, $0.stage.p50) }.max() ?? 0)
        let inner = (width: size.width - Self.left - Self.right, height: size.height - Self.top - Self.bottom)
        let count = trend.series.count
        func x(_ index: Int) -> Double { Self.left + (count == 1 ? inner.width / 2 : inner.width * Double(index) / Double(count - 1)) }
        func y(_ value: Double) -> Double { Self.top + inner.height * (1 - value / scale.peak) }
        func coordinates(_ x: Double, _ y: Double) -> String { "\(rounded(x)),\(rounded(y))" }

        let change =
            last.change.map {
                "<b\(last.isClear == true ? $0 > 0 ? " class=\"up\"" : " class=\"down\"" : "")>\(percent(difference: $0))</b>\(isWhole ? " against the series before" : "")"
            } ?? ""
        var svg =
            "<figure\(isWhole ? " class=\"whole\"" : "")><figcaption>\(escaped(name)) <span>\(Axis.text(last.stage.p50)) \(change)</span></figcaption>"
        svg +=
            "<svg viewBox=\"0 0 \(Int(size.width)) \(Int(size.height))\" role=\"img\" tabindex=\"0\" aria-label=\"\(escaped("\(name): \(Axis.text(last.stage.p50))"))\">"
        for value in scale.ticks {
            svg +=
                "<line class=\"grid\" x1=\"\(Self.left)\" x2=\"\(size.width - Self.right)\" y1=\"\(rounded(y(value)))\" y2=\"\(rounded(y(value)))\"/>"
            svg += "<text x=\"\(Self.left - 8)\" y=\"\(rounded(y(value) + 4))\" text-anchor=\"end\">\(scale.caption(value))</text>"
        }
        let upper = points.map { coordinates(x($0.index), y($0.stage.p95)) },
            lower = points.reversed().map { coordinates(x($0.index), y($0.stage.p50)) }
        svg += "<polygon class=\"band\" points=\"\((upper + lower).joined(separator: " "))\"/>"
        svg += "<polyline class=\"trend\" points=\"\(points.map { coordinates(x($0.index), y($0.stage.p50)) }.joined(separator: " "))\"/>"
        svg += "<line class=\"cursor\" y1=\"\(Self.top)\" y2=\"\(size.height - Self.bottom)\" hidden=\"\"/>"
        for point in points {
            let clear = point.isClear == true ? (point.change ?? 0) > 0 ? " up" : " down" : ""
            svg +=
                "<circle class=\"dot\(clear)\" data-i=\"\(point.index)\" data-tip=\"\(escaped(tip(name, point)))\" cx=\"\(rounded(x(point.index)))\" cy=\"\(rounded(y(point.stage.p50)))\" r=\"\(count > 60 && clear.isEmpty ? 2 : 3.5)\"/>"
        }
        for (index, anchor) in [(0, "start"), (count - 1, "end")] where index == 0 || count > 1 {
            let entry = trend.series[index].entry
            let caption = String(UTC(seconds: entry.time).text.prefix(10)) + (entry.commit.isEmpty ? "" : " · \(entry.commit.prefix(8))")
            svg +=
                "<text x=\"\(rounded(x(index)))\" y=\"\(size.height - 6)\" text-anchor=\"\(count == 1 ? "middle" : anchor)\">\(escaped(caption))</text>"
        }
        return svg + "</svg></figure>\n"
    }

    private func tip(_ name: String, _ point: HistoryTrend.Point) -> String {
        let entry = point.entry
        var lines = [
            "\(name): \(Axis.text(point.stage.p50))" + (point.change.map { " (\(percent(difference: $0)))" } ?? ""),
            "p90 \(Axis.text(point.stage.p90)), p95 \(Axis.text(point.stage.p95)), spread \(Axis.text(point.stage.spread))",
            "\(UTC(seconds: entry.time).text) UTC, \(entry.hostname)",
        ]
        if !entry.commit.isEmpty { lines.append("commit \(entry.commit)") }
        lines.append(
            "\(counted(UInt64(entry.runs), "launch", "launches"))"
                + (entry.disturbed > 0 ? ", \(entry.disturbed) disturbed and repeated" : ""))
        return lines.joined(separator: "\n")
    }

    private func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }
    private func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
            .replacing("\n", with: "&#10;")
    }
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

    func caption(_ value: Double) -> String {
        value == 0 ? "0" : String(format: "%g ", value / unit.size) + unit.name
    }

    /// Three digits.
    static func text(_ value: Double) -> String {
        let (name, size) = unit(value), number = value / size
        return String(format: number >= 100 ? "%.0f " : number >= 10 ? "%.1f " : "%.2f ", number) + name
    }
}
