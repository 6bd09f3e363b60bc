// Functions that capture their caller's context: they store their return address, or their caller's stack pointer, in memory
// that an argument points to, before they call anything. Whoever brings such a context back returns to that address, or unwinds
// from there: it must be the caller's own. An ordinary prologue does not look like it: what it stores of the two goes to the
// stack, and what it hands out of the stack's addresses lies in its own frame.
//
// Reading the code of every function would cost a start some page faults and cache misses for each of them: only functions whose name
// suggests it are read (`isNamed`), and the code decides. Among 6,772 functions that the libraries of GTK 3 call, these are 225. If the
// code does not show it (it is far from the entry, or cannot be read), a function is known by name alone: SpecialFunction.swift.
import CSupport

enum ContextCapture {
    /// Values that a register may be known to hold at a moment.
    enum Value: UInt8 {
        case unknown
        case argument // one of the first two, or an address at a fixed distance from it
        case returnAddress
        case caller // the stack pointer at entry, or above: what it was, or is going to be, in the caller
        case frame // an address in the function's own frame
    }
    static let mostInstructions = 64

    /// "…context…", "…jmp…", whatever the case: unw_getcontext, CaptureContext, setjmp's kin. Eight bytes at a time it is asked
    /// whether there is an x or a j at all.
    static func isNamed(_ name: Name) -> Bool {
        let bytes = UnsafeRawPointer(name.text), ones: UInt64 = 0x0101_0101_0101_0101
        var n = 0
        while n &+ 8 <= name.byteCount {
            let word = bytes.loadUnaligned(fromByteOffset: n, as: UInt64.self) | ones &<< 5 // small letters
            let x = word ^ (ones &* 0x78), j = word ^ (ones &* 0x6a)
            var hits = ((x &- ones) & ~x | (j &- ones) & ~j) & ones &<< 7 // the lowest bit of them is right
            while hits != 0 {
                if isSpelled(name.text, n &+ hits.trailingZeroBitCount / 8) { return true }
                hits &= hits &- 1
            }
            n &+= 8
        }
        while n < name.byteCount {
            if isSpelled(name.text, n) { return true }
            n &+= 1
        }
        return false
    }
    /// The x of context or the j of jmp is at `n`. What stands before a name in a table of strings is not read.
    private static func isSpelled(_ text: CText, _ n: Int) -> Bool {
        func letter(_ n: Int) -> UInt8 { text[n] | 0x20 } // the NUL becomes a blank
        if letter(n) == 0x6a { return letter(n &+ 1) == 0x6d && letter(n &+ 2) == 0x70 }
        return letter(n) == 0x78 && n >= 5 && letter(n &+ 1) == 0x74 && letter(n &- 1) == 0x65 && letter(n &- 2) == 0x74
            && letter(n &- 3) == 0x6e && letter(n &- 4) == 0x6f && letter(n &- 5) == 0x63
    }
}
