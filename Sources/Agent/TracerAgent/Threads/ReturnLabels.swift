// Labels, which recorded calls return to. Each address that calls return to has one label, for the life of the process: code that calls
// the function and, on return, comes back to the trampolines, and after it, at a fixed distance, the address itself. The callee finds
// the label in its return slot. A return therefore needs no record, and none can be lost: a stack may be left, copied, moved to another
// thread or returned from twice.
//
// The trampolines look labels up and take new ones by themselves, without a lock (CSupport/*/trampoline.S, FIND_LABEL). Here
// labels are prepared, some at a time, and the table is exchanged for a larger one; an address that two threads bring at the
// same moment may get two labels, which are equally good.
import CSupport

enum ReturnLabels {
    nonisolated(unsafe) private static var lock = Lock()
    /// In a forked child: another thread of the parent may have held it.
    static func becomeChild() { lock = Lock() }

    /// Calls through slots, and calls of patched functions where the code of their labels is another.
    enum Kind: Int { // a raw value: as RelocationState
        case slot = 0, patched = 1
        static var ofPatched: Kind { Kind(rawValue: Int(LABEL_KINDS) &- 1)! }
    }
    private static func state(_ kind: Kind) -> UnsafeMutablePointer<label_state> { tracer_labels_of_kind(kind.rawValue) }
    private static func forEachKind(_ body: (Kind, UnsafeMutablePointer<label_state>) -> Void) {
        body(.slot, state(.slot))
        if LABEL_KINDS > 1 { body(.patched, state(.patched)) }
    }

    /// The first label, in this library's image or in libtracer-labels.so's.
    private static var areaStart: UInt64 { tracer_label_low() }
    private static let blockBytes = 2 &* UInt64(LABEL_BLOCK_CODE)
    nonisolated(unsafe) private static var blockCount: UInt64 = 1

    /// True if functions are patched in this process. Set before `begin`.
    nonisolated(unsafe) static var servesPatched = false
    /// Returns the range of one kind. Its labels lie side by side; what is between two blocks of theirs is no label (`following`).
    private static func range(_ kind: Kind) -> (first: UInt64, end: UInt64) {
        let end = areaStart &+ blockCount &* blockBytes &- UInt64(LABEL_BLOCK_CODE)
        if !servesPatched || LABEL_KINDS == 1 { return kind == .slot ? (areaStart, end) : (end, end) }
        let patched =
            areaStart
            &+ (blockCount == 1 ? UInt64(LABEL_SLOT_COUNT) &* UInt64(LABEL_BYTES) : UInt64(LABEL_LIBRARY_SLOT_BLOCKS) &* blockBytes)
        return kind == .patched ? (patched, end) : blockCount == 1 ? (areaStart, patched) : (areaStart, patched &- UInt64(LABEL_BLOCK_CODE))
    }
    /// The address itself, or, where that is after the labels of a block, the beginning of the next one.
    private static func following(_ address: UInt64) -> UInt64 {
        let offset = (address &- areaStart) % blockBytes
        return offset < UInt64(LABEL_BLOCK_CODE) ? address : address &- offset &+ blockBytes
    }
    private static func blockEnd(_ address: UInt64) -> UInt64 {
        address &- (address &- areaStart) % blockBytes &+ UInt64(LABEL_BLOCK_CODE)
    }
    /// How many labels of this kind lie before it.
    private static func number(_ label: UInt64, _ kind: Kind) -> UInt64 {
        func codeBytes(_ address: UInt64) -> UInt64 {
            let offset = address &- areaStart
            return offset / blockBytes &* UInt64(LABEL_BLOCK_CODE) &+ min(offset % blockBytes, UInt64(LABEL_BLOCK_CODE))
        }
        return (codeBytes(label) &- codeBytes(range(kind).first)) / step(kind)
    }

    /// Chooses the label library, where it is there and the trampolines and its labels reach each other.
    private static func chooseArea() {
        tracer_set_label_area(tracer_address_labels(), UInt64(LABEL_BLOCK_CODE))
        guard let more = tracer_find_more_labels(), more.pointee.version == UInt32(LABEL_LIBRARY_VERSION),
            more.pointee.block_count > UInt32(LABEL_LIBRARY_SLOT_BLOCKS)
        else { return }
        let count = UInt64(min(more.pointee.block_count, UInt32(LABEL_LIBRARY_BLOCKS))), span = count &* blockBytes
        let low = UInt64(UInt(bitPattern: more)) &+ UInt64(bitPattern: more.pointee.distance), here = tracer_code_low()
        if max(low &+ span, here) &- min(low, here) >= UInt64(Architecture.stubReach) { return }
        blockCount = count
        tracer_set_label_area(low, span &- UInt64(LABEL_BLOCK_CODE))
    }

