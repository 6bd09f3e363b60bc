// Sums of waits by kind and by place. A place is the call that waited, where it was made, and the kind of thing that it waited for.
import Presentation
import TraceFormat

/// The lengths of several waits. All of them are kept, so percentiles are exact.
package struct WaitLengths: Sendable {
    package let duration: Nanoseconds
    /// Shortest first.
    private let sorted: [UInt64]

    package init(_ lengths: [Nanoseconds]) {
        sorted = lengths.map(\.count).sorted()
        duration = Nanoseconds(sorted.reduce(0, &+))
    }

    package var count: Int { sorted.count }
    package var longest: Nanoseconds { Nanoseconds(sorted.last ?? 0) }

    /// The shortest length that at least this percentage of the waits does not exceed (nearest rank).
    /// - Parameter percentage: 1 … 100
    package func percentile(_ percentage: Int) -> Nanoseconds {
        let rank = (percentage * sorted.count + 99) / 100
        return Nanoseconds(sorted.isEmpty ? 0 : sorted[max(rank, 1) - 1])
    }
}

/// Waits of one kind in one call, made at one place; those of all processes that run the same program are together.
package struct WaitPlace: Sendable {
    package let kind: WaitKind
    /// The recorded call; nil unknown.
    package let function: String?
    /// The system call in which threads were found, where no recorded call shows what they waited for.
    package let systemCall: String?
    /// The line or the function where it was made; nil unknown.
    package let caller: String?
    /// The file that made it; nil unknown.
    package let library: String?
    /// Number of different things that were waited for; 0: not known of any.
    package let objects: Int
    /// What was waited for, if it was always the same.
    package let object: String?
    package let lengths: WaitLengths
    /// True if the call is one that waits, for an argument of its own.
    fileprivate let isOfCall: Bool
    fileprivate let isOfAgent: Bool

    fileprivate struct Key: Hashable {
        var kind: WaitKind
        var function: String?
        var systemCall: String?
        var caller: String?
        var library: String?
        var isOfCall: Bool
        var isOfAgent: Bool
    }

    fileprivate init(_ key: Key, _ objects: Set<String>, _ lengths: [Nanoseconds]) {
        (kind, function, systemCall, caller, library) = (key.kind, key.function, key.systemCall, key.caller, key.library)
        (isOfCall, isOfAgent) = (key.isOfCall, key.isOfAgent)
        self.objects = objects.count
        object = objects.count == 1 ? objects.first : nil
        self.lengths = WaitLengths(lengths)
    }
}

extension WaitReport {
    /// Sums of the waits that are not idle, the kind with the longest time first.
    var kinds: [(kind: WaitKind, lengths: WaitLengths)] {
        var lengths: [WaitKind: [Nanoseconds]] = [:]
        for (process, index) in busy {
            let wait = processes[process].waits[index]
            lengths[wait.kind, default: []].append(explanations[process].length(wait.duration))
        }
        return lengths.map { ($0.key, WaitLengths($0.value)) }.sorted {
            ($0.lengths.duration, $1.kind.rawValue) > ($1.lengths.duration, $0.kind.rawValue)
        }
    }

    /// Sums of the waits that are not idle, the place with the longest time first. A wait for a processor has no place: it is for nothing
    /// that the code asked for.
    package var places: [WaitPlace] {
        var all: [WaitPlace.Key: (objects: Set<String>, lengths: [Nanoseconds])] = [:]
        for (process, index) in busy {
            let explanation = explanations[process], search = explanation.search, wait = search.waits[index]
            guard wait.kind != .processor else { continue }
            let key = WaitPlace.Key(
                kind: wait.kind, function: search.name(wait.call.row), systemCall: wait.systemCall,
                caller: explanation.site(of: wait.call), library: explanation.library(of: wait.call),
                isOfCall: search.function(of: wait.call)?.kind != nil, isOfAgent: search.isOfAgent(wait))
            all[key, default: ([], [])].lengths.append(explanation.length(wait.duration))
            if let object = wait.object { all[key]!.objects.insert(object) }
        }
        return all.map { WaitPlace($0.key, $0.value.objects, $0.value.lengths) }.sorted {
            ($0.lengths.duration, $1.function ?? "", $1.systemCall ?? "", $1.caller ?? "", $1.kind.rawValue)
                > ($1.lengths.duration, $0.function ?? "", $0.systemCall ?? "", $0.caller ?? "", $0.kind.rawValue)
        }
    }
}

