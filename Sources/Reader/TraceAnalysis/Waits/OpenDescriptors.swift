// What descriptors are open on, as far as the calls that made them were recorded.
import Presentation
import TraceFormat

extension DescriptorNames {
    /// Reads all calls that may close a descriptor. nil: no recorded prototype has one, or no call that makes one was recorded.
    package init?(_ trace: TraceFile, _ table: FunctionNames, progress: ReadingProgress? = nil) {
        guard trace.metadata.recordedPrototypes.contains(where: { $0.hasDescriptors }) else { return nil }
        let whole = trace.ofAllThreads.narrowed(to: .whole), opened = OpenedDescriptors(whole)
        if opened.all.isEmpty { return nil }
        let closers = Closers(table, opened), isCloser = (0...table.rows.count).map { closers.includes($0) }
        guard
            let acts = ThreadCalls.all(
                in: whole, table, isCloser, workers: TraceFile.cpuCount, progress: progress, where: { _ in true })
        else { return nil }
        var evidence: [UInt64: [DescriptorUse.Evidence]] = [:], closings: [UInt64: [UInt64]] = [:]
        for one in opened.all {
            let kind = WaitKind(of: one.object, isPipe: one.isPipe), object = one.object.isEmpty ? nil : one.object
            evidence[WaitingFunction.descriptor(one.number), default: []].append(
                .init(at: one.at, kind: kind, object: object, isOpening: true))
        }
        for act in acts {
            for number in closers.closed(by: act.call).map({ [$0] }) ?? Array(evidence.keys) {
                closings[number, default: []].append(act.call.enter)
            }
        }
        let uses = evidence.reduce(into: [UInt64: DescriptorUse]()) {
            $0[$1.key] = DescriptorUse(closings: closings[$1.key] ?? [], evidence: $1.value)
        }
        self.init(
            object: { uses[WaitingFunction.descriptor($0)]?.target(at: $1)?.object }, mayClose: { Closers.mayClose($0) })
    }
}
