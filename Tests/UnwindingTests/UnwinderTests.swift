import CTraceLayout
import CUnwindingTests
import Glibc
import Testing
import Unwinding

/// Against what others make of the same registers and stacks.
@Suite struct UnwinderTests {
    @Test func agreesWithBacktraceOfASignalHandler() {
        let files = ModuleFiles(), space = AddressSpace(pid: getpid(), files)
        for depth in [0, 1, 5, 40] {
            let result = UnsafeMutablePointer<interrupted>.allocate(capacity: 1)
            defer { result.deallocate() }
            let stack = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
            defer { stack.deallocate() }
            result.pointee.stack = stack.bindMemory(to: UInt8.self).baseAddress
            result.pointee.stack_bytes = UInt64(stack.count)
            interrupt(result, Int32(depth))
            let expected = withUnsafeBytes(of: &result.pointee.frames) { bytes in
                Array(bytes.bindMemory(to: UInt64.self).prefix(Int(result.pointee.frame_count)))
            }
            #expect(expected.count > depth + 3)
            let (frames, _) = unwind(result, space)
            #expect(frames.count >= expected.count)
            #expect(Array(frames.prefix(expected.count)) == expected, "depth \(depth)")
        }
    }

    private func unwind(_ context: UnsafeMutablePointer<interrupted>, _ space: AddressSpace) -> ([UInt64], Bool) {
        let processor = Processor.current
        let dwarf = withUnsafeBytes(of: &context.pointee.dwarf_registers) { Array($0.bindMemory(to: UInt64.self)) }
        let sampled = processor.sampled(dwarf)
        let unwinder = Unwinder(processor)
        var frames: [UInt64] = []
        let stack = UnsafeRawBufferPointer(start: context.pointee.stack, count: Int(context.pointee.stack_bytes))
        let isWhole = sampled.withUnsafeBufferPointer { unwinder.unwind($0, stack: stack, in: space, nil, into: &frames) }
        return (frames, isWhole)
    }
}