    /// From one to the next.
    private static func step(_ kind: Kind) -> UInt64 { UInt64(LABEL_BYTES) &<< (kind == .patched ? 1 : 0) }
    /// The first of all stands for an empty entry of the table, the second for its end.
    private static func firstTaken(_ kind: Kind) -> UInt64 { kind == .slot ? end &+ UInt64(LABEL_BYTES) : range(kind).first }
    private static let leastTable = 1024
    private static var largestTable: Int { 2 &* Int(LABEL_COUNT) &* (blockCount == 1 ? 1 : 8) }
    /// Entries after the table, where the search that begins at its last entries goes on. The last of them is the end.
    private static let guardCount = 64

    static func begin() -> Bool {
        chooseArea()
        forEachKind { kind, state in
            state.pointee.written = range(kind).first
            state.pointee.next = firstTaken(kind)
            tracer_close_label_table(kind.rawValue, end)
        }
        if !prepare(.slot) { return false }
        open()
        return true
    }
    /// Functions have been patched.
    static func beginPatched() -> Bool {
        lock.lock()
        defer { lock.unlock() }
        return state(.ofPatched).pointee.table_count > 0 || prepare(.ofPatched)
    }

    /// Returns true if the return address is a label, which a recorded function was called from.
    static func contains(_ address: UInt64) -> Bool { address &- areaStart < tracer_label_span() }
    static func label(containing address: UInt64) -> UInt64 { address & ~(UInt64(LABEL_BYTES) &- 1) }
    private static func kind(of label: UInt64) -> Kind { label < range(.slot).end ? .slot : .patched }
    /// Returns the return address that a label stands for; any other address is its own.
    static func returnAddress(_ address: UInt64) -> UInt64 {
        contains(address) ? tracer_label_return(label(containing: address)).pointee : address
    }

    /// 24 bits for a label, and none for another address.
    static func tag(of label: UInt64) -> UInt32 {
        contains(label) ? UInt32(truncatingIfNeeded: (label &- areaStart) / UInt64(LABEL_BYTES)) : 0
    }
    static func returnAddress(tag: UInt32) -> UInt64 { tag == 0 ? 0 : returnAddress(areaStart &+ UInt64(tag) &* UInt64(LABEL_BYTES)) }

    /// The label of an address; nil when there are no more, or nothing can return there: to the word below the first frame of a stack.
    static func label(of address: UInt64, _ kind: Kind = .slot) -> UInt64? {
        if address == 0 { return nil }
        // Without the lock, as the trampolines look. On a signal stack each call comes here, and on a busy machine whoever has a lock has no CPU for
        // longer than it takes until the next signal.
        if let known = known(address, kind) { return known }
        lock.lock()
        defer { lock.unlock() }
        if let known = known(address, kind) { return known } // another thread was faster
        guard let label = take(address, kind) else { return nil }
        let bucket = entry(of: address, in: state(kind).pointee.open_table) // another one, perhaps
        if bucket.pointee == areaStart { tracer_store_release_64(bucket, label) }
        return label
    }
    private static func known(_ address: UInt64, _ kind: Kind) -> UInt64? {
        var bucket = first(of: address, in: state(kind).pointee.open_table)
        while true {
            let label = tracer_load_acquire(bucket) // once: a trampoline may put one there
            if label == areaStart || label == end { return nil }
            if tracer_label_return(label).pointee == address { return label }
            bucket += 1
        }
    }
    private static var end: UInt64 { areaStart &+ UInt64(LABEL_BYTES) }

    /// Returns the entry of the address in the table, the empty one for it, or the table's end.
    private static func entry(of address: UInt64, in table: UnsafeMutablePointer<UInt64>) -> UnsafeMutablePointer<UInt64> {
        var bucket = first(of: address, in: table)
        while bucket.pointee != areaStart && bucket.pointee != end && tracer_label_return(bucket.pointee).pointee != address { bucket += 1 }
        return bucket
    }

    private static func first(of address: UInt64, in table: UnsafeMutablePointer<UInt64>) -> UnsafeMutablePointer<UInt64> {
        let hash = UInt32(truncatingIfNeeded: address) &* UInt32(LABEL_HASH)
        return table + Int(hash & UInt32(truncatingIfNeeded: table[-1])) / 8
    }

