import Glibc
import Testing
import Unwinding
import UnwindingTesting

/// Against what others make of the same registers and stacks.
@Suite struct UnwinderTests {
    @Test func agreesWithBacktraceOfASignalHandler() {
        let space = AddressSpace(pid: getpid(), ModuleFiles())
        for depth in [0, 1, 5, 40] {
            let own = InterruptedStack(depth: depth)
            #expect(own.frames.count > depth + 3)
            var frames: [UInt64] = []
            _ = own.registers.withUnsafeBufferPointer { registers in
                own.bytes.withUnsafeBytes { Unwinder().unwind(registers, stack: $0, in: space, nil, into: &frames) }
            }
            #expect(frames.count >= own.frames.count)
            #expect(Array(frames.prefix(own.frames.count)) == own.frames, "depth \(depth)")
        }
    }
}
