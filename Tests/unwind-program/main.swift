// Samples a program and unwinds each stack: how long that takes, how many reach the outermost frame, and, with --reference, how many are
// what elfutils' libdwfl and HP's libunwind make of the same registers and the same copy, and in what time.
//
// --print: each stack, as a line: process, thread, nanoseconds, whether it is whole, frames.
//
// --self: instead of a program this one, interrupted by a signal: whether its stack is the one that backtrace() gives. With the agent in it
// (LD_PRELOAD) that goes through the labels of recorded calls.
//
//     unwind-program --self
//     unwind-program [--reference] [--print] [--show N] [--stack BYTES] [--period NS] PROGRAM [ARGUMENTS…]
import CTraceLayout
import CUnwindingTests
import Glibc
import Unwinding

/// What another unwinder makes of the same samples.
struct Comparison {
    let reference: reference
    var processes: [pid_t: UnsafeMutableRawPointer?] = [:]
    var samples = 0, nanoseconds = 0
    var equal = 0, shorter = 0, longer = 0

    mutating func forget(_ pid: pid_t) {
        if let process = processes.removeValue(forKey: pid) { process.map { reference.close($0) } }
    }

    /// The frames; empty where it finds none.
    mutating func unwind(_ pid: pid_t, _ sample: stack_sample) -> [UInt64] {
        if processes[pid] == nil { processes[pid] = .some(reference.open(pid)) }
        guard let process = processes[pid]! else { return [] }
        var frames = [UInt64](repeating: 0, count: Unwinder.mostFrames)
        let start = now()
        let count = withUnsafePointer(to: sample) { reference.unwind(process, $0, &frames, Int32(frames.count)) }
        nanoseconds += now() - start
        samples += 1
        return Array(frames[..<Int(count)])
    }
}

final class Sampling {
    let unwinder = SampleUnwinder()
    var samples = 0, whole = 0, frames = 0, nanoseconds = 0, calls = 0
    var comparisons: [Comparison] = []
    var isPrinted = false, shown = 0

    func forget(_ pid: pid_t) {
        for index in comparisons.indices { comparisons[index].forget(pid) }
    }

    func sample(_ pid: pid_t, _ tid: pid_t, _ ns: UInt64, _ registers: UnsafeBufferPointer<UInt64>, _ stack: UnsafeRawBufferPointer) {
        let start = now()
        let (found, isWhole) = unwinder.sample(pid, registers: registers, stack: stack)
        nanoseconds += now() - start
        samples += 1
        frames += found.count
        if isWhole { whole += 1 }
        calls += found.count { $0 == UInt64(TRACE_SAMPLE_CALL) }
        if isPrinted { print(pid, tid, ns, isWhole ? 1 : 0, found.map { String($0, radix: 16) }.joined(separator: " ")) }
        for index in comparisons.indices { compare(index, pid, found, registers, stack) }
    }

    private func compare(
        _ index: Int, _ pid: pid_t, _ found: [UInt64], _ registers: UnsafeBufferPointer<UInt64>, _ stack: UnsafeRawBufferPointer
    ) {
        let expected = Processor.current.dwarfRegisters(registers).withUnsafeBufferPointer {
            comparisons[index].unwind(
                pid,
                stack_sample(
                    registers: $0.baseAddress, register_count: Int32($0.count), stack_pointer: $0[Processor.current.stackPointer],
                    stack_bytes: UInt64(stack.count), stack: stack.baseAddress))
        }
        if expected.isEmpty { return }
        if found == expected {
            comparisons[index].equal += 1
        } else if found.starts(with: expected) {
            comparisons[index].shorter += 1
        } else if expected.starts(with: found) {
            comparisons[index].longer += 1
        } else if shown > 0 {
            shown -= 1
            for index in 0..<max(found.count, expected.count) {
                let here = index < found.count ? String(found[index], radix: 16) : "-"
                let there = index < expected.count ? String(expected[index], radix: 16) : "-"
                print(index, here, there, here == there ? "" : "<")
            }
            print("")
        }
    }
}