    /// A label that nobody has.
    private static func take(_ address: UInt64, _ kind: Kind) -> UInt64? {
        let state = state(kind)
        if state.pointee.free != 0 { return takeFree(address, state) }
        if state.pointee.next >= limit(kind) && !prepare(kind) {
            fill(kind)
            return nil
        }
        let label = tracer_atomic_add(&state.pointee.next, step(kind))
        if label >= limit(kind) { return nil } // others have taken the rest: the next call comes here again
        tracer_label_return(label).pointee = address
        return label
    }

    // MARK: - Code without a module

    /// Calls may come from code that was generated at run time: trampolines take no new labels by themselves.
    nonisolated(unsafe) private(set) static var isWatching = false
    /// How far labels are prepared, then.
    nonisolated(unsafe) private static var watchedLimit: UInt64 = 0
    private static func watches(_ kind: Kind) -> Bool { isWatching && kind == .ofPatched }
    private static func limit(_ kind: Kind) -> UInt64 { watches(kind) ? watchedLimit : state(kind).pointee.limit }

    /// From now on each new call site of a patched function comes to the slow path.
    static func watch() {
        lock.lock()
        if !isWatching {
            isWatching = true
            state(.ofPatched).pointee.limit = 0
        }
        lock.unlock()
    }

    // MARK: - Recording on and off

    /// The trampolines find labels. Else none is found, and who finds none asks whether recording is on: so every thread learns
    /// it at its next call, and nothing is written that belongs to a thread. It may have ended, and its memory be anybody's.
    nonisolated(unsafe) private static var isOpen = false

    static func open() {
        lock.lock()
        isOpen = true
        forEachKind { if $1.pointee.table_count > 0 { tracer_publish_label_table($0.rawValue, $1.pointee.open_table) } }
        InstrumentedTable.open()
        lock.unlock()
    }
    static func close() {
        lock.lock()
        isOpen = false
        forEachKind { kind, _ in tracer_close_label_table(kind.rawValue, end) }
        InstrumentedTable.close()
        lock.unlock()
    }

    // MARK: - Labels of modules that are gone

    /// In the place of the return address: of code that is no longer mapped.
    private static let gone: UInt64 = 3

    /// The code there has been unmapped: nothing can return to it. Its labels are used again first: while there are any, the limit
    /// keeps the trampolines from taking others, so that a program which loads and unloads for ever does not grow.
    static func forget(_ low: UInt64, _ high: UInt64) {
        lock.lock()
        defer { lock.unlock() }
        forEachKind { kind, state in
            forEachTaken(kind) { label in
                if tracer_label_return(label).pointee &- low >= high &- low { return }
                tracer_label_return(label).pointee = gone
                tracer_label_next(label).pointee = state.pointee.free
                state.pointee.free = label
                state.pointee.limit = 0
                state.pointee.is_full = 0
            }
        }
    }
    private static func forEachTaken(_ kind: Kind, _ body: (UInt64) -> Void) {
        let state = state(kind)
        var label = firstTaken(kind)
        while label < min(state.pointee.next, state.pointee.written) {
            body(label)
            label = following(label &+ step(kind))
        }
    }
    private static func takeFree(_ address: UInt64, _ state: UnsafeMutablePointer<label_state>) -> UInt64 {
        let label = state.pointee.free
        state.pointee.free = tracer_label_next(label).pointee
        tracer_label_next(label).pointee = 0
        tracer_label_return(label).pointee = address
        tracer_changed_label(label)
        return label
    }
    private static func fill(_ kind: Kind) {
        let state = state(kind), end = range(kind).end
        if state.pointee.is_full != 0 { return }
        state.pointee.is_full = 1
        // Unloading a module frees labels again, for a while.
        if hasWarned || state.pointee.written < end && Message.codeIsRefused { return }
        hasWarned = true
        Message.warn {
            $0.append("calls from more than ")
            $0.append(decimal: number(end, kind) &- number(firstTaken(kind), kind))
            $0.append(" call sites: calls from further ones are recorded without their duration")
        }
    }
    nonisolated(unsafe) private static var hasWarned = false

    // MARK: - More labels of one address

