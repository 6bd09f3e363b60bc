// The parts of launches below their stages, as a list that a file can hold; and launches rebuilt from such a list, to
// compare new ones with those of a baseline.
import Foundation
import Presentation
import Statistics

package struct LaunchParts {
    private(set) var constructors: [Baseline.Part] = []
    private(set) var loads: [Baseline.Part] = []
    package private(set) var calls: [Baseline.Part] = []
    /// Calls at least this long are all listed, milliseconds.
    package private(set) var callsFrom: Double

    /// - Parameters:
    ///   - callsFrom: milliseconds
    ///   - most: as many calls as this at most, the longest
    ///   - known: listed whatever they take
    package init(_ profiles: [LaunchProfile], callsFrom: Double, most: Int, known: [Baseline.Part] = []) {
        self.callsFrom = callsFrom
        let known = Set(known.map(PartKey.init))
        for stage in MergedNode.root(profiles.map(\.tree), []).children { add(stage, [], known) }
        let chosen = calls.filter { !known.contains(PartKey($0)) && ![.lazy, .item].contains($0.kind) }
        if chosen.count > most {
            // A caller takes at least as long as what it calls, so that none is listed without its callers.
            let shortest = chosen.map(\.ms).sorted(by: >)[most - 1]
            self.callsFrom = shortest
            calls.removeAll { ![.lazy, .item].contains($0.kind) && $0.ms < shortest && !known.contains(PartKey($0)) }
        }
        self.callsFrom = (self.callsFrom * 1000).rounded(.up) / 1000
    }

    /// Identifies the same part in two builds.
    private struct PartKey: Hashable {
        var kind: CallNode.Kind, module: String, name: String, within: [String]
        init(_ part: Baseline.Part) { (kind, module, name, within) = (part.kind, part.module, part.name, part.within) }
    }

    private mutating func add(_ node: MergedNode, _ within: [String], _ known: Set<PartKey>) {
        var inner = within
        switch node.key.kind {
        case .root, .library: break
        case .stage: inner.append(node.key.name)
        case .constructor, .dlopen, .lazy, .item, .call, .wait:
            let total = node.totals.first
            let part = Baseline.Part(
                kind: node.key.kind, module: node.key.module, name: node.key.name, within: within,
                calls: Int(node.counts.first.median.rounded()), ms: milliseconds(total.median), spreadMs: milliseconds(total.spread))
            let least = node.key.kind == .call || node.key.kind == .wait ? callsFrom : Baseline.listedMs
            guard part.calls > 0, part.ms >= least || known.contains(PartKey(part)) else { return }
            switch node.key.kind {
            case .constructor: constructors.append(part)
            case .dlopen: loads.append(part)
            default: calls.append(part)
            }
            inner.append(node.key.name)
        }
        // The longest first: what a reader looks for.
        let children = node.children.map { (node: $0, total: $0.totals.first.median) }.sorted { $0.total > $1.total }
        for child in children { add(child.node, inner, known) }
    }
}

extension Baseline {
    var parts: [Part] { loads + constructors + calls }

    /// Launches as this file describes them. It knows the median and the spread of each part; so the runs of a part lie as
    /// a normal distribution with these has them, in an order of its own: no run is slow in all of its parts.
    func launches() -> [LaunchProfile] {
        let branches = Dictionary(grouping: parts) { $0.within }
        var random = SplitMix(seed: 1)
        /// Returns the nodes below `within`, one list for each run.
        func nodes(_ within: [String]) -> [[CallNode]] {
            var all = [[CallNode]](repeating: [], count: runs)
            for part in branches[within] ?? [] {
                let totals = Self.quantiles(part, runs).shuffled(using: &random), children = nodes(within + [part.name])
                for run in 0..<runs {
                    let node = CallNode(
                        part.key, count: part.calls,
                        total: NanosecondCount(totals[run]), children: children[run])
                    guard part.kind == .constructor else {
                        all[run].append(node)
                        continue
                    }
                    let library = CallNode.Key(.library, module: part.module, name: part.module)
                    if let index = all[run].firstIndex(where: { $0.key == library }) {
                        all[run][index].children.append(node)
                        all[run][index].total += node.total
                    } else {
                        all[run].append(CallNode(library, count: 1, total: node.total, children: [node]))
                    }
                }
            }
            return all
        }
        var trees = [[CallNode]](repeating: [], count: runs)
        for stage in stages where stage.name != LaunchSummary.wholeLaunch {
            let children = nodes([stage.name]), totals = stage.runsMs.shuffled(using: &random)
            for run in 0..<min(runs, totals.count) {
                let module = LaunchReader.isLoading(stage.name) ? CauseSearch.loading : ""
                trees[run].append(
                    CallNode(
                        .init(.stage, module: module, name: stage.name), count: 1,
                        total: NanosecondCount(totals[run] * 1e6), children: children[run]))
            }
        }
        return trees.map { stages in
            LaunchProfile(
                tree: CallNode(.init(.root, module: "", name: ""), count: 1, total: stages.reduce(0) { $0 + $1.total }, children: stages),
                readyReason: ready, libraries: libraries.map { .init(name: $0.name, relocations: $0.relocations) },
                minorFaults: minorFaults, majorFaults: majorFaults, tracerTime: 0)
        }
    }

    /// Nanoseconds. The middle half of a normal distribution is 1.349 standard deviations wide.
    static func quantiles(_ part: Part, _ count: Int) -> [Double] {
        (0..<count).map { run in
            let share = (Double(run) + 0.5) / Double(count)
            return max(part.ms + part.spreadMs / 1.349 * normalQuantile(share), 0) * 1e6
        }
    }

    /// Returns a quantile of the standard normal distribution by bisection: the C library has no inverse of erfc, and only
    /// tens of values are needed.
    static func normalQuantile(_ share: Double) -> Double {
        var low = -8.0, high = 8.0
        for _ in 0..<60 {
            let middle = (low + high) / 2
            if erfc(-middle / 2.0.squareRoot()) / 2 < share { low = middle } else { high = middle }
        }
        return (low + high) / 2
    }

    /// Stricter than for launches themselves: their medians and spreads stand for them.
    static let probability = 0.0005

    /// Why new launches differ from those of this file; `now` is corrected for recording and scaled to this file's machine.
    func attribution(of now: [LaunchProfile]) -> Attribution {
        let machine = MeasuredMachine(architecture: "", cpu: "", kernel: "", calibrationMs: 0)
        var new = Baseline(program: program, command: LaunchCommand(words: []), profiles: now, machine: machine)
        let listed = LaunchParts(now, callsFrom: callsFromMs, most: .max, known: parts)
        (new.constructors, new.loads, new.calls) = (listed.constructors, listed.loads, listed.calls)
        var result = CauseSearch.attribute(from: launches(), to: new.launches(), probability: Self.probability)
        result.difference = (new.stages[0].p50Ms - stages[0].p50Ms) * 1e6
        for index in result.causes.indices {
            result.causes[index].share = result.difference == 0 ? 0 : result.causes[index].difference / result.difference
        }
        // Something has become worse: that comes first, whatever else has become better.
        result.causes.sort { $0.difference > $1.difference }
        return result
    }
}
