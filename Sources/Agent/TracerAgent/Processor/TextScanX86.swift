// The text is searched for every rip-relative reference to a slot, whatever the instruction: at each byte offset p,
// does p + 4 + int32(p) fall on one (with the distances of 1, 2 and 4 bytes of trailing immediate)? Only ff 15
// (call *slot) and ff 25 (jmp *slot) count as calls; all else, known or not, counts as taking the address.
// The expensive question is asked only of slots for which the cheap one, "is there a call at all", says yes.
#if arch(x86_64)
import CSupport

extension CallOnlySlots {
    func scan(_ image: Image, at path: CText) {
        var anyCall = false
        let sections = CodeSections(image, at: path)
        forEachText(image, sections) { start, end in
            // Refused by old kernels.
            let lead = start & UInt64(Memory.pageBytes &- 1)
            _ = SystemCall.call(SystemCall.madvise, Int(start &- lead), Int((end &- start) &+ lead), Advice.populateRead)
            if markCalls(start, end) { anyCall = true }
        }
        if !anyCall { return }
        var first = Int(count), last = 0
        for n in 0..<Int(count) {
            if states[n] & CallOnlySlots.called == 0 {
                states[n] = 0
            } else {
                first = min(first, n)
                last = n
            }
        }
        let lowest = low &+ UInt64(first) &* 8, highest = low &+ UInt64(last) &* 8
        forEachText(image, sections) { start, end in markAddresses(start, end, lowest, highest) }
    }

    /// Finds ff 15 and ff 25, sixty-four bytes at a time.
    @inline(never) private func markCalls(_ start: UInt64, _ end: UInt64) -> Bool {
        guard end > start, end &- start >= 96 else { return false }
        let text = UnsafeRawPointer(bitPattern: UInt(start))!
        let count = Int(end &- start)
        var any = false, p = 0
        while p &+ 80 <= count {
            var hits = tracer_call_candidates(text + p)
            while hits != 0 {
                if markCall(text, p &+ hits.trailingZeroBitCount, count) { any = true }
                hits &= hits &- 1
            }
            p &+= 64
        }
        while p &+ 6 <= count {
            if markCall(text, p, count) { any = true }
            p &+= 1
        }
        return any
    }

    /// A call or jump through a candidate slot. The entries of .plt.got are not counted: the linker makes one when a
    /// function is called *and* its address taken, so they never make a slot one of calls alone.
    @inline(__always) private func markCall(_ text: UnsafeRawPointer, _ p: Int, _ count: Int) -> Bool {
        if text.load(fromByteOffset: p, as: UInt8.self) != 0xff { return false }
        let operation = text.load(fromByteOffset: p &+ 1, as: UInt8.self)
        if operation != 0x15 && operation != 0x25 { return false }
        guard let slot = index(target(text, p &+ 2)) else { return false }
        if operation == 0x25 && isTableEntry(text, p, count) { return false }
        states[slot] |= CallOnlySlots.called
        return true
    }

    /// `jmp *slot; xchg %ax,%ax` at a multiple of 8, or after endbr64 (and bnd) at one of 16.
    private func isTableEntry(_ text: UnsafeRawPointer, _ p: Int, _ count: Int) -> Bool {
        let address = UInt(bitPattern: text + p)
        if address & 7 == 0 && p &+ 8 <= count && text.loadUnaligned(fromByteOffset: p &+ 6, as: UInt16.self) == 0x9066 { return true }
        let marker: UInt32 = 0xfa1e_0ff3
        return address & 15 == 4 && p >= 4 && text.loadUnaligned(fromByteOffset: p &- 4, as: UInt32.self) == marker
            || address & 15 == 5 && p >= 5 && text.loadUnaligned(fromByteOffset: p &- 5, as: UInt32.self) == marker
    }

    /// Returns where the 32-bit displacement at offset `p` points when nothing follows it.
    @inline(__always) private func target(_ text: UnsafeRawPointer, _ p: Int) -> UInt64 {
        let displacement = text.loadUnaligned(fromByteOffset: p, as: Int32.self)
        return UInt64(UInt(bitPattern: text)) &+ UInt64(p) &+ 4 &+ UInt64(bitPattern: Int64(displacement))
    }

    /// References to the slots from `lowest` to `highest`, sixteen offsets at a time.
    @inline(never) private func markAddresses(_ start: UInt64, _ end: UInt64, _ lowest: UInt64, _ highest: UInt64) {
        guard end > start, end &- start >= 8 else { return }
        let text = UnsafeRawPointer(bitPattern: UInt(start))!
        let last = Int(end &- start) &- 4 // offset
        // Up to four bytes follow a displacement, and it counts from after them.
        let first = UInt32(truncatingIfNeeded: start &+ 8 &- lowest), range = UInt32(truncatingIfNeeded: highest &- lowest &+ 5)
        var p = 0
        while p &+ 15 <= last {
            var hits = tracer_references(text + p, first &+ UInt32(truncatingIfNeeded: p), range)
            while hits != 0 {
                markAddress(text, p &+ hits.trailingZeroBitCount)
                hits &= hits &- 1
            }
            p &+= 16
        }
        while p <= last {
            markAddress(text, p)
            p &+= 1
        }
    }

    private func markAddress(_ text: UnsafeRawPointer, _ p: Int) {
        let address = target(text, p)
        if address &+ 4 &- low >= count &* 8 &+ 4 { return }
        for trailing in 0..<4 {
            guard let slot = index(address &+ UInt64(trailing == 3 ? 4 : trailing)) else { continue }
            let isCall =
                trailing == 0 && p >= 2 && text.load(fromByteOffset: p &- 2, as: UInt8.self) == 0xff
                && (text.load(fromByteOffset: p &- 1, as: UInt8.self) == 0x15
                    || text.load(fromByteOffset: p &- 1, as: UInt8.self) == 0x25)
            if !isCall { states[slot] |= CallOnlySlots.addressed }
        }
    }
}
#endif