    /// Another label of the same address, for a program that copies its stacks: where a call is still open that was made from
    /// the same call site at the same stack pointer, only the label can distinguish the two. They are handed
    /// out in turn; `isOpen` says which are in use.
    static func another(of label: UInt64, _ isOpen: (UInt64) -> Bool) -> UInt64? {
        lock.lock()
        defer { lock.unlock() }
        let mostTried = 16
        let latest = tracer_label_next(label)!
        var candidate = latest.pointee
        if candidate != 0 {
            for _ in 0..<mostTried {
                candidate = tracer_label_next(candidate).pointee & ~isAnother
                if !isOpen(candidate) {
                    latest.pointee = candidate
                    return candidate
                }
            }
        }
        guard let fresh = take(tracer_label_return(label).pointee, kind(of: label)) else { return nil }
        let following = candidate == 0 ? fresh : tracer_label_next(candidate).pointee & ~isAnother
        tracer_label_next(fresh).pointee = following | isAnother
        if candidate != 0 { tracer_label_next(candidate).pointee = fresh | isAnother }
        latest.pointee = fresh
        return fresh
    }
    /// In LABEL_NEXT of one that is not in the table: they form a ring.
    private static let isAnother: UInt64 = 1

    // MARK: - Capacity

    /// Code for some more, or a larger table; the limit up to which they may be taken. False: there are no more.
    private static func prepare(_ kind: Kind) -> Bool {
        let state = state(kind)
        // No labels are taken after a block's end: the limit is not beyond it.
        if following(state.pointee.next) != state.pointee.next { state.pointee.next = following(state.pointee.next) }
        if state.pointee.next >= state.pointee.written && !writeCode(kind) { return false }
        if number(state.pointee.next, kind) >= UInt64(state.pointee.table_count) / 2 && !grow(kind) { return false }
        let left = UInt64(state.pointee.table_count) / 2 &- number(state.pointee.next, kind)
        let limit = min(min(state.pointee.written, blockEnd(state.pointee.next)), state.pointee.next &+ left &* step(kind))
        if watches(kind) { watchedLimit = limit } else { state.pointee.limit = limit }
        return true
    }

    private static func writeCode(_ kind: Kind) -> Bool {
        let state = state(kind), start = following(state.pointee.written), page = UInt64(Memory.pageBytes), limit = range(kind).end
        if start >= limit { return false }
        // A kind of which many are wanted will need more.
        let wanted = number(start, kind) &* step(kind) < 8 &* page ? page : 8 &* page
        let bytes = min(wanted, min(blockEnd(start), limit) &- start)
        if !Memory.protect(start &+ UInt64(LABEL_RETURN), bytes, Memory.readWrite) || !Memory.protect(start, bytes, Memory.readWrite) {
            return Message.refuseCode()
        }
        var label = start
        while label < start &+ bytes {
            let address = UnsafeMutableRawPointer(bitPattern: UInt(label))!
            if kind == .slot {
                ReturnLabel.write(at: address, returned: Trampolines.returned(Trampolines.set))
            } else {
                ReturnLabel.writePatched(at: address, returned: Trampolines.returned(Trampolines.patchedSet))
            }
            label &+= step(kind)
        }
        if !Memory.protectCode(start, bytes) { return Message.refuseCode() }
        if start == areaStart {
            tracer_label_return(areaStart).pointee = UInt64(LABEL_EMPTY)
            tracer_label_return(end).pointee = UInt64(LABEL_END)
        }
        state.pointee.written = start &+ bytes
        return true
    }

    /// The old table stays: a trampoline may be looking into it.
    private static func grow(_ kind: Kind) -> Bool {
        let state = state(kind), old = Int(state.pointee.table_count)
        let wanted = min(max(old &* 4, leastTable), largestTable)
        guard old < wanted, let pages = Memory.pages((wanted &+ guardCount &+ 1) &* 8) else { return false }
        state.pointee.table_count = UInt32(wanted)
        let mask = pages.assumingMemoryBound(to: UInt64.self), table = mask + 1
        mask.pointee = UInt64(wanted &- 1) &* 8
        for n in 0..<(wanted &+ guardCount &- 1) { table[n] = areaStart }
        table[wanted &+ guardCount &- 1] = end
        // Written before the table can be seen: by an address that depends on the load of it.
        forEachTaken(kind) { label in
            let address = tracer_label_return(label).pointee
            if address > gone && tracer_label_next(label).pointee & isAnother == 0 {
                let bucket = entry(of: address, in: table)
                if bucket.pointee == areaStart { bucket.pointee = label }
            }
        }
        tracer_fence() // who looks without the lock finds all of it
        state.pointee.open_table = table
        if isOpen { tracer_publish_label_table(kind.rawValue, table) }
        return true
    }
}
