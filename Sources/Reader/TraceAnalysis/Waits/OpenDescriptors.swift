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
        let evidence = DescriptorUse.found(opened)
        var closings: [UInt64: [UInt64]] = [:]
        for act in acts {
            for number in closers.closed(by: act.call).map({ [$0] }) ?? Array(evidence.keys) {
                closings[number, default: []].append(act.call.enter)
            }
        }
        let uses = DescriptorUse.all(evidence, closings)
        self.init(
            object: { uses[WaitingFunction.descriptor($0)]?.target(at: $1)?.object }, mayClose: { Closers.mayClose($0) })
    }
}