// MARK: - Rows

/// The members of a row that sums up waits.
private func sums<Row>(_ lengths: @escaping @Sendable (Row) -> WaitLengths) -> [Member<Row>] {
    func time(_ key: String, _ title: String, _ meaning: String, _ value: @escaping @Sendable (WaitLengths) -> Nanoseconds) -> Member<Row> {
        Member(key, meaning) { value(lengths($0)) }.column(title) { column(readable(value(lengths($0)))) }
    }
    return [
        Member("waits") { lengths($0).count }.column("waits") { grouped(lengths($0).count) },
        time("duration_ns", "waited", "of all of them", \.duration),
        time("p50_ns", "p50", "at least half of them are not longer; exact") { $0.percentile(50) },
        time("p99_ns", "p99", "at least 99 % of them are not longer; exact") { $0.percentile(99) },
        time("longest_ns", "longest", "", \.longest),
    ]
}

/// The waits of one kind.
struct KindRow: Record {
    let kind: WaitKind
    let lengths: WaitLengths

    static let members = declare {
        sums { $0.lengths }
        Member.shown("kind", "kind", .text) { $0.kind.rawValue }
    }
}

/// The waits of one place.
struct PlaceRow: Record {
    let place: WaitPlace
    /// How names are spelt in tables.
    let short: (String) -> String

    static let members = declare {
        Member("kind", \.place.kind).column("kind", .text) { $0.place.kind.rawValue }
        Member("function", "the innermost recorded call that was open", \.place.function)
        Member("system_call", "where no recorded call shows what was waited for", \.place.systemCall)
        Member("caller", "where that call was made: the line, with call sites, or the recorded function", \.place.caller)
        Member("library", "the file that made it", \.place.library)
        Member("objects", "number of different things that were waited for; 0: not known", \.place.objects)
        Member("object", "what was waited for, if it was always the same", \.place.object)
        sums { $0.place.lengths }
        Member.shown("what", "waiting in", .name) { $0.what }
    }

    /// "read(3 objects) in load, app.c:38 (app)"
    private var what: String {
        let object = place.objects > 1 ? counted(place.objects, "object") : place.object
        let systemCall = place.systemCall.flatMap { $0 == place.function ? nil : "system call \($0)" }
        guard let function = place.function else {
            let found = [systemCall, object].compactMap { $0 }.joined(separator: ", ")
            return place.isOfAgent ? "the agent's own start" : found.isEmpty ? "-" : found
        }
        let call = place.isOfCall ? ["\(short(function))(\(object ?? ""))"] : [short(function), object].compactMap { $0 }
        let library = place.library.map { " (\($0))" } ?? ""
        let caller = place.caller.map { $0.hasSuffix(library) ? short($0) : short($0) + library } ?? place.library
        return (call + [systemCall].compactMap { $0 }).joined(separator: ", ") + (caller.map { " in \($0)" } ?? "")
    }
}

extension WaitReport {
    /// - Parameters:
    ///   - limit: 0 all
    ///   - spelt: how names are spelt in tables
    func placeRows(limit: Int, _ spelt: @escaping (String) -> String = { $0 }) -> [PlaceRow] {
        let all = places
        return (limit == 0 ? all[...] : all.prefix(limit)).map { PlaceRow(place: $0, short: spelt) }
    }
}
