import ELF
import Foundation
import Glibc
import Symbols
import Testing

/// A library made by the system's compiler for one test, and removed with it.
final class Built {
    let directory: String
    let path: String

    /// - Parameter sources: text by file name; they are compiled in the order of their names
    init(_ sources: [String: String], _ compiler: String = "g++", _ options: [String] = []) throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("symbols-test-\(UUID().uuidString)").path
        path = directory + "/libbuilt.so"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        for (name, text) in sources { try Data(text.utf8).write(to: URL(fileURLWithPath: directory + "/" + name)) }
        try run(compiler, ["-shared", "-fPIC", "-Wl,--build-id", "-o", path] + options + sources.keys.sorted())
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    func run(_ command: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [command] + arguments
        process.currentDirectoryURL = URL(fileURLWithPath: directory)
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(command) \(arguments)")
    }

    var identity: ModuleIdentity {
        let file = ObjectFile(path: path)!
        return ModuleIdentity(path: path, buildID: file.buildID, spanBytes: file.span ?? 0)
    }

    /// Address of a symbol before anything was stripped, by nm.
    func address(_ name: String) throws -> UInt64 {
        try run("sh", ["-c", "nm '\(path)' >symbols"])
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: directory + "/symbols")), as: UTF8.self)
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: " ")
            if fields.count == 3, fields[2] == name { return UInt64(fields[0], radix: 16)! }
        }
        throw NoSymbol(name: name)
    }

    struct NoSymbol: Error { var name: String }
}
