// One pass over a module's code for what leads from one function to another.
import CZydis

struct ReferenceReading {
    private let code: ModuleCode
    private let list: FunctionList
    private let starts: Set<UInt64>
    /// Entries, by their numbers; some come several times.
    private(set) var found: [(source: Int32, target: Int32)] = []

    init(_ code: ModuleCode, _ list: FunctionList) {
        (self.code, self.list) = (code, list)
        starts = Set(list.entries.lazy.map { $0.address })
    }

    mutating func readAll() {
        for (index, entry) in list.entries.enumerated() {
            let bytes = code.code(at: entry.address)
            let own = UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(clamping: entry.end - entry.address)))
            switch code.architecture {
            case .x86: readX86(own, entry, index)
            case .arm: readArm(own, entry, index)
            }
        }
    }

    /// A call or jump, maybe into the middle.
    private mutating func lead(_ source: Int, to target: UInt64) {
        let index = list.last(at: target)
        guard index >= 0, target < list.entries[index].end else { return }
        found.append((Int32(source), Int32(index)))
    }

    /// An address is taken: of a function only where that is its first byte.
    private mutating func take(_ source: Int, _ target: UInt64) { if starts.contains(target) { lead(source, to: target) } }

    private mutating func readX86(_ bytes: UnsafeRawBufferPointer, _ entry: FunctionEntry, _ index: Int) {
        guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
        var instruction = x86_instruction(), offset = 0
        while offset < bytes.count {
            guard x86_decode(start + offset, bytes.count - offset, &instruction) != 0 else {
                offset += 1 // data, or the decoder does not know it: from the next byte on
                continue
            }
            let target = entry.address &+ UInt64(offset) &+ UInt64(bitPattern: instruction.target)
            switch x86_kind(UInt32(instruction.kind)) {
            case X86_JUMP, X86_CONDITIONAL, X86_CALL, X86_TRANSACTION:
                if target < entry.address || target >= entry.end { lead(index, to: target) }
            case X86_LEA: take(index, target)
            default: break
            }
            offset += Int(instruction.length)
        }
        guard code.isFixed else { return }
        // mov $function, %register: any four bytes that are the address of one.
        for offset in 0..<max(bytes.count - 3, 0) { take(index, UInt64(bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))) }
    }

    private mutating func readArm(_ bytes: UnsafeRawBufferPointer, _ entry: FunctionEntry, _ index: Int) {
        var pages: [UInt32: UInt64] = [:] // page addresses that adrp has put into registers
        for offset in stride(from: 0, to: bytes.count - 3, by: 4) {
            let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            let site = entry.address &+ UInt64(offset)
            func reached(_ distance: Int64) -> UInt64 { site &+ UInt64(bitPattern: distance) }
            switch ArmInstruction(word) {
            case .call(let distance), .branch(let distance), .conditional(let distance):
                let target = reached(distance)
                if target < entry.address || target >= entry.end { lead(index, to: target) }
            case .near(let distance): take(index, reached(distance))
            case .page(let distance): pages[word & 31] = site & ~4095 &+ UInt64(bitPattern: distance)
            case .other where word & 0xffc0_0000 == 0x9100_0000: // add
                if let page = pages[word >> 5 & 31] { take(index, page &+ UInt64(word >> 10 & 0xfff)) }
            default: break
            }
        }
    }
}
