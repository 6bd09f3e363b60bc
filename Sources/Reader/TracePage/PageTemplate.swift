// A page is a file of Resources that names, {{in braces}}, what goes into it.
import CPageFiles

package struct PageTemplate {
    static let view = PageTemplate(
        page_view_html, style: page_view_css,
        script: [
            page_schema_mjs, page_numbers_mjs, page_tree_mjs, page_colours_mjs, page_search_mjs, page_timeline_mjs, page_table_mjs,
            page_merge_mjs, page_states_mjs, page_selection_mjs, page_threads_mjs, page_canvas_mjs, page_flame_mjs, page_samples_mjs,
            page_view_mjs,
        ])
    static let unfinished = PageTemplate(page_unfinished_html, style: page_unfinished_css, script: [page_unfinished_js])
    package static let history = PageTemplate(page_history_html, style: page_history_css, script: [page_history_js])

    private enum Part {
        case text(Substring), name(Substring)
    }
    private let parts: [Part]
    private let style: String, script: String

    /// - Parameter script: modules, each after those that it imports from
    private init(_ page: page_file, style: page_file, script: [page_file]) {
        self.style = Self.text(style)
        self.script = script.map { Self.script(Self.text($0)) }.joined(separator: "\n\n")
        parts = page.text.split(separator: "{{", omittingEmptySubsequences: false).enumerated().flatMap {
            index, piece -> [Part] in
            guard index > 0, let close = piece.firstRange(of: "}}") else { return [.text(piece)] }
            return [.name(piece[..<close.lowerBound]), .text(piece[close.upperBound...])]
        }
    }

    /// Without the line feed that ends every file.
    private static func text(_ file: page_file) -> String { String(file.text.dropLast()) }

    /// Modules of a page that is one file cannot import each other (a module is known by its address): they become one script, whose
    /// names they share.
    private static func script(_ module: String) -> String {
        module.split(separator: "\n", omittingEmptySubsequences: false).lazy.filter { !$0.hasPrefix("import ") }
            .map { $0.hasPrefix("export ") ? $0.dropFirst("export ".count) : $0 }.joined(separator: "\n")
    }

    /// Fills in the values, which are not searched for names: data may have braces.
    package func filled(_ values: [String: String]) -> String {
        parts.reduce(into: "") { page, part in
            switch part {
            case .text(let text): page += text
            case .name("style"): page += style
            case .name("script"): page += script
            case .name(let name): page += values[String(name)]!
            }
        }
    }
}

extension page_file {
    package var text: String { String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self) }
}
