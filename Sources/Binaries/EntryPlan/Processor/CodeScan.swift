// Scans of a module's code, for either architecture, and what they have in common: noting where code leads.
import ELF

protocol CodeScan {
    var finder: EntryFinder { get }
    init(_ finder: EntryFinder)
    mutating func scan(_ entry: FunctionEntry, _ index: Int) -> ScannedCode.Body
    /// Looks for jumps and calls in a range where nobody says which bytes begin an instruction.
    mutating func guessAll(_ low: UInt64, _ high: UInt64, _ index: Int)
}

/// Notes jumps, calls and addresses that lead to the first bytes of functions.
struct EntryFinder {
    let code: ModuleCode
    let frames: FrameTable
    /// The first bytes of all functions, each first byte, and first bytes of what has no name.
    let watched, starts, unnamed: TextBits
    private(set) var found = ScannedCode()

    init(_ code: ModuleCode, _ frames: FrameTable, _ entries: [FunctionEntry]) {
        (self.code, self.frames) = (code, frames)
        (watched, starts, unnamed) = (TextBits(code.text), TextBits(code.text), TextBits(code.text))
        for entry in entries {
            for offset in 0..<EntryMarks.watched { watched.insert(entry.address &+ offset) }
            starts.insert(entry.address)
            if entry.names.isEmpty { unnamed.insert(entry.address) }
        }
    }

    func free() { for bits in [watched, starts, unnamed] { bits.free() } }

    mutating func jump(
        _ site: UInt64, _ target: UInt64, _ entry: FunctionEntry, _ index: Int, _ body: inout ScannedCode.Body, _ kind: EntryReference.Kind
    ) {
        if !(target >= entry.address && target < entry.end) {
            body.leadsElsewhere = true
            if !starts.contains(target), code.text.contains(target) {
                body.jumpsInside = true
                found.middles.append(target)
            }
            transfer(site, target, index, &body)
        } else if target <= site {
            body.length.hasLoop = true
        }
        if watched.contains(target) { add(site, target, index, kind) }
    }

    mutating func call(_ site: UInt64, _ target: UInt64, _ index: Int, _ body: inout ScannedCode.Body) {
        body.leadsElsewhere = true
        transfer(site, target, index, &body)
        if starts.contains(target) ? unnamed.contains(target) : watched.contains(target) { add(site, target, index, .call) }
        if !starts.contains(target), code.text.contains(target) { found.middles.append(target) }
    }

    /// A call, or a jump out of the entry: as good as a call if it leads to a function's first byte.
    private mutating func transfer(_ site: UInt64, _ target: UInt64, _ index: Int, _ body: inout ScannedCode.Body) {
        if !starts.contains(target) {
            body.length.leadsToUnknown = true
        } else {
            body.length.calls = true
            found.transfers.append(Transfer(source: UInt32(index), target: UInt32(target - code.base), site: UInt32(site - code.base)))
        }
    }

    /// An instruction takes an address, which may be where a table begins.
    mutating func addBase(_ address: UInt64) { found.bases.append(address) }

    mutating func guess(_ site: UInt64, _ target: UInt64, _ index: Int) {
        if watched.contains(target) { add(site, target, index, .guess) }
    }

    mutating func add(_ site: UInt64, _ target: UInt64, _ index: Int, _ kind: EntryReference.Kind) {
        found.references.append(
            EntryReference(site: UInt32(site - code.base), target: UInt32(target - code.base), source: Int32(index), kind: kind))
    }
}
