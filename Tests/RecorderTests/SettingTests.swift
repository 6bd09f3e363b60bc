import Foundation
import Recorder
import Testing

/// docs/reference/settings.md is written by hand; that it has each setting, with its option and its default, is checked here.
@Suite struct SettingTests {
    /// Cells of the first table, row by row.
    static func rows() throws -> [[String]] {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let lines = try String(contentsOf: root.appending(path: "docs/reference/settings.md"), encoding: .utf8).split(separator: "\n")
        return lines.drop { !$0.hasPrefix("|---") }.dropFirst().prefix { $0.hasPrefix("|") }.map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    @Test func theManualHasEachSettingThatHasAnOption() throws {
        let rows = try Self.rows(), settings = Setting.all.filter { !$0.option.isEmpty }
        #expect(rows.map { $0[1] } == settings.map { "`\($0.name)`" })
        for (row, setting) in zip(rows, settings) {
            #expect(row[0].contains("`\(setting.option)`"), "\(setting.name)")
            guard let standard = setting.standard else { continue }
            #expect(row[3] == "`\(standard)`" || row[3] == standard || row[3].hasPrefix(standard + ":"), "\(setting.name)")
        }
    }

    @Test func valuesAreReadAsTheyAreWritten() throws {
        for setting in Setting.all {
            guard let standard = setting.standard else { continue }
            #expect(setting.value(standard) == standard, "\(setting.name)")
        }
    }
}
