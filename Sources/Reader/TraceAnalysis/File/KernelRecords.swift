// Kernel events of a process: when its threads had a CPU, began and ended, waited for pages, and what they were found waiting in.
// There may be many millions, so they are read only on demand. Their times are converted to ticks of the recording clock.
import CTraceLayout
import ELF
import Presentation
import TraceFormat

package struct KernelRecords: Sendable, RecordReader {
    package struct Switch: Equatable, BitwiseCopyable, Sendable {
        package enum Kind: UInt16 {
            /// It runs from here on.
            case runs = 1
            /// It left the CPU, and waits for something.
            case waits
            /// It left it, and could have gone on.
            case isPreempted
        }
        package var at: UInt64
        var cpu: UInt16
        private var rawKind: UInt16
        package var kind: Kind { Kind(rawValue: rawKind)! }

        /// nil for a kind that this reader does not know.
        init?(_ record: trace_switch, at ticks: UInt64) {
            guard Kind(rawValue: record.kind) != nil else { return nil }
            at = ticks
            cpu = record.cpu
            rawKind = record.kind
        }
    }
    package struct Task: Sendable {
        package enum Kind: Int { case began = 1, ended, named }
        var at: UInt64
        package var kind: Kind
        /// The thread that began it.
        package var by: UInt32
        package var name: String
    }
    /// A page fault: major if the page was read from disk, minor if it was in memory.
    package struct PageFault: Sendable {
        /// The page was there.
        package var at: UInt64
        package var moment: Ticks { Ticks(at) }
        package var isMajor: Bool
        package var address: UInt64
        /// The instruction that touched it, 0 unknown.
        package var code: UInt64
        /// Empty: no file.
        package var path: String
        package var offset: UInt64
        /// True if the page belongs to the agent's code, or to the trace that it writes.
        var isOfAgent: Bool { path.hasSuffix("/libtracer.so") || path.hasSuffix(".trace") }
    }
    /// A wait snapshot: the system call and the kernel function that a thread waited in that was off-CPU for long.
    package struct FoundWait: Sendable {
        var at: UInt64
        /// nil: none.
        package var systemCall: Int32?
        package var arguments: [UInt64]
        /// Kernel function (wchan), empty: unknown.
        package var kernelFunction: String
        /// The file that the first argument refers to, if it is a descriptor.
        package var object: String
        /// A pipe may have a path like a file's; the kernel waits for it elsewhere (fs/pipe.c).
        var isOfPipe: Bool { kernelFunction.contains("pipe") }
    }
    /// A descriptor of the process, open on something that threads of the run waited for, or on its peer.
    package struct Descriptor: Sendable {
        package var at: UInt64
        package var number: Int32
        package var isReadable: Bool
        package var isWritable: Bool
        /// "pipe:[4711]", "socket:[4712]", or a path.
        package var object: String
        /// The socket that a socket is connected to; empty: not known.
        package var peer: String
    }
    /// One of several descriptors that a thread was found waiting for at once: those of one moment.
    struct Polled: Sendable {
        var at: UInt64
        var number: Int32
        /// Operations that it waits to do.
        var isToRead: Bool
        var isToWrite: Bool
        var object: String
    }
    /// How the scheduler chose a thread.
    package struct Priority: Sendable {
        var at: UInt64
        package var priority: SchedulerPriority
    }
    package struct Sample: BitwiseCopyable, Sendable {
        var at: UInt64
        package var isInKernel: Bool
    }

    static let kinds = TRACE_RECORD_SWITCHES...TRACE_RECORD_POLLED

    // Events by thread id, in order of time.
    package private(set) var switches: [UInt32: [Switch]] = [:]
    package private(set) var tasks: [UInt32: [Task]] = [:]
    package private(set) var faults: [UInt32: [PageFault]] = [:]
    package private(set) var waits: [UInt32: [FoundWait]] = [:]
    private(set) var polled: [UInt32: [Polled]] = [:]
    package private(set) var priorities: [UInt32: [Priority]] = [:]
    package private(set) var samples: [UInt32: [Sample]] = [:]
    /// What will be `switches`.
    private var readSwitches = ListsByThread<Switch>()
    /// In no order.
    package private(set) var descriptors: [Descriptor] = []
    /// Ticks between which kernel events were recorded, nil if none were requested.
    package let span: Range<UInt64>?
    package internal(set) var damagedRecords = 0
    private let trace: TraceFile
    /// Each once.
    private var texts: [[UInt8]: String] = [:]

    private static let longestText = 4096

    /// In the order of time, without the agent's.
    package var programFaults: [PageFault] { faults.values.joined().filter { !$0.isOfAgent }.sorted { $0.at < $1.at } }

    package init(_ trace: TraceFile) {
        self.trace = trace
        span = trace.metadata.kernel.map { kernel in
            let from = trace.ticks(monotonic: kernel.from.count).raw
            return from..<max(from, trace.ticks(monotonic: kernel.until.count).raw)
        }
        guard span != nil else { return }
        readRecords(of: trace.file, trace.metadataChunks)
        texts = [:]
        switches = readSwitches.lists
        readSwitches = ListsByThread()
        for tid in switches.keys { Self.sort(&switches[tid]!) { $0.at } }
        for tid in tasks.keys { Self.sort(&tasks[tid]!) { $0.at } }
        for tid in faults.keys { Self.sort(&faults[tid]!) { $0.at } }
        for tid in waits.keys { Self.sort(&waits[tid]!) { $0.at } }
        for tid in polled.keys { Self.sort(&polled[tid]!) { $0.at } }
        for tid in priorities.keys { Self.sort(&priorities[tid]!) { $0.at } }
        for tid in samples.keys { Self.sort(&samples[tid]!) { $0.at } }
    }

    /// Sorts by time, stably; mostly they are in order already.
    private static func sort<T>(_ all: inout [T], by moment: (T) -> UInt64) {
        guard (1..<max(all.count, 1)).contains(where: { moment(all[$0]) < moment(all[$0 - 1]) }) else { return }
        // Events of one moment keep their order.
        all = all.enumerated().sorted { (moment($0.element), $0.offset) < (moment($1.element), $1.offset) }.map { $0.element }
    }

    mutating func read(_ record: trace_record, _ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int) throws(DamagedRecord) {
        switch Int(record.type) {
        case TRACE_RECORD_SWITCHES:
            let size = MemoryLayout<trace_switches_record>.size, stride = MemoryLayout<trace_switch>.stride
            let fixed = try body(trace_switches_record.self, buffer, offset, byteCount)
            guard Int(fixed.count) <= (byteCount - size) / stride else { throw DamagedRecord() }
            for index in 0..<Int(fixed.count) {
                let one = buffer.load(trace_switch.self, at: offset + size + index * stride)!
                if let known = Switch(one, at: ticks(one.ns)) { readSwitches.append(known, of: one.tid) }
            }
        case TRACE_RECORD_TASK:
            let fixed = try body(trace_task_record.self, buffer, offset, byteCount)
            guard let kind = Task.Kind(rawValue: Int(record.key)) else { return }
            let name = buffer.bytes(at: offset + MemoryLayout<trace_task_record>.offset(of: \.name)!, byteCount: 16).prefix { $0 != 0 }
            tasks[fixed.tid, default: []].append(Task(at: ticks(fixed.ns), kind: kind, by: fixed.by, name: printable(Array(name))))
        case TRACE_RECORD_PAGE_FAULT:
            let fixed = try body(trace_page_fault_record.self, buffer, offset, byteCount)
            let path = try tail(fixed, fixed.path_bytes, buffer, offset, byteCount, Self.longestText)
            guard [TRACE_FAULT_MAJOR, TRACE_FAULT_MINOR].contains(Int(record.key)) else { return }
            faults[fixed.tid, default: []].append(
                PageFault(
                    at: ticks(fixed.ns), isMajor: Int(record.key) == TRACE_FAULT_MAJOR, address: fixed.address, code: fixed.code,
                    path: text(path), offset: fixed.offset))
        case TRACE_RECORD_WAIT:
            let size = MemoryLayout<trace_wait_record>.size, fixed = try body(trace_wait_record.self, buffer, offset, byteCount)
            let (function, object) = try texts(fixed.function_bytes, fixed.object_bytes, buffer, offset + size, byteCount - size)
            waits[fixed.tid, default: []].append(
                FoundWait(
                    at: ticks(fixed.ns), systemCall: fixed.system_call < 0 ? nil : fixed.system_call,
                    arguments: [fixed.arguments.0, fixed.arguments.1], kernelFunction: function, object: object))
        case TRACE_RECORD_DESCRIPTOR:
            let size = MemoryLayout<trace_descriptor_record>.size, fixed = try body(trace_descriptor_record.self, buffer, offset, byteCount)
            let (object, peer) = try texts(fixed.object_bytes, fixed.peer_bytes, buffer, offset + size, byteCount - size)
            descriptors.append(
                Descriptor(
                    at: ticks(fixed.ns), number: fixed.descriptor, isReadable: Int(record.key) & TRACE_ACCESS_READ != 0,
                    isWritable: Int(record.key) & TRACE_ACCESS_WRITE != 0, object: object, peer: peer))
        case TRACE_RECORD_POLLED:
            let size = MemoryLayout<trace_polled_record>.size, fixed = try body(trace_polled_record.self, buffer, offset, byteCount)
            let (object, _) = try texts(fixed.object_bytes, 0, buffer, offset + size, byteCount - size)
            polled[fixed.tid, default: []].append(
                Polled(
                    at: ticks(fixed.ns), number: fixed.descriptor, isToRead: Int(record.key) & TRACE_ACCESS_READ != 0,
                    isToWrite: Int(record.key) & TRACE_ACCESS_WRITE != 0, object: object))
        case TRACE_RECORD_PRIORITY:
            let fixed = try body(trace_priority_record.self, buffer, offset, byteCount)
            priorities[fixed.tid, default: []].append(
                Priority(
                    at: ticks(fixed.ns),
                    priority: SchedulerPriority(policy: fixed.policy, nice: fixed.nice, realTime: fixed.priority)))
        case TRACE_RECORD_SAMPLES:
            try Self.forEachSample(buffer, offset, byteCount) { sample, _ in
                let isInKernel = sample.flags & UInt16(TRACE_SAMPLE_KERNEL) != 0
                samples[sample.tid, default: []].append(Sample(at: ticks(sample.ns), isInKernel: isInKernel))
            }
        case TRACE_RECORD_WAIT_STACKS: try Self.forEachSample(buffer, offset, byteCount) { _, _ in } // SampleRecords has them
        default: break
        }
    }

    private func ticks(_ monotonic: UInt64) -> UInt64 { trace.ticks(monotonic: monotonic).raw }

    /// Two, one after the other.
    private mutating func texts(
        _ first: UInt32, _ second: UInt32, _ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int
    ) throws(DamagedRecord) -> (String, String) {
        if UInt64(first) + UInt64(second) > UInt64(byteCount) { throw DamagedRecord() }
        return (
            text(buffer.bytes(at: offset, byteCount: min(Int(first), Self.longestText))),
            text(buffer.bytes(at: offset + Int(first), byteCount: min(Int(second), Self.longestText)))
        )
    }

    private mutating func text(_ bytes: [UInt8]) -> String {
        if let known = texts[bytes] { return known }
        let text = printable(bytes)
        texts[bytes] = text
        return text
    }
}

/// Lists of events by thread id, for events that may be millions: what takes longest is the hash of an id, so the lists of few threads are
/// found by the lowest bits of theirs.
private struct ListsByThread<Event: Sendable>: Sendable {
    private var events: [[Event]] = []
    private var tids: [UInt32] = []
    private var numbers: [UInt32: Int] = [:]
    /// Numbers looked up last; -1 none.
    private var recent = [Int](repeating: -1, count: 64)

    mutating func append(_ event: Event, of tid: UInt32) {
        let bucket = Int(tid % 64), known = recent[bucket]
        if known >= 0, tids[known] == tid { return events[known].append(event) }
        let number = numbers[tid] ?? events.count
        if number == events.count {
            numbers[tid] = number
            tids.append(tid)
            events.append([])
        }
        recent[bucket] = number
        events[number].append(event)
    }

    var lists: [UInt32: [Event]] { numbers.mapValues { events[$0] } }
}
