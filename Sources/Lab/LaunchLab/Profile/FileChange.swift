// Files that two sets of launches use until they are ready.
import ELF
import Presentation

package struct FileChange: Equatable, Sendable {
    /// How many files each uses.
    package var before: Int, after: Int
    /// Paths of those that only the second uses, and only the first; sorted.
    package var new: [String], gone: [String]

    package init(from first: [String], to second: [String]) {
        (before, after) = (first.count, second.count)
        let known = Set(first), there = Set(second)
        new = second.filter { !known.contains($0) }
        gone = first.filter { !there.contains($0) }
    }

    /// "Files used: 12 more (34 → 44): /etc/a, /etc/b, …; 2 fewer: /etc/c, /etc/d"; nil: they are the same.
    func text(most: Int) -> String? {
        if new.isEmpty && gone.isEmpty { return nil }
        var parts: [String] = []
        if !new.isEmpty { parts.append("\(new.count) more (\(before) → \(after)): \(Self.list(new, most))") }
        if !gone.isEmpty { parts.append("\(gone.count) fewer\(new.isEmpty ? " (\(before) → \(after))" : ""): \(Self.list(gone, most))") }
        return "Files used: " + parts.joined(separator: "; ")
    }
    static func list(_ paths: [String], _ most: Int) -> String {
        paths.prefix(most).map { printable($0) }.joined(separator: ", ") + (paths.count > most ? ", …" : "")
    }
}
