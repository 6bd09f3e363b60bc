import CPageFiles
import Foundation
import Testing
import TraceAnalysis
import TracePage
import TraceTesting

/// Reads the parts of a page that tests look at.
enum PageText {
    /// The schema by which the script reads: Resources/schema.mjs, which is JSON after "SCHEMA = ".
    nonisolated(unsafe) static let schema: [String: Any] = {
        let text = page_schema_mjs.text
        let json = text[text.range(of: "SCHEMA = ")!.upperBound...].drop { $0 == " " }.prefix { $0 != ";" }
        return try! JSONSerialization.jsonObject(with: Data(json.utf8)) as! [String: Any]
    }()

    static func names(_ key: String) throws -> [String] { try #require(schema[key] as? [String], "the schema has no \(key)") }

    static func object(_ text: String) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    static func trace(_ builder: TraceBuilder, end: UInt64) throws -> TraceFile {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("tracer-test-\(UUID().uuidString).trace").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(builder.bytes(end: end)).write(to: URL(fileURLWithPath: path))
        return try TraceFile(path: path)
    }

    /// The data of a page.
    static func data(_ html: String) throws -> [String: Any] {
        let bytes = Data(html.utf8) // a page may be megabytes, of which characters are slow
        let start = try #require(bytes.range(of: Data("const DATA = ".utf8))).upperBound
        let end = try #require(bytes.range(of: Data(";</script>".utf8), in: start..<bytes.endIndex)).lowerBound
        return try #require(JSONSerialization.jsonObject(with: bytes[start..<end]) as? [String: Any])
    }
}
