// The tree of several traces.

extension CallTree {
    /// The trees of all traces beside each other, each a process, in their order.
    /// - Parameter byArguments: calls with different arguments are different paths
    package static func reading(
        _ traces: [TraceFile], states: StateReading = .nothing, byArguments: Bool = false, workers: Int = TraceFile.cpuCount,
        progress: ReadingProgress? = nil
    ) -> CallTree {
        if traces.count == 1 { return CallTree(traces[0], states: states, byArguments: byArguments, workers: workers, progress: progress) }
        let sharing = WorkSharing(traces.map { $0.usedByteCount }, workers: workers)
        let readers = (0..<sharing.workers).map { _ in Reader() }
        progress?.begin(traces.count)
        sharing.forEach { file, worker, isShared in
            readers[worker].trees.append(
                (
                    file,
                    CallTree(traces[file], states, byArguments: byArguments, workers: isShared ? workers : 1, names: readers[worker].names)
                ))
            progress?.advance()
        }
        return CallTree(readers.flatMap { $0.trees }.sorted { $0.0 < $1.0 }.map { $0.1 })
    }

    /// Used by one thread at a time.
    private final class Reader: @unchecked Sendable {
        let names = NameCache()
        var trees: [(Int, CallTree)] = []
    }
}
