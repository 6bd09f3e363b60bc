// What a descriptor refers to: by the call that made it; where that was not recorded, by what else the process did with it, which is a
// wait on it that was looked at, or a call that takes only files, or only sockets. Numbers are reused: all of it holds from one call that
// may close the descriptor, or makes one of this number, to the next.
import TraceFormat

struct DescriptorUse: Sendable {
    struct Evidence: Sendable {
        var at: UInt64
        var kind: WaitKind
        /// A path, or "pipe:[4711]"; nil: only the kind is known.
        var object: String?
        /// The descriptor was made then.
        var isOpening = false
    }

    /// When another life of the number may have begun, in order.
    private let boundaries: [UInt64]
    /// In the order of time.
    private let evidence: [Evidence]

    /// - Parameter closings: when it may have been closed
    init(closings: [UInt64], evidence: [Evidence]) {
        boundaries = (closings + evidence.lazy.filter { $0.isOpening }.map { $0.at }).sorted()
        self.evidence = evidence.sorted { $0.at < $1.at }
    }

    /// From one boundary to the next, around that moment; .max: there is no next.
    func life(around moment: UInt64) -> Range<UInt64> {
        let next = bisect(boundaries.count) { boundaries[$0] <= moment }
        return (next > 0 ? boundaries[next - 1] : 0)..<(next < boundaries.count ? boundaries[next] : .max)
    }

    /// Returns what it referred to at that moment; nil if there is no evidence, or it is contradictory.
    func target(at moment: UInt64) -> Evidence? {
        let life = life(around: moment)
        let known = evidence[
            bisect(evidence.count) { evidence[$0].at < life.lowerBound }..<bisect(evidence.count) { evidence[$0].at < life.upperBound }]
        if let opening = known.last(where: { $0.isOpening }) { return opening }
        guard let one = known.first(where: { $0.object != nil }) ?? known.first else { return nil }
        let isOne = known.allSatisfy { $0.kind == one.kind && ($0.object == nil || $0.object == one.object) }
        return isOne ? one : nil
    }

    /// Returns the calls that made a descriptor, by its number.
    static func found(_ opened: OpenedDescriptors) -> [UInt64: [Evidence]] {
        opened.all.reduce(into: [:]) { all, one in
            all[WaitingFunction.descriptor(one.number), default: []].append(
                Evidence(one.at, one.object, isPipe: one.isPipe, isOpening: true))
        }
    }
    /// - Parameter closings: when each descriptor may have been closed
    static func all(_ evidence: [UInt64: [Evidence]], _ closings: [UInt64: [UInt64]]) -> [UInt64: DescriptorUse] {
        evidence.reduce(into: [:]) { $0[$1.key] = DescriptorUse(closings: closings[$1.key] ?? [], evidence: $1.value) }
    }

    /// Returns the evidence by descriptor number: calls that made one, threads that were found waiting, and the recorder's search for peers.
    static func found(_ opened: OpenedDescriptors, _ records: KernelRecords) -> [UInt64: [Evidence]] {
        var all = found(opened)
        func add(_ number: UInt64, _ at: UInt64, _ object: String, isPipe: Bool) {
            all[number, default: []].append(Evidence(at, object, isPipe: isPipe))
        }
        for found in records.waits.values.joined() where !found.object.isEmpty {
            guard let number = found.arguments.first else { continue }
            add(WaitingFunction.descriptor(number), found.at, found.object, isPipe: found.isOfPipe)
        }
        // Peers are looked for of sockets and pipes alone. What a program was executed with may be a terminal or another device, and no file.
        for end in records.descriptors {
            let isPipe = end.object.hasPrefix("/") && !end.object.hasPrefix("/dev/")
            add(WaitingFunction.descriptor(end.number), end.at, end.object, isPipe: isPipe)
        }
        return all
    }
}

