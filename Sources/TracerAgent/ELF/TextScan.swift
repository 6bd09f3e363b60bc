// Which GLOB_DAT slots does a module use for calls alone? Such a slot is the -fno-plt form of a PLT call and may be
// rebound. A slot that is also loaded is a function pointer, and rebinding it would break its identity.
//
// The text is searched for every rip-relative reference to a slot, whatever the instruction: at each byte offset p,
// does p + 4 + int32(p) fall on one (with the distances of 1, 2 and 4 bytes of trailing immediate)? Only ff 15
// (call *slot) and ff 25 (jmp *slot) count as calls; all else, known or not, counts as taking the address.
// The expensive question is asked only of slots for which the cheap one, "is there a call at all", says yes.
import CSupport

struct CallOnlySlots {
    /// One state a word of the range of slots.
    private var states: UnsafeMutablePointer<UInt8>
    private let low: UInt64
    private let count: UInt64
    private var stateBytes: Int

    private static let candidate: UInt8 = 1, called: UInt8 = 2, addressed: UInt8 = 4

    /// Slots lie in [low, high]; nil when memory is short.
    init?(low: UInt64, high: UInt64) {
        self.low = low
        count = (high &- low) / 8 &+ 1
        stateBytes = (Int(count) &+ 4095) & ~4095
        guard count < 1 << 24, let room = Memory.pages(stateBytes) else { return nil }
        states = room.assumingMemoryBound(to: UInt8.self)
    }
    func release() { Memory.release(states, stateBytes) }

    func add(_ slot: UInt64) { states[Int((slot &- low) / 8)] |= CallOnlySlots.candidate }
    func isCallOnly(_ slot: UInt64) -> Bool {
        states[Int((slot &- low) / 8)] == CallOnlySlots.candidate | CallOnlySlots.called
    }

    /// Index of the slot at `address`, if that is one.
    @inline(__always) private func index(_ address: UInt64) -> Int? {
        let distance = address &- low
        if distance &>> 3 >= count || distance & 7 != 0 { return nil }
        let n = Int(distance &>> 3)
        return states[n] & CallOnlySlots.candidate != 0 ? n : nil
    }

    mutating func scan(_ image: Image) {
        var anyCall = false
        forEachText(image) { start, end in
            if markCalls(start, end) { anyCall = true }
        }
        if !anyCall { return }
        for n in 0..<Int(count) where states[n] & CallOnlySlots.called == 0 { states[n] = 0 }
        forEachText(image) { start, end in markAddresses(start, end) }
    }

    private func forEachText(_ image: Image, _ body: (UInt64, UInt64) -> Void) {
        for n in 0..<image.segmentCount {
            let segment = image.segment(n)
            if segment.type == ProgramHeader.load && segment.flags & ProgramHeader.executable != 0 {
                let start = image.bias &+ segment.address
                // gold and older linkers put the file's headers into the segment of the text: no code.
                body(max(start, min(image.headersEnd, start &+ segment.fileBytes)), start &+ segment.fileBytes)
            }
        }
    }

    /// Finds ff 15 and ff 25, sixteen bytes at a time.
    private func markCalls(_ start: UInt64, _ end: UInt64) -> Bool {
        guard end &- start >= 24 else { return false }
        let text = UnsafeRawPointer(bitPattern: UInt(start))!
        let count = Int(end &- start)
        let escape = SIMD16<UInt8>(repeating: 0xff), call = SIMD16<UInt8>(repeating: 0x05)
        var any = false, p = 0
        while p &+ 22 <= count {
            let first = text.loadUnaligned(fromByteOffset: p, as: SIMD16<UInt8>.self)
            let second = text.loadUnaligned(fromByteOffset: p &+ 1, as: SIMD16<UInt8>.self)
            // 15 and 25 differ in bits 4 and 5; 05 and 35 pass this filter too and are sorted out below.
            let low = second & SIMD16<UInt8>(repeating: 0xcf)
            let hit = (first .== escape) .& (low .== call)
            let words = unsafeBitCast(hit, to: SIMD2<UInt64>.self)
            if words[0] | words[1] != 0 {
                for n in p..<(p &+ 16) where text.load(fromByteOffset: n, as: UInt8.self) == 0xff {
                    let operation = text.load(fromByteOffset: n &+ 1, as: UInt8.self)
                    if operation != 0x15 && operation != 0x25 { continue }
                    if let slot = index(target(text, n &+ 2)) {
                        states[slot] |= CallOnlySlots.called
                        any = true
                    }
                }
            }
            p &+= 16
        }
        while p &+ 6 <= count {
            let operation = text.load(fromByteOffset: p &+ 1, as: UInt8.self)
            if text.load(fromByteOffset: p, as: UInt8.self) == 0xff && (operation == 0x15 || operation == 0x25),
               let slot = index(target(text, p &+ 2)) {
                states[slot] |= CallOnlySlots.called
                any = true
            }
            p &+= 1
        }
        return any
    }

    /// Where the 32-bit displacement at offset `p` points when nothing follows it.
    @inline(__always) private func target(_ text: UnsafeRawPointer, _ p: Int) -> UInt64 {
        let displacement = text.loadUnaligned(fromByteOffset: p, as: Int32.self)
        return UInt64(UInt(bitPattern: text)) &+ UInt64(p) &+ 4 &+ UInt64(bitPattern: Int64(displacement))
    }

    private func markAddresses(_ start: UInt64, _ end: UInt64) {
        guard end &- start >= 8 else { return }
        let text = UnsafeRawPointer(bitPattern: UInt(start))!
        let last = Int(end &- start) &- 4
        let range = count &* 8
        for p in 0...last {
            let address = target(text, p)
            if address &+ 4 &- low >= range &+ 4 { continue }
            for trailing in 0..<4 {
                guard let slot = index(address &+ UInt64(trailing == 3 ? 4 : trailing)) else { continue }
                let isCall = trailing == 0 && p >= 2 && text.load(fromByteOffset: p &- 2, as: UInt8.self) == 0xff
                    && (text.load(fromByteOffset: p &- 1, as: UInt8.self) == 0x15
                        || text.load(fromByteOffset: p &- 1, as: UInt8.self) == 0x25)
                if !isCall { states[slot] |= CallOnlySlots.addressed }
            }
        }
    }
}