/// Others may have the CPU meanwhile.
private func now() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Unwinds this process's own stack, `depth` calls deep, and compares it with the real frames. `calls`: number of marks of recorded calls.
func compareOwn(depth: Int32) -> (isEqual: Bool, calls: Int) {
    var context = interrupted()
    let stack = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    defer { stack.deallocate() }
    context.stack = stack.bindMemory(to: UInt8.self).baseAddress
    context.stack_bytes = UInt64(stack.count)
    interrupt(&context, depth)
    let expected = withUnsafeBytes(of: &context.frames) { Array($0.bindMemory(to: UInt64.self).prefix(Int(context.frame_count))) }
    let dwarf = withUnsafeBytes(of: &context.dwarf_registers) { Array($0.bindMemory(to: UInt64.self)) }
    let found = Processor.current.sampled(dwarf).withUnsafeBufferPointer {
        SampleUnwinder().sample(getpid(), registers: $0, stack: UnsafeRawBufferPointer(rebasing: stack[..<Int(context.stack_bytes)])).frames
    }
    let frames = found.filter { $0 != UInt64(TRACE_SAMPLE_CALL) }
    return (frames.starts(with: expected) && expected.count > Int(depth), found.count - frames.count)
}
if CommandLine.arguments.dropFirst().first == "--self" {
    for depth in [0, 1, 7, 40] {
        let (isEqual, calls) = compareOwn(depth: Int32(depth))
        print("depth \(depth): \(isEqual ? "equal" : "different"), \(calls) calls recorded")
    }
    exit(0)
}

let sampling = Sampling()
var arguments = Array(CommandLine.arguments.dropFirst()), stackBytes: UInt32 = 16384, period: UInt64 = 1_000_000
while let option = arguments.first, option.hasPrefix("--") {
    arguments.removeFirst()
    switch option {
    case "--reference": sampling.comparisons = [libdwfl, libunwind].map { Comparison(reference: $0) }
    case "--print": sampling.isPrinted = true
    case "--show": sampling.shown = Int(arguments.removeFirst()) ?? 0
    case "--stack": stackBytes = UInt32(arguments.removeFirst()) ?? stackBytes
    case "--period": period = UInt64(arguments.removeFirst()) ?? period
    default: fatalError("no option \(option)")
    }
}
func of(_ context: UnsafeMutableRawPointer?) -> Sampling { Unmanaged<Sampling>.fromOpaque(context!).takeUnretainedValue() }
var events = sampling_events()
events.context = Unmanaged.passUnretained(sampling).toOpaque()
events.exec = { context, pid in
    of(context).unwinder.exec(pid)
    of(context).forget(pid)
}
events.fork = { of($0).unwinder.fork(parent: $1, child: $2) }
events.map = { context, pid, address, length, offset, inode, path in
    of(context).unwinder.map(pid, address: address, length: length, offset: offset, path: String(cString: path!), inode: inode)
    of(context).forget(pid)
}
events.exit = { context, pid in
    of(context).unwinder.exit(pid)
    of(context).forget(pid)
}
events.sample = { context, pid, tid, ns, registers, stack, byteCount in
    of(context).sample(
        pid, tid, ns, UnsafeBufferPointer(start: registers, count: Int(SampleUnwinder.registerMask.nonzeroBitCount)),
        UnsafeRawBufferPointer(start: stack, count: Int(byteCount)))
}
var pointers = arguments.map { strdup($0) } + [nil]
let failure = sampling_run(&pointers, period, stackBytes, SampleUnwinder.registerMask, &events)
guard failure == 0 else { fatalError("perf_event_open: \(String(cString: strerror(failure)))") }
let count = max(sampling.samples, 1)
func thousandths(_ value: Int) -> String { "\(value / 1000).\(String(1000 + value % 1000).dropFirst())" }
print(
    "\(sampling.samples) samples, \(100 * sampling.whole / count)% whole, \(sampling.frames / count) frames, \(sampling.calls / count) calls,",
    "\(thousandths(sampling.nanoseconds / count)) us each")
for comparison in sampling.comparisons {
    let name = String(cString: comparison.reference.name), count = max(comparison.samples, 1)
    print(
        "\(name): \(comparison.samples) samples, \(thousandths(comparison.nanoseconds / count)) us each; \(comparison.equal) equal,",
        "\(comparison.shorter) shorter, \(comparison.longer) longer")
}
