// Infers what a descriptor is open on from what else the process did with it: a wait on it that was looked at, or a call that takes only
// files, or only pipes and sockets. Numbers are reused: evidence holds from one call that may close the descriptor to the next.
import TraceFormat

struct DescriptorUse: Sendable {
    struct Evidence: Sendable {
        var at: UInt64
        var kind: WaitKind
        /// A path, or "pipe:[4711]"; nil: only the kind is known.
        var object: String?
    }

    /// When it may have been closed, in order.
    private let closings: [UInt64]
    /// In the order of time.
    private let evidence: [Evidence]

    init(closings: [UInt64], evidence: [Evidence]) {
        self.closings = closings.sorted()
        self.evidence = evidence.sorted { $0.at < $1.at }
    }

    /// From one call that may have closed it to the next, around that moment; .max: there is no next.
    func life(around moment: UInt64) -> Range<UInt64> {
        let next = bisect(closings.count) { closings[$0] <= moment }
        return (next > 0 ? closings[next - 1] : 0)..<(next < closings.count ? closings[next] : .max)
    }

    /// Returns what it was open on at that moment; nil if there is no evidence, or it is contradictory.
    func target(at moment: UInt64) -> Evidence? {
        let life = life(around: moment), known = evidence.filter { life.contains($0.at) }
        guard let one = known.first(where: { $0.object != nil }) ?? known.first else { return nil }
        let isOne = known.allSatisfy { $0.kind == one.kind && ($0.object == nil || $0.object == one.object) }
        return isOne ? one : nil
    }

    /// Returns the evidence by descriptor number: threads that were found waiting, and the recorder's search for peers.
    static func found(_ records: KernelRecords, architecture: UInt32) -> [UInt64: [Evidence]] {
        var all: [UInt64: [Evidence]] = [:]
        for found in records.waits.values.joined() where !found.object.isEmpty {
            let evidence = WaitEvidence(found, architecture: architecture)
            guard evidence.kind == .disk || evidence.kind == .pipe, let number = found.arguments.first else { continue }
            all[WaitingFunction.descriptor(number), default: []].append(Evidence(at: found.at, kind: evidence.kind, object: found.object))
        }
        for end in records.descriptors {
            all[WaitingFunction.descriptor(end.number), default: []].append(
                Evidence(at: end.at, kind: .pipe, object: end.object))
        }
        return all
    }
}

extension WaitSearch {
    /// Finds what descriptors are open on for waits that only have the number; for read and its kin, also whether that is a file.
    mutating func findDescriptors(workers: Int, progress: ReadingProgress?) {
        func isAsked(_ wait: Wait) -> Bool {
            guard let function = function(of: wait.call), function.object == .descriptor, wait.kind == .pipe, !wait.isOpenOn,
                wait.call.argument != noArgument
            else { return false }
            return function.isOfAnyDescriptor || knownDescriptors[WaitingFunction.descriptor(wait.call.argument)] != nil
        }
        let asked = waits.indices.filter { isAsked(waits[$0]) }
        guard !asked.isEmpty else { return }
        let descriptors = Set(asked.map { waits[$0].call.argument }), functions = functions
        let isCloser = isCloser()
        let isEvidence = functions.map {
            $0.map { $0.object == .descriptor && !$0.isOfAnyDescriptor && ($0.kind == .disk || $0.kind == .pipe) } ?? false
        }
        let acts = ThreadCalls.all(
            in: trace.narrowed(to: .whole), table, zip(isCloser, isEvidence).map { $0 || $1 }, workers: workers, progress: progress
        ) { call in descriptors.contains(call.argument) || call.argument == noArgument && isCloser[Int(call.row)] }
        guard let acts else { return }
        var closings: [UInt64: [UInt64]] = [:], evidence: [UInt64: [DescriptorUse.Evidence]] = [:]
        for act in acts {
            let argument = act.call.argument
            if isCloser[Int(act.call.row)] {
                for one in argument == noArgument ? Array(descriptors) : [argument] { closings[one, default: []].append(act.call.enter) }
            } else if let kind = functions[Int(act.call.row)]?.kind {
                evidence[argument, default: []].append(.init(at: act.call.enter, kind: kind, object: nil))
            }
        }
        for number in descriptors { evidence[number, default: []] += knownDescriptors[WaitingFunction.descriptor(number)] ?? [] }
        let uses = evidence.reduce(into: [UInt64: DescriptorUse]()) {
            $0[$1.key] = DescriptorUse(closings: closings[$1.key] ?? [], evidence: $1.value)
        }
        for index in asked {
            guard let target = uses[waits[index].call.argument]?.target(at: waits[index].call.enter),
                target.kind == .pipe || function(waits[index].call.row)?.isOfAnyDescriptor == true
            else { continue }
            settle(index, target)
        }
    }
}
