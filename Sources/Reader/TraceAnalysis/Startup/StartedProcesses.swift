// Processes of a run that a process has started, by itself or by those: one of them may be what makes it ready.

extension TraceFile {
    /// - Parameter run: all traces of the run, in the order in which they were begun
    package func startedProcesses(in run: [TraceFile]) -> [TraceFile] {
        // The program has started all others, also those whose parents were gone when they began.
        if header.pid == run.first?.header.pid { return run.filter { $0.header.pid != header.pid } }
        var parents: Set = [header.pid], chosen: Set<String> = [], isGrowing = true
        while isGrowing { // a child may begin before its parent's second image does
            isGrowing = false
            for trace in run where parents.contains(trace.header.parent_pid) && trace.header.pid != header.pid {
                guard chosen.insert(trace.path).inserted else { continue }
                parents.insert(trace.header.pid)
                isGrowing = true
            }
        }
        return run.filter { chosen.contains($0.path) }
    }
}
