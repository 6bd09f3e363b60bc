// One pass over the code of x86-64: everything that a direct jump, a call or a `lea` says of where it leads.
import CZydis
import ELF

/// A buffer with a byte for each byte of a function.
private final class Scratch {
    private var bytes: UnsafeMutablePointer<UInt8>?
    private var capacity = 0

    func cleared(_ count: Int) -> UnsafeMutablePointer<UInt8> {
        if bytes == nil || capacity < count {
            bytes?.deallocate()
            capacity = max(count, capacity * 2)
            bytes = .allocate(capacity: capacity)
        }
        bytes!.update(repeating: 0, count: count)
        return bytes!
    }

    deinit { bytes?.deallocate() }
}

struct X86Scan: CodeScan {
    private(set) var finder: EntryFinder
    /// A flag for each byte of the present function: an instruction begins there.
    private let scratch = Scratch()
    private var inner: [UInt32] = []
    /// Addresses in code, and elsewhere, that it takes.
    private var innerAddresses: [UInt64] = []
    private var ownBases: [UInt64] = []
    private var returnWord = X86ReturnWord()

    init(_ finder: EntryFinder) { self.finder = finder }

    mutating func scan(_ entry: FunctionEntry, _ index: Int) -> ScannedCode.Body {
        var body = ScannedCode.Body()
        let count = Int(entry.end - entry.address)
        let bytes = finder.code.code(at: entry.address)
        guard count > 0, count <= bytes.count, let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            body.isBroken = true
            return body
        }
        let boundaries = scratch.cleared(count)
        inner.removeAll(keepingCapacity: true)
        innerAddresses.removeAll(keepingCapacity: true)
        ownBases.removeAll(keepingCapacity: true)
        returnWord.begin()
        var hasTableJump = false
        var instruction = x86_instruction()
        var offset = 0, isEnd = false
        while offset < count {
            guard x86_decode(start + offset, count - offset, &instruction) != 0 else {
                body.isBroken = true
                break
            }
            boundaries[offset] = 1
            let site = entry.address + UInt64(offset)
            let target = site &+ UInt64(bitPattern: instruction.target)
            let kind = x86_kind(UInt32(instruction.kind))
            if instruction.flags & UInt8(X86_ATOMIC) != 0 { body.length.hasAtomics = true }
            if instruction.flags & UInt8(X86_REPEATS) != 0 { body.length.hasLoop = true }
            if instruction.flags & UInt8(X86_PAUSES) != 0 || kind == X86_SYSTEM || kind == X86_TRANSACTION { body.length.waits = true }
            switch kind {
            case X86_JUMP, X86_CONDITIONAL, X86_TRANSACTION:
                isEnd = kind == X86_JUMP
                if target >= entry.address, target < entry.end { inner.append(UInt32(target - entry.address)) }
                finder.jump(site, target, entry, index, &body, kind == X86_JUMP ? .jump : .conditional)
            case X86_CALL:
                isEnd = true // the callee may not return; if it does, another instruction follows
                finder.call(site, target, index, &body)
            case X86_INDIRECT_JUMP:
                isEnd = true
                body.leadsElsewhere = true // to its own branch targets as a rule, which nobody says for certain
                body.length.leadsToUnknown = true
                if instruction.flags & UInt8(X86_BY_TABLE) != 0 { hasTableJump = true }
            case X86_LEA:
                isEnd = false
                if finder.watched.contains(target) { finder.add(site, target, index, .codeAddress) }
                if target > entry.address, target < entry.end {
                    innerAddresses.append(target)
                } else if !finder.starts.contains(target) { // constants may lie in the segment of the code
                    finder.addBase(target)
                    ownBases.append(target)
                }
            case X86_RETURN, X86_STOP: isEnd = true
            case X86_INDIRECT_CALL, X86_SYSTEM:
                isEnd = true // it may not return
                body.leadsElsewhere = true
                body.length.leadsToUnknown = true
            case X86_NOP: break // after an end it is padding
            default: isEnd = false
            }
            returnWord.take(start + offset, instruction, kind, offset)
            offset += Int(instruction.length)
        }
        // A jump over a lock prefix leads between instructions, on purpose (glibc, lowlevellock).
        for target in inner
        where boundaries[Int(target)] == 0 && !(target > 0 && boundaries[Int(target) - 1] == 1 && start[Int(target) - 1] == 0xf0) {
            body.isBroken = true
        }
        (body.readsReturnAddress, body.readsCallersFrame) = returnWord.end(entry.frames, finder.frames)
        if hasTableJump, !innerAddresses.isEmpty { body.hasHiddenTargets = !followTables(entry, index) }
        body.runsOn = !isEnd
        if body.isBroken { guessAll(entry.address, entry.end, index) }
        return body
    }

    /// gcc's `&&label - &&first`: tables of distances from an address in the function, in numbers of 32 bits. False: there is none.
    private mutating func followTables(_ entry: FunctionEntry, _ index: Int) -> Bool {
        var isFound = false
        for table in ownBases {
            for base in innerAddresses {
                let bytes = finder.code.content(at: table)
                var offset = 0
                while let distance = bytes.load(offset, as: Int32.self), offset < 1 << 16 {
                    let target = base &+ UInt64(bitPattern: Int64(distance))
                    guard target >= entry.address, target < entry.end else { break }
                    if finder.watched.contains(target) {
                        finder.add(entry.address, target, index, target == entry.address ? .jump : .guess)
                    }
                    offset += 4
                }
                if offset >= 12 { isFound = true }
            }
        }
        return isFound
    }

    mutating func guessAll(_ low: UInt64, _ high: UInt64, _ index: Int) {
        let bytes = finder.code.code(at: low)
        let count = min(bytes.count, Int(clamping: high - low))
        guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
        var instruction = x86_instruction()
        for offset in 0..<count {
            // Prefixes need no look: the jump or call after them is tried at its own first byte.
            let byte = start[offset]
            guard byte == 0xe8 || byte == 0xe9 || byte == 0xeb || byte & 0xf0 == 0x70 || byte & 0xfc == 0xe0 || byte == 0x0f,
                x86_decode(start + offset, count - offset, &instruction) != 0, instruction.immediate != 0
            else { continue }
            finder.guess(low + UInt64(offset), low &+ UInt64(offset) &+ UInt64(bitPattern: instruction.target), index)
        }
    }

    /// Returns true when all of it is padding: nops, int3.
    static func isPadding(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return bytes.isEmpty }
        var instruction = x86_instruction(), offset = 0
        while offset < bytes.count {
            if start[offset] == 0xcc || start[offset] == 0x90 {
                offset += 1
                continue
            }
            guard x86_decode(start + offset, bytes.count - offset, &instruction) != 0, x86_kind(UInt32(instruction.kind)) == X86_NOP else {
                return false
            }
            offset += Int(instruction.length)
        }
        return true
    }
}
