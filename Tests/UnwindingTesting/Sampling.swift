// Samples of real programs, and stacks that other unwinders find for the same registers and the same copies.
import CUnwindingTests
import Glibc
import Unwinding

package final class Sampling {
    package let unwinder = SampleUnwinder()
    private let sample: (Sampling, pid_t, pid_t, UInt64, UnsafeBufferPointer<UInt64>, UnsafeRawBufferPointer) -> Void
    /// With elfutils' libdwfl and with HP's libunwind.
    package let comparisons = [libdwfl, libunwind].map { Comparison($0) }

    /// - Parameter sample: receives process, thread, nanoseconds, registers, and a copy of the stack
    package init(
        _ sample: @escaping (Sampling, pid_t, pid_t, UInt64, UnsafeBufferPointer<UInt64>, UnsafeRawBufferPointer) -> Void
    ) {
        self.sample = sample
    }

    /// Runs a program, and every process that it makes. An errno, or 0.
    package func run(_ arguments: [String], period: UInt64 = 1_000_000, stackBytes: UInt32 = 16384) -> Int32 {
        var events = sampling_events()
        events.context = Unmanaged.passUnretained(self).toOpaque()
        events.exec = { context, pid in
            Sampling.of(context).unwinder.exec(pid)
            Sampling.of(context).forget(pid)
        }
        events.fork = { Sampling.of($0).unwinder.fork(parent: $1, child: $2) }
        events.map = { context, pid, address, length, offset, inode, path in
            let path = String(cString: path!)
            Sampling.of(context).unwinder.map(pid, address: address, length: length, offset: offset, path: path, inode: inode)
            Sampling.of(context).forget(pid)
        }
        events.exit = { context, pid in
            Sampling.of(context).unwinder.exit(pid)
            Sampling.of(context).forget(pid)
        }
        events.sample = { context, pid, tid, ns, registers, stack, byteCount in
            let sampling = Sampling.of(context)
            sampling.sample(
                sampling, pid, tid, ns, UnsafeBufferPointer(start: registers, count: Processor.current.sampleOrder.count),
                UnsafeRawBufferPointer(start: stack, count: Int(byteCount)))
        }
        var pointers = arguments.map { strdup($0) } + [nil]
        defer { pointers.forEach { free($0) } }
        return sampling_run(&pointers, period, stackBytes, SampleUnwinder.registerMask, &events)
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> Sampling {
        Unmanaged<Sampling>.fromOpaque(context!).takeUnretainedValue()
    }

    private func forget(_ pid: pid_t) {
        for comparison in comparisons { comparison.forget(pid) }
    }

    /// Compares the tool's stack with those that the other unwinders find.
    package func compare(
        _ pid: pid_t, _ found: [UInt64], _ registers: UnsafeBufferPointer<UInt64>, _ stack: UnsafeRawBufferPointer
    ) {
        Processor.current.dwarfRegisters(registers).withUnsafeBufferPointer {
            var sample = stack_sample(
                registers: $0.baseAddress, register_count: Int32($0.count), stack_pointer: $0[Processor.current.stackPointer],
                stack_bytes: UInt64(stack.count), stack: stack.baseAddress)
            for comparison in comparisons { comparison.compare(pid, found, with: &sample) }
        }
    }
}

/// This process's own stack as a signal interrupts it, some calls deep.
package struct InterruptedStack {
    /// The frames that backtrace() finds.
    package let frames: [UInt64]
    /// The registers in the order of samples.
    package let registers: [UInt64]
    package let bytes: [UInt8]

    package init(depth: Int) {
        var context = interrupted()
        var stack = [UInt8](repeating: 0, count: 1 << 16)
        stack.withUnsafeMutableBufferPointer {
            context.stack = $0.baseAddress
            context.stack_bytes = UInt64($0.count)
            interrupt(&context, Int32(depth))
        }
        let count = Int(context.frame_count)
        frames = withUnsafeBytes(of: context.frames) { Array($0.bindMemory(to: UInt64.self).prefix(count)) }
        registers = Processor.current.sampled(withUnsafeBytes(of: context.dwarf_registers) { Array($0.bindMemory(to: UInt64.self)) })
        bytes = Array(stack[..<Int(context.stack_bytes)])
    }
}
