import CTraceLayout
import CUnwindingTests
import Foundation
import Glibc
import Testing
import Unwinding

/// True if the kernel lets this user sample their own programs (kernel.perf_event_paranoid, seccomp).
private let maySample: Bool = {
    var nothing = sampling_events()
    nothing.exec = { _, _ in }
    nothing.fork = { _, _, _ in }
    nothing.map = { _, _, _, _, _, _, _ in }
    nothing.exit = { _, _ in }
    nothing.sample = { _, _, _, _, _, _, _ in }
    var arguments = [strdup("/bin/true"), nil]
    defer { free(arguments[0]) }
    return sampling_run(&arguments, 1_000_000, 4096, SampleUnwinder.registerMask, &nothing) == 0
}()

private let compiler = "/usr/bin/gcc"
private let python = "/usr/bin/python3"

/// Real programs, whose stacks libdwfl and libunwind make of the same registers and the same copies.
@Suite(.enabled(if: maySample, "perf_event_open(2) is not permitted")) struct ProgramTests {
    @Test func shell() throws {
        try check(["/bin/bash", "-c", "for ((n = 0; n < 40000; n++)); do x=${n//1/2}; done"])
    }

    @Test(.enabled(if: access(python, X_OK) == 0, "no python3")) func interpreter() throws {
        let program = "import json, re\nfor n in range(1500): json.loads(json.dumps(list(range(n % 300)))); re.sub('a+', 'b', 'aaxa' * 20)"
        try check([python, "-c", program])
    }

    /// As V8's builtins lie in node: in the middle of a file that describes its other functions.
    @Test(.enabled(if: access(compiler, X_OK) == 0, "no gcc")) func codeThatIsNotDescribedInAFileThatDescribesOther() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("undescribed-\(getpid())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func compile(_ name: String, _ source: String, _ options: [String]) throws -> String {
            let path = "\(folder)/\(name)"
            try source.write(toFile: path + ".c", atomically: true, encoding: .utf8)
            let process = try Process.run(URL(fileURLWithPath: compiler), arguments: options + ["-O1", "-o", path, path + ".c"])
            process.waitUntilExit()
            #expect(process.terminationStatus == 0)
            return path
        }
        let middle = try compile(
            "middle", "int in(int); int through(int n) { return in(n) + 1; }",
            ["-c", "-fno-asynchronous-unwind-tables", "-fno-omit-frame-pointer"])
        let program = try compile(
            "program",
            """
            int through(int);
            __attribute__((noinline)) int in(int n) { for (volatile int i = 0; i < 2000000; i++) n += i; return n; }
            int main(void) { int n = 0; for (int i = 0; i < 20; i++) n += through(i); return n == 1; }
            """, [middle])
        try check([program])
    }

    private func check(_ arguments: [String]) throws {
        let sampling = Sampling()
        var events = sampling_events()
        events.context = Unmanaged.passUnretained(sampling).toOpaque()
        events.exec = { Sampling.of($0).unwinder.exec($1) }
        events.fork = { Sampling.of($0).unwinder.fork(parent: $1, child: $2) }
        events.map = { context, pid, address, length, offset, inode, path in
            Sampling.of(context).map(pid, address, length, offset, inode, String(cString: path!))
        }
        events.exit = { Sampling.of($0).exit($1) }
        events.sample = { context, pid, _, _, registers, stack, byteCount in
            Sampling.of(context).sample(
                pid, UnsafeBufferPointer(start: registers, count: Processor.current.sampleOrder.count),
                UnsafeRawBufferPointer(start: stack, count: Int(byteCount)))
        }
        var pointers = arguments.map { strdup($0) } + [nil]
        defer { pointers.forEach { free($0) } }
        let failure = sampling_run(&pointers, 1_000_000, 16384, SampleUnwinder.registerMask, &events)
        #expect(failure == 0)
        for comparison in sampling.comparisons {
            // They look at the process as it is some milliseconds later, and give up where a file has gone or come meanwhile.
            let name = String(cString: comparison.reference.name)
            #expect(comparison.compared > 10, "\(name)")
            #expect(comparison.equal * 100 >= comparison.compared * 98, "\(name): \(comparison.different.prefix(2))")
        }
    }
}

/// What another unwinder makes of the same samples.
private struct Comparison {
    let reference: reference
    var processes: [pid_t: UnsafeMutableRawPointer] = [:]
    var compared = 0, equal = 0
    var different: [([UInt64], [UInt64])] = []

    mutating func forget(_ pid: pid_t) { processes.removeValue(forKey: pid).map { reference.close($0) } }

    mutating func compare(_ pid: pid_t, _ frames: [UInt64], with sample: stack_sample) {
        if processes[pid] == nil { processes[pid] = reference.open(pid) }
        guard let process = processes[pid] else { return }
        var expected = [UInt64](repeating: 0, count: Unwinder.mostFrames)
        let count = withUnsafePointer(to: sample) { reference.unwind(process, $0, &expected, Int32(expected.count)) }
        guard count > 0 else { return }
        compared += 1
        if frames.starts(with: expected[..<Int(count)]) {
            equal += 1
        } else {
            different.append((frames, Array(expected[..<Int(count)])))
        }
    }
}

private final class Sampling {
    let unwinder = SampleUnwinder()
    var comparisons = [libdwfl, libunwind].map { Comparison(reference: $0) }

    static func of(_ context: UnsafeMutableRawPointer?) -> Sampling { Unmanaged<Sampling>.fromOpaque(context!).takeUnretainedValue() }

    func map(_ pid: pid_t, _ address: UInt64, _ length: UInt64, _ offset: UInt64, _ inode: UInt64, _ path: String) {
        unwinder.map(pid, address: address, length: length, offset: offset, path: path, inode: inode)
        forget(pid)
    }

    func exit(_ pid: pid_t) {
        unwinder.exit(pid)
        forget(pid)
    }

    private func forget(_ pid: pid_t) {
        for index in comparisons.indices { comparisons[index].forget(pid) }
    }

    func sample(_ pid: pid_t, _ registers: UnsafeBufferPointer<UInt64>, _ stack: UnsafeRawBufferPointer) {
        let (frames, _) = unwinder.sample(pid, registers: registers, stack: stack)
        Processor.current.dwarfRegisters(registers).withUnsafeBufferPointer {
            let sample = stack_sample(
                registers: $0.baseAddress, register_count: Int32($0.count), stack_pointer: $0[Processor.current.stackPointer],
                stack_bytes: UInt64(stack.count), stack: stack.baseAddress)
            for index in comparisons.indices { comparisons[index].compare(pid, frames, with: sample) }
        }
    }
}