extension WaitSearch {
    /// Finds what descriptors refer to for waits that only have the number; for read and its kin, also which kind that is.
    mutating func findDescriptors(workers: Int, progress: ReadingProgress?) {
        func isAsked(_ wait: Wait) -> Bool {
            guard let function = function(of: wait.call), function.object == .descriptor, wait.kind == function.kind, !wait.isOpenOn,
                wait.call.argument != noArgument
            else { return false }
            return function.isOfAnyDescriptor || knownDescriptors[WaitingFunction.descriptor(wait.call.argument)] != nil
        }
        let asked = waits.indices.filter { isAsked(waits[$0]) }
        guard !asked.isEmpty else { return }
        let descriptors = Set(asked.map { WaitingFunction.descriptor(waits[$0].call.argument) }), functions = functions
        let closers = Closers(table, opened)
        let isEvidence = functions.map {
            $0.map { $0.object == .descriptor && !$0.isOfAnyDescriptor && $0.kind?.isOfDescriptors == true } ?? false
        }
        let acts = ThreadCalls.all(
            in: trace.narrowed(to: .whole), table, isEvidence.indices.map { closers.includes($0) || isEvidence[$0] }, workers: workers,
            progress: progress
        ) { closers.includes(Int($0.row)) || descriptors.contains(WaitingFunction.descriptor($0.argument)) }
        guard let acts else { return }
        var closings: [UInt64: [UInt64]] = [:], evidence = knownDescriptors.filter { descriptors.contains($0.key) }
        for act in acts {
            if closers.includes(Int(act.call.row)) {
                for one in closers.closed(by: act.call).map({ [$0] }) ?? Array(descriptors) {
                    closings[one, default: []].append(act.call.enter)
                }
            } else if let kind = functions[Int(act.call.row)]?.kind {
                let number = WaitingFunction.descriptor(act.call.argument)
                evidence[number, default: []].append(.init(at: act.call.enter, kind: kind, object: nil))
            }
        }
        let uses = DescriptorUse.all(evidence, closings)
        for index in asked {
            let call = waits[index].call
            guard let target = uses[WaitingFunction.descriptor(call.argument)]?.target(at: call.enter), let function = function(call.row),
                function.isOfAnyDescriptor || target.kind == function.kind
            else { continue }
            settle(index, target)
        }
    }
}

extension DescriptorUse.Evidence {
    fileprivate init(_ at: UInt64, _ object: String, isPipe: Bool, isOpening: Bool = false) {
        self.init(at: at, kind: WaitKind(of: object, isPipe: isPipe), object: object.isEmpty ? nil : object, isOpening: isOpening)
    }
}

/// Functions after which a descriptor's number may stand for something else, and which number that is.
struct Closers: Sendable {
    private enum Argument { case descriptor, stream }
    /// Kind of the argument, by row; nil: the function closes nothing.
    private let arguments: [Argument?]
    private let opened: OpenedDescriptors

    private static let known: [String: Argument] = [
        "close": .descriptor, "__close": .descriptor, "dup2": .descriptor, "__dup2": .descriptor, "dup3": .descriptor,
        "close_range": .descriptor, "closefrom": .descriptor, "freopen": .stream, "freopen64": .stream, "fcloseall": .stream,
        "fclose": .stream, "pclose": .stream, "closedir": .stream,
    ]

    /// - Parameter others: functions that do not count
    init(_ table: FunctionNames, _ opened: OpenedDescriptors, but others: Set<String> = []) {
        self.opened = opened
        arguments =
            [nil]
            + table.rows.map { row in
                let name = row.symbol.isEmpty ? row.name : row.symbol
                return others.contains(name) ? nil : Self.known[name]
            }
    }

    static func mayClose(_ function: String) -> Bool { known[function] != nil }
    func includes(_ row: Int) -> Bool { row < arguments.count && arguments[row] != nil }

    /// The descriptor that may be closed; nil: any.
    func closed(by call: OpenCall) -> UInt64? {
        if call.argument == noArgument { return nil }
        switch arguments[Int(call.row)] {
        case .stream: return opened.number(ofStream: call.argument, at: call.enter).map { WaitingFunction.descriptor($0) }
        default: return WaitingFunction.descriptor(call.argument)
        }
    }
}
