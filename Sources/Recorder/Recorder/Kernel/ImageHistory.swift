// Kernel events of one image of a process, from exec (or fork) to the next exec or its end: as the records that go to the end of its
// trace.
import CTraceLayout
import Glibc
import Unwinding

package struct ImageHistory {
    /// CLOCK_MONOTONIC.
    package let begun: UInt64
    package var ended: UInt64?
    /// The program that the image began with; nil: it is a copy of its parent.
    package private(set) var program: ExecutedProgram?
    /// The process's parent, 0 unknown.
    package let parent: pid_t
    package private(set) var blocks: [KernelSpool.Block] = []
    /// In place of blocks, where nothing else is wanted.
    private(set) var textFaults: [TextFault] = []
    private var bytes: [UInt8] = []
    private var switches: [trace_switch] = []
    /// Stacks of samples, and of threads that were found waiting.
    private var samples = Stacks(), waitStacks = Stacks()
    /// Addresses of instructions in the kernel that samples have met.
    private(set) var kernelAddresses: Set<UInt64> = []
    /// More than the file may have: the number of records that are gone.
    package private(set) var left: UInt64 = 0
    private var kept = 0
    private var recordsInBlock: UInt64 = 0

    private static let blockBytes = 256 << 10, mostSwitches = 2048, mostSampleBytes = 32 << 10

    init(begun: UInt64, parent: pid_t, program: ExecutedProgram? = nil) {
        self.begun = begun
        self.parent = parent
        self.program = program
    }

    mutating func map(_ mapping: KernelRecord.Mapping) {
        if mapping.isOfFile { program?.map(mapping.path, inode: mapping.inode, isOutput: mapping.isOutput) }
    }

    /// No more is reported of it. Where nothing was, after it had been executed, the process may be asked itself.
    mutating func lookAtProgram(of pid: pid_t) {
        if program?.path.isEmpty == true { program?.isPrivileged = ProcessStatus.hasTakenIdentity(pid) }
    }

    mutating func add(_ change: trace_switch, _ storage: KernelStorage) {
        switches.append(change)
        if switches.count == Self.mostSwitches { endSwitches(storage) }
    }

    mutating func add(_ fault: TextFault) { textFaults.append(fault) }

    /// - Parameter frames: as TRACE_RECORD_SAMPLES has them, innermost first
    mutating func add(sample frames: [UInt64], flags: Int, _ origin: KernelRecord.Origin, _ storage: KernelStorage) {
        samples.add(frames, flags: flags, tid: origin.tid, at: origin.nanoseconds)
        if flags & TRACE_SAMPLE_KERNEL != 0 { noteKernelAddresses(frames) }
        if samples.bytes.count >= Self.mostSampleBytes { end(\.samples, TRACE_RECORD_SAMPLES, storage) }
    }

    mutating func add(_ stack: WaitStack, _ storage: KernelStorage) {
        waitStacks.add(stack.frames, flags: stack.isWhole ? TRACE_SAMPLE_WHOLE : 0, tid: stack.tid, at: stack.nanoseconds)
        if waitStacks.bytes.count >= Self.mostSampleBytes { end(\.waitStacks, TRACE_RECORD_WAIT_STACKS, storage) }
    }

    private struct Stacks {
        /// Each a `trace_sample`, with its addresses after it.
        var bytes: [UInt8] = []
        var count: UInt32 = 0
        private static let mostFrames = 2000

        mutating func add(_ frames: [UInt64], flags: Int, tid: pid_t, at nanoseconds: UInt64) {
            let kept = frames.prefix(Self.mostFrames), flags = kept.count < frames.count ? flags & ~TRACE_SAMPLE_WHOLE : flags
            let sample = trace_sample(ns: nanoseconds, tid: UInt32(bitPattern: tid), count: UInt16(kept.count), flags: UInt16(flags))
            withUnsafeBytes(of: sample) { bytes.append(contentsOf: $0) }
            for frame in kept { withUnsafeBytes(of: frame) { bytes.append(contentsOf: $0) } }
            count += 1
        }
    }

    /// After the first they are those that calls return to.
    private mutating func noteKernelAddresses(_ frames: [UInt64]) {
        guard kernelAddresses.count < Self.mostKernelAddresses else { return }
        for (index, address) in zip(0..., frames.prefix { $0 >= TRACE_KERNEL_ADDRESS }) {
            kernelAddresses.insert(index == 0 ? address : address - 1)
        }
    }
    private static let mostKernelAddresses = 1 << 16

    mutating func add(task key: Int, tid: pid_t, by: pid_t = 0, name: String = "", at nanoseconds: UInt64, _ storage: KernelStorage) {
        var task = trace_task_record()
        (task.ns, task.tid, task.by) = (nanoseconds, UInt32(bitPattern: tid), UInt32(bitPattern: by))
        withUnsafeMutableBytes(of: &task.name) { $0.copyBytes(from: name.utf8.prefix(15)) }
        add(TRACE_RECORD_TASK, key: key, task, storage)
    }

    mutating func add(
        _ fault: Int, address: UInt64, code: UInt64, file: (path: String, offset: UInt64)?, _ origin: KernelRecord.Origin,
        _ storage: KernelStorage
    ) {
        let path = Array((file?.path ?? "").utf8)
        let record = trace_page_fault_record(
            record: trace_record(), ns: origin.nanoseconds, tid: UInt32(bitPattern: origin.tid), path_bytes: UInt32(path.count),
            address: address, code: code, offset: file?.offset ?? 0)
        add(TRACE_RECORD_PAGE_FAULT, key: fault, record, storage, path)
    }

    mutating func add(_ snapshot: WaitSnapshot, _ storage: KernelStorage) {
        let function = Array(snapshot.kernelFunction.utf8), object = Array(snapshot.object.utf8), tid = UInt32(bitPattern: snapshot.tid)
        let wait = trace_wait_record(
            record: trace_record(), ns: snapshot.nanoseconds, tid: tid, system_call: snapshot.systemCall, arguments: snapshot.arguments,
            function_bytes: UInt32(function.count), object_bytes: UInt32(object.count))
        add(TRACE_RECORD_WAIT, wait, storage, function + object)
        for member in snapshot.set?.members ?? [] {
            let object = Array(member.object.utf8)
            let record = trace_polled_record(
                record: trace_record(), ns: snapshot.nanoseconds, tid: tid, descriptor: member.descriptor,
                object_bytes: UInt32(object.count), reserved: 0)
            add(TRACE_RECORD_POLLED, key: member.access, record, storage, object)
        }
    }

    mutating func add(_ found: OpenPeer, at nanoseconds: UInt64, _ storage: KernelStorage) {
        let object = Array(found.object.utf8), peer = Array(found.peer.utf8)
        let record = trace_descriptor_record(
            record: trace_record(), ns: nanoseconds, descriptor: found.descriptor, object_bytes: UInt32(object.count),
            peer_bytes: UInt32(peer.count), reserved: 0)
        add(TRACE_RECORD_DESCRIPTOR, key: found.access, record, storage, object + peer)
    }

    mutating func add(_ priority: ThreadPriority, of tid: pid_t, at nanoseconds: UInt64, _ storage: KernelStorage) {
        let record = trace_priority_record(
            record: trace_record(), ns: nanoseconds, tid: UInt32(bitPattern: tid), policy: priority.policy, nice: priority.nice,
            priority: priority.priority)
        add(TRACE_RECORD_PRIORITY, record, storage)
    }

    mutating func add(_ code: MadeCode.Code, _ storage: KernelStorage) {
        add(TRACE_RECORD_CODE_NAME, from: code.start, to: code.end, Array(code.name.utf8), storage)
    }

    mutating func add(_ function: KernelSymbols.Function, _ storage: KernelStorage) {
        add(TRACE_RECORD_KERNEL_NAME, from: function.start, to: function.end, function.name, storage)
    }

    private mutating func add(_ type: Int, from start: UInt64, to end: UInt64, _ name: [UInt8], _ storage: KernelStorage) {
        let record = trace_code_name_record(
            record: trace_record(), address: start, code_bytes: end - start, name_bytes: UInt32(name.count), reserved: 0)
        add(type, record, storage, name)
    }

    /// Puts into blocks what is not in one yet.
    mutating func end(_ storage: KernelStorage) {
        endSwitches(storage)
        end(\.samples, TRACE_RECORD_SAMPLES, storage)
        end(\.waitStacks, TRACE_RECORD_WAIT_STACKS, storage)
        endBlock(storage)
    }

    private mutating func end(_ stacks: WritableKeyPath<ImageHistory, Stacks>, _ type: Int, _ storage: KernelStorage) {
        let (bytes, count) = (self[keyPath: stacks].bytes, self[keyPath: stacks].count)
        guard count > 0 else { return }
        self[keyPath: stacks] = Stacks()
        add(type, trace_samples_record(record: trace_record(), count: count, reserved: 0), storage, bytes)
        recordsInBlock += UInt64(count) - 1
    }

    private mutating func endSwitches(_ storage: KernelStorage) {
        guard !switches.isEmpty else { return }
        let record = trace_switches_record(record: trace_record(), count: UInt32(switches.count), reserved: 0)
        add(TRACE_RECORD_SWITCHES, record, storage, switches.withUnsafeBytes { Array($0) })
        recordsInBlock += UInt64(switches.count) - 1
        switches.removeAll(keepingCapacity: true)
    }

    /// The fixed part, whose `record` is made here, and what follows it, padded to the next word.
    private mutating func add<Fixed: BitwiseCopyable>(
        _ type: Int, key: Int = 0, _ fixed: Fixed, _ storage: KernelStorage, _ tail: [UInt8] = []
    ) {
        let byteCount = (MemoryLayout<Fixed>.size + tail.count + 7) & ~7
        let head = trace_record(type: UInt16(type), key: UInt16(key), byte_count: UInt32(byteCount))
        if bytes.count + byteCount > Self.blockBytes { endBlock(storage) }
        recordsInBlock += 1
        withUnsafeBytes(of: head) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: fixed) { bytes.append(contentsOf: $0.dropFirst(MemoryLayout<trace_record>.size)) }
        bytes.append(contentsOf: tail)
        bytes.append(contentsOf: repeatElement(0, count: byteCount - MemoryLayout<Fixed>.size - tail.count))
    }

    private mutating func endBlock(_ storage: KernelStorage) {
        guard !bytes.isEmpty else { return }
        defer {
            bytes.removeAll(keepingCapacity: true)
            recordsInBlock = 0
        }
        if !storage.keepsEnd, kept + bytes.count > storage.mostBytes {
            left += recordsInBlock
            return
        }
        guard let block = storage.spool.keep(bytes) else {
            left += recordsInBlock
            return
        }
        blocks.append(block)
        kept += block.byteCount
        while storage.keepsEnd, kept > storage.mostBytes, blocks.count > 1 {
            let oldest = blocks.removeFirst()
            kept -= oldest.byteCount
            storage.spool.drop(oldest)
        }
    }
}

/// How much may be kept of an image, and where.
package struct KernelStorage {
    let spool: KernelSpool
    /// At most this many bytes; their end where the trace keeps its end (ring), else their beginning.
    let mostBytes: Int
    let keepsEnd: Bool
    /// Page faults at code are kept, each with the file that it is of, and nothing else.
    var isOfTextFaults = false

    package init(spool: KernelSpool, mostBytes: Int, keepsEnd: Bool, isOfTextFaults: Bool = false) {
        self.spool = spool
        self.mostBytes = mostBytes
        self.keepsEnd = keepsEnd
        self.isOfTextFaults = isOfTextFaults
    }
}
