// Finds the GLOB_DAT slots that a module uses for calls alone. Such a slot is the -fno-plt form of a PLT call and may be rebound. A
// slot that is also loaded is a function pointer, and rebinding it would break its identity. The text of the module decides; each
// architecture has its own way to read it (TextScanX86.swift, TextScanArm64.swift).
import CSupport

struct CallOnlySlots {
    /// One state a word of the range of slots.
    let states: UnsafeMutablePointer<UInt8>
    let low: UInt64
    let count: UInt64
    /// One module is looked at after the other, with the loader's lock held, and most have few slots.
    private static let bufferBytes = 65536
    nonisolated(unsafe) private static var buffer: UnsafeMutablePointer<UInt8>?

    static let candidate: UInt8 = 1, called: UInt8 = 2, addressed: UInt8 = 4

    /// Slots lie in [low, high]; nil when memory is short.
    init?(low: UInt64, high: UInt64) {
        self.low = low
        count = (high &- low) / 8 &+ 1
        if count >= 1 << 24 { return nil }
        if count <= UInt64(CallOnlySlots.bufferBytes) {
            if CallOnlySlots.buffer == nil {
                CallOnlySlots.buffer = Memory.pages(CallOnlySlots.bufferBytes)?.assumingMemoryBound(to: UInt8.self)
            }
            guard let buffer = CallOnlySlots.buffer else { return nil }
            states = buffer
            states.update(repeating: 0, count: Int(count))
        } else {
            guard let buffer = Memory.pages(Memory.wholePages(Int(count))) else { return nil }
            states = buffer.assumingMemoryBound(to: UInt8.self)
        }
    }
    func release() {
        if states != CallOnlySlots.buffer { Memory.release(states, Memory.wholePages(Int(count))) }
    }

    func removeAll() { states.update(repeating: 0, count: Int(count)) }
    func add(_ slot: UInt64) { states[Int((slot &- low) / 8)] |= CallOnlySlots.candidate }
    func isCallOnly(_ slot: UInt64) -> Bool {
        let distance = slot &- low
        return distance / 8 < count
            && states[Int(distance / 8)] == CallOnlySlots.candidate | CallOnlySlots.called
    }

    /// Index of the slot at `address`, if that is one.
    @inline(__always) func index(_ address: UInt64) -> Int? {
        let distance = address &- low
        if distance &>> 3 >= count || distance & 7 != 0 { return nil }
        let n = Int(distance &>> 3)
        return states[n] & CallOnlySlots.candidate != 0 ? n : nil
    }

    func forEachText(_ image: Image, _ sections: CodeSections?, _ body: (UInt64, UInt64) -> Void) {
        if let sections { return sections.forEach(image.bias, body) }
        for n in 0..<image.segmentCount {
            let segment = image.segment(n)
            let wanted = ProgramHeader.executable | ProgramHeader.readable
            if segment.type == ProgramHeader.load && segment.flags & wanted == wanted {
                let start = image.bias &+ segment.address
                let end = start &+ min(segment.fileBytes, segment.memoryBytes)
                // gold and older linkers put the file's headers into the segment of the text: no code.
                body(max(start, min(image.headersEnd, end)), end)
            }
        }
    }
}
