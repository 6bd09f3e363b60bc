import Foundation
import Glibc
import Testing
import Unwinding
import UnwindingTesting

/// True if the kernel lets this user sample their own programs (kernel.perf_event_paranoid, seccomp).
private let maySample = Sampling { _, _, _, _, _, _ in }.run(["/bin/true"], stackBytes: 4096) == 0

private let compiler = "/usr/bin/gcc"
private let python = "/usr/bin/python3"

/// Real programs, whose stacks libdwfl and libunwind make of the same registers and the same copies.
@Suite(.enabled(if: maySample, "perf_event_open(2) is not permitted")) struct ProgramTests {
    @Test func shell() throws {
        try check(["/bin/bash", "-c", "for ((n = 0; n < 160000; n++)); do x=${n//1/2}; done"])
    }

    @Test(.enabled(if: access(python, X_OK) == 0, "no python3")) func interpreter() throws {
        let program = "import json, re\nfor n in range(6000): json.loads(json.dumps(list(range(n % 300)))); re.sub('a+', 'b', 'aaxa' * 20)"
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
            int main(void) { int n = 0; for (int i = 0; i < 100; i++) n += through(i); return n == 1; }
            """, [middle])
        try check([program])
    }

    private func check(_ arguments: [String]) throws {
        let sampling = Sampling { sampling, pid, _, _, registers, stack in
            let (frames, _) = sampling.unwinder.sample(pid, registers: registers, stack: stack)
            sampling.compare(pid, frames, registers, stack)
        }
        #expect(sampling.run(arguments) == 0)
        for one in sampling.comparisons {
            #expect(one.compared > 10, "\(one.name)")
            // They look at the process as it is some milliseconds later, and give up where a file has gone or come meanwhile.
            #expect((one.equal + one.shorter) * 100 >= one.compared * 98, "\(one.name): \(one.different.prefix(2))")
        }
    }
}
