// Memory at addresses that a jump can reach although only some bytes of its distance are free (EntryJump.swift). There it lands: what came
// before it is undone, and a second jump leads to the stub.
//
// It lies where the program has nothing: neither below its heap's next 128 MB, which sbrk(2) may take, nor where its stack may grow. Pieces
// of 64 KB, of which a page is there once something was written to it. None is ever given back once code leads there: a thread may be in it.
import CSupport

/// For one module, before any of its code leads there.
struct Landings {
    private static let pieceBytes: UInt64 = 1 << 16, slotBytes: UInt64 = 16, slots = 4096
    private static let mostPieces = 4096, tableSize = 16384
    /// Limit of the pieces of all modules: each may be a mapping of its own, of which a process has 65,530 (vm.max_map_count).
    private static let mostMapped = 16384
    nonisolated(unsafe) private static var mapped = 0
    private static let heapAhead: UInt64 = 128 << 20, stackAhead: UInt64 = 1 << 30

    private let scratch: UnsafeMutableRawPointer
    private let pieces: UnsafeMutablePointer<UInt64> // addresses
    private let table: UnsafeMutablePointer<UInt64> // open addressing: an address, and 1 + the number of its piece, or `isTaken`
    private let used: UnsafeMutablePointer<UInt64> // a bit a slot
    private var count = 0
    private var known = 0
    private let heapEnd: UInt64

    private static let isTaken: UInt64 = 0xffff // another mapping is there
    private static let tableOffset = mostPieces &* 8, usedOffset = tableOffset &+ tableSize &* 8
    private static let scratchBytes = usedOffset &+ mostPieces &* slots / 8

    /// nil: there is no memory.
    init?() {
        guard let scratch = Memory.pages(Landings.scratchBytes) else { return nil }
        self.scratch = scratch
        pieces = scratch.assumingMemoryBound(to: UInt64.self)
        table = (scratch + Landings.tableOffset).assumingMemoryBound(to: UInt64.self)
        used = (scratch + Landings.usedOffset).assumingMemoryBound(to: UInt64.self)
        heapEnd = UInt64(bitPattern: Int64(SystemCall.call(SystemCall.brk, 0, 0, 0, 0, 0, 0)))
    }

    /// Takes so many bytes, zeros, which begin from `low` to `high`. nil: there are none.
    mutating func take(_ byteCount: Int, from low: UInt64, to high: UInt64) -> UInt64? {
        let offset = low & (Landings.slotBytes &- 1)
        if low == high && offset != 0 {
            // All slots that it touches.
            let slots = (Int(offset) &+ byteCount &+ Int(Landings.slotBytes) &- 1) / Int(Landings.slotBytes), start = low &- offset
            return take(slots, in: start & ~(Landings.pieceBytes &- 1), from: start, to: start) == nil ? nil : low
        }
        let slots = (byteCount &+ Int(Landings.slotBytes) &- 1) / Int(Landings.slotBytes)
        let first = low & ~(Landings.pieceBytes &- 1), last = high & ~(Landings.pieceBytes &- 1)
        // Functions that begin alike reach nearly the same addresses: from the one with most zeros on.
        var start = first
        var granule = Landings.pieceBytes
        while granule < 1 << 40, high & ~(granule &- 1) >= low {
            start = high & ~(granule &- 1)
            granule = granule &* 2
        }
        start = max(start, first)
        var piece = start
        for _ in 0..<16 where piece <= last {
            if let found = take(slots, in: piece, from: low, to: high) { return found }
            piece = piece &+ Landings.pieceBytes
        }
        piece = start
        for _ in 0..<16 where piece > first {
            piece = piece &- Landings.pieceBytes
            if let found = take(slots, in: piece, from: low, to: high) { return found }
        }
        return nil
    }
    private mutating func take(_ slots: Int, in piece: UInt64, from low: UInt64, to high: UInt64) -> UInt64? {
        guard let number = number(of: piece) else { return nil }
        let bits = used + number &* (Landings.slots / 64)
        var slot = low <= piece ? 0 : Int((low &- piece &+ Landings.slotBytes &- 1) / Landings.slotBytes)
        let last = min(Landings.slots &- slots, Int(min(high &- piece, Landings.pieceBytes &- 1) / Landings.slotBytes))
        while slot <= last {
            if bits[slot / 64] == .max {
                slot = (slot / 64 &+ 1) &* 64
                continue
            }
            var free = 0
            while free < slots && bits[(slot &+ free) / 64] &>> UInt64((slot &+ free) & 63) & 1 == 0 { free = free &+ 1 }
            if free == slots {
                for n in slot..<(slot &+ slots) { bits[n / 64] |= 1 &<< UInt64(n & 63) }
                return piece &+ UInt64(slot) &* Landings.slotBytes
            }
            slot = slot &+ free &+ 1
        }
        return nil
    }

    /// Returns the number of the piece at this address, which is mapped if it can be.
    private mutating func number(of piece: UInt64) -> Int? {
        var bucket = Int(truncatingIfNeeded: (piece &>> 16) &* 0x9e37_79b9 &>> 8) & (Landings.tableSize &- 1)
        while table[bucket] != 0 {
            if table[bucket] & ~Landings.isTaken == piece {
                let value = table[bucket] & Landings.isTaken
                return value == Landings.isTaken ? nil : Int(value) &- 1
            }
            bucket = (bucket &+ 1) & (Landings.tableSize &- 1)
        }
        if piece == 0 || known &+ 1 >= Landings.tableSize / 2 || count == Landings.mostPieces { return nil }
        known = known &+ 1
        if !isFree(piece) || Landings.mapped == Landings.mostMapped || Memory.pages(at: piece, Int(Landings.pieceBytes)) == nil {
            table[bucket] = piece | Landings.isTaken
            return nil
        }
        Landings.mapped = Landings.mapped &+ 1
        pieces[count] = piece
        count = count &+ 1
        table[bucket] = piece | UInt64(count)
        return count &- 1
    }
    private func isFree(_ piece: UInt64) -> Bool {
        let end = piece &+ Landings.pieceBytes
        if piece >= 1 &<< 47 || end > heapEnd && piece < heapEnd &+ Landings.heapAhead { return false }
        let stack = Process.mainStackHigh
        return end <= stack &- min(Landings.stackAhead, stack) || piece >= stack
    }

    /// What was written may be executed from now on. False: the kernel refuses, and nothing is left.
    func publish() -> Bool {
        for n in 0..<count where !Memory.protectCode(pieces[n], Landings.pieceBytes) {
            for k in 0..<count { Memory.release(UnsafeMutableRawPointer(bitPattern: UInt(pieces[k])), Int(Landings.pieceBytes)) }
            return false
        }
        return true
    }
    func release() { Memory.release(scratch, Landings.scratchBytes) }
}
