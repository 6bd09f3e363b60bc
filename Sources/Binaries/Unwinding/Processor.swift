// A processor's registers as unwinding needs them: their DWARF numbers, and the order in which perf_event_open(2) gives them.
import Glibc

package struct Processor: Sendable {
    /// DWARF's numbers.
    package let stackPointer: Int
    package let framePointer: Int
    /// The highest number in use: the unwinder keeps the address of the next instruction there.
    package let programCounter: Int
    /// The registers that a sample must have: bits of perf_event_attr.sample_regs_user.
    package let sampleMask: UInt64
    /// The DWARF number of each of them, in the kernel's order.
    package let sampleOrder: [Int]
    /// An address of code, less what else the processor keeps in the word: a signature (pointer authentication).
    let addressMask: UInt64

    /// System V ABI for x86-64, figure 3.36; arch/x86/include/uapi/asm/perf_regs.h: ax bx cx dx si di bp sp ip, …, r8 to r15 from 16 on.
    package static let x86 = Processor(
        stackPointer: 7, framePointer: 6, programCounter: 16, sampleMask: 0xff_01ff,
        sampleOrder: [0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15], addressMask: .max)
    /// DWARF for the Arm 64-bit Architecture; arch/arm64/include/uapi/asm/perf_regs.h: x0 to x30, sp, pc.
    package static let arm = Processor(
        stackPointer: 31, framePointer: 29, programCounter: 32, sampleMask: (1 << 33) - 1, sampleOrder: Array(0...32),
        addressMask: (1 << 48) - 1)

    package static let current: Processor = {
        var name = utsname()
        uname(&name)
        let architecture = withUnsafeBytes(of: &name.machine) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return architecture == "aarch64" ? arm : x86
    }()

    /// Returns the registers of a sample in DWARF's order; 0 for those that it lacks.
    package func dwarfRegisters(_ sampled: UnsafeBufferPointer<UInt64>) -> [UInt64] {
        var registers = [UInt64](repeating: 0, count: registerCount)
        for (index, register) in sampleOrder.enumerated() where index < sampled.count { registers[register] = sampled[index] }
        return registers
    }

    /// Returns registers in DWARF's order in the order of a sample.
    package func sampled(_ dwarf: [UInt64]) -> [UInt64] { sampleOrder.map { dwarf[$0] } }

    var registerCount: Int { programCounter + 1 }
}
