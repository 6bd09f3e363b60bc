// The environment that the program starts with: the tool's own, byte for byte, but for our variables.
import Glibc

/// NAME=VALUE entries in order. Bytes, not Strings: an environment may hold anything.
package struct ProgramEnvironment {
    package private(set) var entries: [[CChar]]

    /// Environment of this process.
    package static var inherited: ProgramEnvironment {
        var entries: [[CChar]] = []
        var next = environ
        while let entry = next.pointee {
            entries.append(Array(UnsafeBufferPointer(start: entry, count: strlen(entry) + 1)))
            next += 1
        }
        return ProgramEnvironment(entries: entries)
    }

    package init(entries: [[CChar]]) { self.entries = entries }

    package subscript(name: String) -> String? {
        let start = (name + "=").utf8.map { CChar(bitPattern: $0) }
        return entries.first { $0.starts(with: start) }.map {
            String(decoding: $0.dropFirst(start.count).dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    /// In place when it is there, at the end otherwise; a name that is there twice is there once afterwards.
    package mutating func set(_ name: String, _ value: String) {
        let start = (name + "=").utf8.map { CChar(bitPattern: $0) }
        let entry = start + value.utf8.map { CChar(bitPattern: $0) } + [0]
        let index = entries.firstIndex { $0.starts(with: start) }
        entries.removeAll { $0.starts(with: start) }
        entries.insert(entry, at: min(index ?? entries.count, entries.count))
    }
}
