// What leads to the first bytes of each function, other than calls of the function.

struct EntryMarks {
    /// So many bytes of each function are watched: more than any tactic replaces, behind an endbr64.
    static let watched: UInt64 = 16

    /// A bit for each byte. Of jumps and calls; of tables and stored addresses; of handlers; of jumps of the function's own.
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
    /// A function that it calls looks up where it returns to.
    var isAsked = false
}

/// Those of all entries, in one place: while they are gone through, others are marked.
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
    enum Kind: UInt8 { case jump, conditional, call, guess, label }
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
        let place = address - text.lowerBound
        return bits[Int(place >> 6)] >> (place & 63) & 1 != 0
    }

    func insert(_ address: UInt64) {
        guard text.contains(address) else { return }
        let place = address - text.lowerBound
        bits[Int(place >> 6)] |= 1 << (place & 63)
    }
}

/// What looking through all code has found.
struct ScannedCode {
    /// Of one entry.
    struct Body {
        /// Some bytes are no instructions, or a jump leads between two.
        var isBroken = false
        /// Its last instruction may go on behind it.
        var runsOn = false
        /// It jumps by a register, takes the address of a place within itself, and no table says how they belong together.
        var hasHiddenLabels = false
        /// It reads the address that it returns to.
        var readsReturnAddress = false
        /// It reads where its caller's frame is, which leads to the address that its caller returns to.
        var readsCallersFrame = false
        /// It jumps into the middle of another function.
        var jumpsInside = false
        /// It may run code that is not its own: calls, jumps elsewhere, system calls.
        var leadsElsewhere = false
    }
    var references: [EntryReference] = []
    /// What instructions take the address of, outside of code.
    var bases: [UInt64] = []
}
