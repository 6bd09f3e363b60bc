// When threads ran, could have run and waited: the state lane of each thread and the lane of each CPU.
import Presentation
import TraceFormat

struct PerfettoStates {
    private typealias Field = PerfettoField
    private let source: ExportSource

    init(_ source: ExportSource) { self.source = source }

    func write(_ write: ([UInt8]) throws -> Void) throws {
        let trace = source.trace
        guard trace.noSwitches == nil else { return }
        let threads = ThreadStates.all(trace.ofAllThreads, KernelRecords(trace)).filter { trace.shows(tid: $0.tid, name: $0.name) }
        let lastEnd = threads.map { $0.life.upperBound }.max() ?? 0
        var piece = ProtobufMessage()
        for (index, thread) in threads.enumerated() {
            for stretch in thread.stretches.lazy.flatMap({ trace.window.parts($0) }) {
                add(Self.value(stretch.state), thread, at: stretch.begin, cpu: stretch.cpu, to: &piece)
                try piece.flush(to: write)
            }
            // Whoever has the number next is the same thread to Perfetto, and no dead one comes back.
            let isLast = !threads[(index + 1)...].contains { $0.tid == thread.tid }
            if thread.hasEnded, isLast, trace.window.isWhole {
                let cpu = thread.stretches.last?.cpu ?? 0
                var end = thread.life.upperBound
                if thread.tid == trace.header.pid, lastEnd > end {
                    // With the first thread the process is over for the importer, and what the others do after it is somebody else's.
                    add(Field.stopped, thread, at: end, cpu: cpu, to: &piece)
                    end = lastEnd &+ trace.timeScale.ticks(Nanoseconds(2)) // after those of the same moment
                }
                add(Field.dead, thread, at: end, cpu: cpu, to: &piece)
            }
        }
        try write(piece.bytes)
    }

    private static func value(_ state: ThreadStates.State) -> UInt64 {
        switch state {
        case .running: Field.running
        case .runnable: Field.runnable
        case .waiting: Field.sleeping
        // The importer takes no other for it, and without it the state before would go on.
        case .unknown: Field.stopped
        }
    }

    private func add(_ state: UInt64, _ thread: ThreadStates, at ticks: UInt64, cpu: UInt16, to message: inout ProtobufMessage) {
        message.packet(sequence: PerfettoWriter.ownSequence) {
            $0.time(source.monotonic(ticks))
            $0.add(Field.Packet.taskState) {
                $0.add(Field.TaskState.cpu, UInt64(cpu))
                if !thread.name.isEmpty { $0.add(Field.TaskState.name, thread.name) }
                $0.add(Field.TaskState.tid, UInt64(thread.tid))
                $0.add(Field.TaskState.state, state)
            }
        }
    }
}
