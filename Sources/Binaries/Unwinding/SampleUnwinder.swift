// Stacks of the processes of a run, from what the kernel reports while they run (perf_event_open(2)): which code they map, and at each
// sample the registers and a copy of the stack. The order of calls is that of the kernel's times. Also stacks of threads that wait. For one
// thread.
import CTraceLayout
import Glibc

package final class SampleUnwinder {
    private final class Process {
        /// nil: /proc is asked when a stack needs it.
        var space: AddressSpace?
        let labels: ReturnLabels
        /// Addresses of samples in code of no file.
        var madeCode: Set<UInt64> = []
        /// Path of the jitdump file that it has mapped, which announces it; nil: none.
        var jitDump: String?

        init(_ space: AddressSpace?, _ labels: ReturnLabels) {
            self.space = space
            self.labels = labels
        }
    }
    private var processes: [pid_t: Process] = [:]
    private let files = ModuleFiles()
    private let unwinder = Unwinder()
    private var frames: [UInt64] = []
    private let hasSamples: Bool

    /// For perf_event_attr.sample_regs_user.
    package static let registerMask = Processor.current.sampleMask

    private static let mostMadeCode = 1 << 16

    /// - Parameter hasSamples: what was sampled may be over when its code is asked for, so that each mapping is kept as it is reported.
    ///   Without, it is only for threads that wait: they and their code are still there
    package init(hasSamples: Bool = true) { self.hasSamples = hasSamples }

    private func process(_ pid: pid_t) -> Process {
        if let known = processes[pid] { return known }
        let process = Process(nil, ReturnLabels(pid: pid))
        processes[pid] = process
        return process
    }

    /// - Parameter task: a thread of it that lives
    private func space(of process: Process, _ task: pid_t) -> AddressSpace {
        if let known = process.space { return known }
        let space = AddressSpace(pid: task, files)
        process.space = space
        return space
    }

    /// It begins with no code at all.
    package func exec(_ pid: pid_t) { processes[pid] = Process(hasSamples ? AddressSpace() : nil, ReturnLabels(pid: pid)) }

    package func fork(parent: pid_t, child: pid_t) {
        if parent == child { return } // a thread
        let process = process(parent)
        processes[child] = Process(process.space, ReturnLabels(pid: child, of: process.labels))
    }

    /// - Parameters:
    ///   - path: as the kernel reports it, also of what is no file: "//anon", "[vdso]"
    ///   - inode: of the file, 0 unknown
    package func map(_ pid: pid_t, address: UInt64, length: UInt64, offset: UInt64, path: String, inode: UInt64 = 0) {
        let process = process(pid)
        process.labels.forget()
        if JitDump.isOne(path: path, of: pid) { process.jitDump = path }
        guard hasSamples else { return process.space = nil }
        process.space?.add(address, length, offset: offset, path: path, inode: inode, files)
        if process.space?.reservedAreas.isEmpty == false { process.labels.open() }
    }

    /// - Returns: the names of code that it made while it ran, as far as samples met it and it reported it (PerfMap, JitDump)
    @discardableResult package func exit(_ pid: pid_t) -> [MadeCode.Code] {
        guard let process = processes.removeValue(forKey: pid), !process.madeCode.isEmpty else { return [] }
        return MadeCode(PerfMap.code(of: pid) + (process.jitDump.map(JitDump.code(path:)) ?? [])).code(holding: process.madeCode)
    }

    /// All that are left.
    package func end() -> [(pid: pid_t, code: [MadeCode.Code])] { processes.keys.map { ($0, exit($0)) } }

    /// - Parameters:
    ///   - registers: of `registerMask`, lowest bit first
    ///   - stack: from the stack pointer up
    /// - Returns: the frames, innermost first, as `struct trace_sample` has them; and whether the last is the thread's outermost
    package func sample(
        _ pid: pid_t, registers: UnsafeBufferPointer<UInt64>, stack: UnsafeRawBufferPointer
    ) -> (frames: [UInt64], isWhole: Bool) {
        let process = process(pid), space = space(of: process, pid)
        frames.removeAll(keepingCapacity: true)
        let isWhole = unwinder.unwind(registers, stack: stack, in: space, process.labels, into: &frames)
        noteMadeCode(of: process, space)
        return (frames, isWhole)
    }

    /// Unwinds the stack of a thread that waits. Its caller knows whether it still did when this returned.
    /// - Parameters:
    ///   - tid: of the thread. /proc has the memory of its process under this id, too, also when the main thread has ended
    ///   - isInSystemCall: else it waits for a page
    /// - Returns: the frames, innermost first, as TRACE_RECORD_WAIT_STACKS has them; and whether the last is the thread's outermost
    package func wait(
        _ pid: pid_t, _ tid: pid_t, at programCounter: UInt64, isInSystemCall: Bool, stackPointer: UInt64
    ) -> (frames: [UInt64], isWhole: Bool) {
        let process = process(pid), space = space(of: process, tid)
        frames.removeAll(keepingCapacity: true)
        let isWhole = unwinder.unwind(
            waitingAt: programCounter, isInSystemCall: isInSystemCall, stackPointer: stackPointer, ProcessPages(pid: tid), in: space,
            into: &frames)
        noteMadeCode(of: process, space)
        return (frames, isWhole)
    }

    private func noteMadeCode(of process: Process, _ space: AddressSpace) {
        guard unwinder.hasFoundMadeCode, process.madeCode.count < Self.mostMadeCode else { return }
        for address in frames where address > UInt64(TRACE_SAMPLE_CALL) {
            if let mapping = space.mapping(at: address), mapping.module == nil { process.madeCode.insert(address) }
        }
    }
}
