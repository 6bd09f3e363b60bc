// Marks of what leads to the first bytes of each function, other than calls of the function.

struct EntryMarks {
    /// Number of bytes watched at each function's start: more than any tactic replaces, after an endbr64.
    static let watched: UInt64 = 16

    /// A bit for each byte that is the target of: jumps and calls; tables and stored addresses; exceptions; the function's own jumps.
    var direct: UInt16 = 0
    var stored: UInt16 = 0
    var landing: UInt16 = 0
    var own: UInt16 = 0
    /// Other code jumps to the first byte, with a stack that is no caller's.
    var isJumpedInto = false
    /// Other code jumps to the first byte as to a function, always or on a condition.
    var isJumpedTo = false
    var isBranchedTo = false
    /// Its address lies in data, or is taken by an instruction, or is called.
    var isReferenced = false
    /// Its address lies in data, or is taken by an instruction, or bytes that are no known code may lead there.
    var isHeld = false
    /// A function that it calls looks up where it returns to.
    var isAsked = false
}

/// Marks of all entries, as an object: while some are iterated, others are set.
final class EntryMarkTable {
    private var marks: [EntryMarks]
    init(_ count: Int) { marks = Array(repeating: EntryMarks(), count: count) }

    subscript(_ index: Int) -> EntryMarks {
        get { marks[index] }
        _modify { yield &marks[index] }
    }
}

/// A jump or call that leads to watched bytes. Addresses are relative to the module's base.
struct EntryReference {
    enum Kind: UInt8 { case jump, conditional, call, guess, codeAddress }
    var site: UInt32
    var target: UInt32
    var source: Int32 // entry
    var kind: Kind
}

/// A bit for each byte of a module's text.
struct TextBits: @unchecked Sendable {
    private let bits: UnsafeMutablePointer<UInt64>
    private let words: Int
    private let text: Range<UInt64>

    init(_ text: Range<UInt64>) {
        self.text = text
        words = Int((text.upperBound - text.lowerBound) / 64) + 2
        bits = .allocate(capacity: words)
        bits.initialize(repeating: 0, count: words)
    }

    func free() { bits.deallocate() }

    @inline(__always) func contains(_ address: UInt64) -> Bool {
        guard text.contains(address) else { return false }
        let offset = address - text.lowerBound
        return bits[Int(offset >> 6)] >> (offset & 63) & 1 != 0
    }

    func insert(_ address: UInt64) {
        guard text.contains(address) else { return }
        let offset = address - text.lowerBound
        bits[Int(offset >> 6)] |= 1 << (offset & 63)
    }
}

/// Results of scanning all code.
struct ScannedCode {
    /// Properties of one entry's code.
    struct Body {
        /// Some bytes are no instructions, or a jump leads between two.
        var isBroken = false
        /// Its last instruction may go on after it.
        var runsOn = false
        /// It jumps by a register, takes an address within itself, and no table says how they belong together.
        var hasHiddenTargets = false
        /// It reads the address that it returns to.
        var readsReturnAddress = false
        /// It reads where its caller's frame is, which leads to the address that its caller returns to.
        var readsCallersFrame = false
        /// It jumps into the middle of another function.
        var jumpsInside = false
        /// It may run code that is not its own: calls, jumps elsewhere, system calls.
        var leadsElsewhere = false
        /// What may make a call of it long.
        var length = CallLength()
    }
    var references: [EntryReference] = []
    /// Direct calls and tail calls, entry by entry (Callers.swift).
    var transfers: [Transfer] = []
    /// Addresses that instructions take, other than starts of functions and addresses within their own.
    var bases: [UInt64] = []
    /// Targets of calls, and of jumps out of their own function, that are no function's first byte.
    var middles: [UInt64] = []
}
