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
import Glibc
import Unwinding
import UnwindingTesting

struct Measurement {
    var samples = 0, whole = 0, frames = 0, nanoseconds = 0, calls = 0
    var isCompared = false, isPrinted = false, shown = 0

    mutating func sample(
        _ sampling: Sampling, _ pid: pid_t, _ tid: pid_t, _ ns: UInt64, _ registers: UnsafeBufferPointer<UInt64>,
        _ stack: UnsafeRawBufferPointer
    ) {
        let start = processorTime()
        let (found, isWhole) = sampling.unwinder.sample(pid, registers: registers, stack: stack)
        nanoseconds += processorTime() - start
        samples += 1
        frames += found.count
        if isWhole { whole += 1 }
        calls += found.count { $0 == UInt64(TRACE_SAMPLE_CALL) }
        if isPrinted { print(pid, tid, ns, isWhole ? 1 : 0, found.map { String($0, radix: 16) }.joined(separator: " ")) }
        if isCompared { sampling.compare(pid, found, registers, stack) }
    }
}

/// Unwinds this process's own stack, `depth` calls deep, and compares it with the real frames. `calls`: number of marks of recorded calls.
func compareOwn(depth: Int) -> (isEqual: Bool, calls: Int) {
    let own = InterruptedStack(depth: depth)
    let found = own.registers.withUnsafeBufferPointer { registers in
        own.bytes.withUnsafeBytes { SampleUnwinder().sample(getpid(), registers: registers, stack: $0).frames }
    }
    let frames = found.filter { $0 != UInt64(TRACE_SAMPLE_CALL) }
    return (frames.starts(with: own.frames) && own.frames.count > depth, found.count - frames.count)
}
if CommandLine.arguments.dropFirst().first == "--self" {
    for depth in [0, 1, 7, 40] {
        let (isEqual, calls) = compareOwn(depth: depth)
        print("depth \(depth): \(isEqual ? "equal" : "different"), \(calls) calls recorded")
    }
    exit(0)
}

var measured = Measurement()
var arguments = Array(CommandLine.arguments.dropFirst()), stackBytes: UInt32 = 16384, period: UInt64 = 1_000_000
while let option = arguments.first, option.hasPrefix("--") {
    arguments.removeFirst()
    switch option {
    case "--reference": measured.isCompared = true
    case "--print": measured.isPrinted = true
    case "--show": measured.shown = Int(arguments.removeFirst()) ?? 0
    case "--stack": stackBytes = UInt32(arguments.removeFirst()) ?? stackBytes
    case "--period": period = UInt64(arguments.removeFirst()) ?? period
    default: fatalError("no option \(option)")
    }
}
let sampling = Sampling { measured.sample($0, $1, $2, $3, $4, $5) }
let failure = sampling.run(arguments, period: period, stackBytes: stackBytes)
guard failure == 0 else { fatalError("perf_event_open: \(String(cString: strerror(failure)))") }
let count = max(measured.samples, 1)
func thousandths(_ value: Int) -> String { "\(value / 1000).\(String(1000 + value % 1000).dropFirst())" }
print(
    "\(measured.samples) samples, \(100 * measured.whole / count)% whole, \(measured.frames / count) frames, \(measured.calls / count) calls,",
    "\(thousandths(measured.nanoseconds / count)) us each")
for one in measured.isCompared ? sampling.comparisons : [] {
    print(
        "\(one.name): \(one.compared) samples, \(thousandths(one.nanoseconds / max(one.compared, 1))) us each; \(one.equal) equal,",
        "\(one.shorter) shorter, \(one.longer) longer")
    for (found, expected) in one.different.prefix(measured.shown) {
        for index in 0..<max(found.count, expected.count) {
            let here = index < found.count ? String(found[index], radix: 16) : "-"
            let there = index < expected.count ? String(expected[index], radix: 16) : "-"
            print(index, here, there, here == there ? "" : "<")
        }
        print("")
    }
}
