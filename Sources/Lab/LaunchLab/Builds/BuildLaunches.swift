// Results of the launches of one build: how long they take, which pages of text they fault on, how much of it they use.
import Presentation
import Recorder

/// One figure of each launch.
package struct BuildFigure: Hashable, Sendable {
    package enum Kind: String, JSONChoice, Sendable {
        case timeToReady = "time_to_ready"
        case touchedText = "touched_text"
        case minorTextFaults = "minor_text_faults"
        case majorTextFaults = "major_text_faults"
        case readFromDisk = "read_from_disk"
    }
    package enum Unit: String, JSONChoice, Sendable { case nanoseconds = "ns", bytes, count }
    package enum Scope: Hashable, Sendable {
        /// All files together.
        case all
        case program
        /// A library, by its file name: versions of one library are compared.
        case library(String)
    }

    package var kind: Kind
    package var scope: Scope
    package var isCold: Bool

    package init(kind: Kind, scope: Scope, isCold: Bool) {
        self.kind = kind
        self.scope = scope
        self.isCold = isCold
    }

    package var unit: Unit {
        switch kind {
        case .timeToReady: .nanoseconds
        case .touchedText, .readFromDisk: .bytes
        case .minorTextFaults, .majorTextFaults: .count
        }
    }
}

package struct BuildLaunches: Sendable {
    package let command: LaunchCommand
    /// As the kernel names it.
    let program: String
    package private(set) var values: [BuildFigure: [Double]] = [:]
    /// Why it is not known how much text is used.
    package var touchProblem: String?
    /// Timed launches that were disturbed: those made again, and those counted all the same.
    package var disturbed = 0, disturbedKept = 0
    /// Result of the drop before the last timed cold launch.
    package var drop: ColdFiles.Drop?

    /// Bytes of the program's file that could not be dropped before the first launch.
    package var keptOfProgram: UInt64 = 0
    /// The kernel reports how much of it is in memory.
    var knowsMemory = true

    /// Launches whose faults were counted, warm and cold.
    private var counted = [false: 0, true: 0]

    package init(_ command: LaunchCommand, program: String) {
        self.command = command
        self.program = program
    }

    package mutating func add(_ kind: BuildFigure.Kind, _ scope: BuildFigure.Scope = .program, isCold: Bool, _ value: Double) {
        values[BuildFigure(kind: kind, scope: scope, isCold: isCold), default: []].append(value)
    }

    package mutating func add(_ faults: [TextFault], isCold: Bool) {
        let before = counted[isCold]!
        counted[isCold] = before + 1
        var counts: [BuildFigure: Int] = [:]
        for kind in [BuildFigure.Kind.minorTextFaults, .majorTextFaults] {
            let own = faults.filter { $0.isMajor == (kind == .majorTextFaults) }
            counts[BuildFigure(kind: kind, scope: .all, isCold: isCold)] = own.count
            counts[BuildFigure(kind: kind, scope: .program, isCold: isCold)] = own.count { $0.path == program }
            for fault in own where fault.path != program {
                counts[BuildFigure(kind: kind, scope: .library(Self.fileName(fault.path)), isCold: isCold), default: 0] += 1
            }
        }
        // A library that no launch faulted on until now, or not this one.
        let known = values.keys.filter { $0.isCold == isCold && ($0.kind == .minorTextFaults || $0.kind == .majorTextFaults) }
        for figure in Set(known).union(counts.keys) {
            values[figure, default: [Double](repeating: 0, count: before)].append(Double(counts[figure] ?? 0))
        }
    }

    private static func fileName(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }
}
