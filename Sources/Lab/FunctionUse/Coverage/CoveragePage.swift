// The account as a page of its own: modules, in them source files, in these functions; and the classes of each. It has no script.
import CCoveragePage
import Presentation
import TraceAnalysis

package enum CoveragePage {
    package static func html(_ coverage: Coverage, names: NameStyle) -> String {
        let short = ShortNames(coverage.wholeModules.flatMap { $0.functions.map { $0.name } }, names)
        let scopes = Dictionary(grouping: coverage.scopes) { $0.module }
        let modules = coverage.wholeModules.map { section($0, scopes[$0.name] ?? [], short) }.joined()
        return text(coverage_page_html)
            .replacing("{{style}}", with: text(coverage_page_css))
            .replacing("{{traces}}", with: XML.escaped(coverage.traces.joined(separator: ", ")))
            .replacing("{{modules}}", with: modules)
    }

    private static func text(_ file: coverage_file) -> String {
        String(decoding: UnsafeBufferPointer(start: file.bytes, count: file.count), as: UTF8.self)
    }

    private static func section(_ module: CoveredModule, _ scopes: [Coverage.Group], _ short: ShortNames) -> String {
        var html = "<h2>\(XML.escaped(module.name))</h2>\n<p class=\"soft\">\(counts(module.sums))</p>\n"
        let files = Dictionary(grouping: module.functions) { $0.source?.path ?? "" }.map { ($0.key, $0.value, CoverageSums($0.value)) }
        for (path, functions, sums) in files.sorted(by: { ($0.2.neverCalledBytes, $1.0) > ($1.2.neverCalledBytes, $0.0) }) {
            html +=
                "<details><summary>\(XML.escaped(path.isEmpty ? "(no debug information)" : path)) <span>\(counts(sums))</span></summary>\n"
            html +=
                "<table><tr><th class=\"number\">calls</th><th class=\"number\">bytes</th><th class=\"number\">line</th><th>function</th></tr>\n"
            for function in functions.sorted(by: { ($0.source?.line ?? 0, $0.name) < ($1.source?.line ?? 0, $1.name) }) {
                html += row(function, short)
            }
            html += "</table></details>\n"
        }
        return html + classes(scopes)
    }

    /// Returns the table of classes and namespaces; their functions are listed under the source files.
    private static func classes(_ scopes: [Coverage.Group]) -> String {
        if scopes.isEmpty { return "" }
        var html = "<details><summary>By class or namespace <span>\(grouped(scopes.count))</span></summary>\n<table><tr>"
        for title in ["never called", "bytes", "only from these", "called", "unknown"] { html += "<th class=\"number\">\(title)</th>" }
        html += "<th>class or namespace</th></tr>\n"
        for scope in scopes {
            let sums = scope.sums
            let figures = [sums.neverCalled, Int(sums.neverCalledBytes), sums.onlyFromUncalled, sums.called, sums.unknown]
            html += "<tr class=\"scope\">" + figures.map { "<td class=\"number\">\(grouped($0))</td>" }.joined()
            html += "<td>\(XML.escaped(scope.name))</td></tr>\n"
        }
        return html + "</table></details>\n"
    }

    private static func counts(_ sums: CoverageSums) -> String {
        "\(grouped(sums.neverCalled)) of \(counted(sums.functions, "function")) never called, \(readable(byteCount: sums.neverCalledBytes))"
            + (sums.onlyFromUncalled > 0 ? "; nothing else leads to \(grouped(sums.onlyFromUncalled)) of them" : "")
            + (sums.unknown > 0 ? "; \(grouped(sums.unknown)) unknown" : "")
    }

    private static func row(_ function: CoveredFunction, _ short: ShortNames) -> String {
        let isUnknown = function.calls == 0 && function.reason != nil
        let kind = isUnknown ? "unknown" : function.calls > 0 ? "called" : "never"
        let calls = isUnknown ? "?" : (function.isLeast ? "≥" : "") + grouped(function.calls)
        let title = isUnknown ? " title=\"\(XML.escaped(function.reason?.text ?? ""))\"" : ""
        return "<tr class=\"\(kind)\"\(title)><td class=\"number\">\(calls)</td><td class=\"number\">\(grouped(function.byteCount))</td>"
            + "<td class=\"number\">\(function.source.map { String($0.line) } ?? "")</td><td>\(XML.escaped(short[function.name]))</td></tr>\n"
    }
}
