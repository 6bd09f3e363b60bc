// Keeps one trace file allocated and in memory ahead of the process that writes it, which costs that process 12 ns per
// 16 bytes when it must do it itself. Nothing is ever written into the prepared range: the program may
// be there already. Once its threads fill chunks in turn (ChunkCollector.swift) it writes none itself, and preparing ends: to fault in a
// page of ext4 costs more than to write it.
import CRecorder
import CTraceLayout
import Glibc

package final class FilePreparer {
    let header: TraceHeader
    private var plan: PreparationPlan
    /// Something failed: the program goes on as it would without us.
    package private(set) var hasGivenUp = false

    package init(_ header: TraceHeader) {
        self.header = header
        let state = header.current
        plan = PreparationPlan(
            used: min(state.next_offset, TraceHeader.mostBytes), prepared: min(state.prepared_offset, TraceHeader.mostBytes),
            sizeLimit: state.size_limit)
    }

    /// One look. Returns after how many nanoseconds the next one is due.
    package func look() -> UInt64 {
        if header.hasSpares { return PreparationPlan.idleNanoseconds }
        var hasPrepared = false
        while !hasGivenUp {
            guard let used = header.nextOffset else {
                hasGivenUp = true // cut, damaged, or another user's
                break
            }
            guard let range = plan.nextRange(used: used, freeBytes: freeBytes) else { break }
            let bytes = range.upperBound - range.lowerBound
            var error = recorder_allocate(header.file, range.lowerBound, bytes)
            if error == 0 { error = recorder_fault_in(header.file, range.lowerBound, bytes) }
            if error == EINTR || error == EAGAIN { break } // try again at the next look
            guard error == 0 else {
                hasGivenUp = true // full disk, file limit, or a file system without fallocate
                break
            }
            plan.didPrepare(upTo: range.upperBound)
            header.publish(preparedOffset: range.upperBound)
            hasPrepared = true
        }
        if !hasPrepared { plan.rest() }
        return hasGivenUp ? PreparationPlan.idleNanoseconds : plan.interval
    }

    private func freeBytes() -> UInt64 {
        var fileSystem = statvfs()
        guard fstatvfs(header.file, &fileSystem) == 0 else { return 0 }
        return UInt64(fileSystem.f_bavail) * UInt64(fileSystem.f_frsize)
    }
}
