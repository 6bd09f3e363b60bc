// What a descriptor is open on, by what else the process did with it: a wait on it that was looked at, a call that files alone take, or
// sockets. A number is used again: what is known of it holds from one call that may close it to the next.
import Symbols
import TraceFormat

struct DescriptorUse: Sendable {
    struct Evidence: Sendable {
        var at: UInt64
        var kind: WaitKind
        /// A path, or "pipe:[4711]"; nil: only the kind is known.
        var object: String?
    }

    /// When it may have been closed, in order.
    private var closings: [UInt64]
    /// In the order of time.
    private var evidence: [Evidence]

    init(closings: [UInt64], evidence: [Evidence]) {
        self.closings = closings.sorted()
        self.evidence = evidence.sorted { $0.at < $1.at }
    }

    /// What it was open on then; nil where nothing or no one thing tells.
    func place(at moment: UInt64) -> Evidence? {
        let next = bisect(closings.count) { closings[$0] <= moment }
        let from = next > 0 ? closings[next - 1] : 0, to = next < closings.count ? closings[next] : .max
        let known = evidence.filter { $0.at >= from && $0.at < to }
        guard let one = known.first(where: { $0.object != nil }) ?? known.first else { return nil }
        let isOne = known.allSatisfy { $0.kind == one.kind && ($0.object == nil || $0.object == one.object) }
        return isOne ? one : nil
    }
}

extension WaitSearch {
    /// Waits in read and its kin of which nobody knows whether they are for a file.
    mutating func findDescriptors(workers: Int, progress: ReadingProgress?) {
        func isAsked(_ wait: Wait) -> Bool {
            guard let function = function(wait.call.row), function.isOfAnyDescriptor else { return false }
            return wait.kind == .pipe && wait.call.argument != noArgument && !wait.isOpenOn
        }
        let asked = waits.indices.filter { isAsked(waits[$0]) }
        guard !asked.isEmpty else { return }
        let descriptors = Set(asked.map { waits[$0].call.argument }), functions = functions
        let isCloser = isCloser
        let tells = functions.map {
            $0.map { $0.object == .descriptor && !$0.isOfAnyDescriptor && ($0.kind == .disk || $0.kind == .pipe) } ?? false
        }
        let acts = ThreadCalls.all(
            in: trace.narrowed(to: .whole), table, zip(isCloser, tells).map { $0 || $1 }, workers: workers, progress: progress
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
        for wait in waits where wait.isOpenOn && descriptors.contains(wait.call.argument) {
            evidence[wait.call.argument, default: []].append(.init(at: wait.call.enter, kind: wait.kind, object: wait.object))
        }
        let uses = evidence.reduce(into: [UInt64: DescriptorUse]()) {
            $0[$1.key] = DescriptorUse(closings: closings[$1.key] ?? [], evidence: $1.value)
        }
        for index in asked {
            guard let place = uses[waits[index].call.argument]?.place(at: waits[index].call.enter) else { continue }
            settle(index, place)
        }
    }
}
