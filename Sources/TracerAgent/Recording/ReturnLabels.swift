// Where traced calls return to. Each address that calls return to has one label, for the life of the process: code that
// calls the function and, on return, comes back to the trampolines, and behind it, at a fixed distance, the address itself.
// The label is what the callee finds in its return slot. So a return needs no record, and none can be lost: a stack may be
// left, copied, moved to another thread or returned from twice.
//
// The trampolines look labels up and take new ones by themselves, without a lock (arch/*/trampoline.S, FIND_LABEL). Here
// labels are prepared, some at a time, and the table is exchanged for a larger one; an address that two threads bring at the
// same moment may get two labels, which are equally good.
import CSupport

enum ReturnLabels {
    nonisolated(unsafe) private static var lock = SpinLock()
    /// In a forked child: another thread of the parent may have held it.
    static func becomeChild() { lock = SpinLock() }

    private static var state: UnsafeMutablePointer<label_state> { tracer_label_room() }
    private static var first: UInt64 { tracer_address_labels() }
    private static let byteCount = UInt64(LABEL_COUNT) &* UInt64(LABEL_BYTES)
    /// The code of those below has been written.
    nonisolated(unsafe) private static var written: UInt64 = 0
    nonisolated(unsafe) private static var tableCount = 0
    private static let leastTable = 1024, largestTable = 2 * Int(LABEL_COUNT)
    /// Behind the table: where the search that begins at its last entries goes on. The last of them is the end.
    private static let guardCount = 64

    static func begin() -> Bool {
        written = first
        state.pointee.next = first &+ 2 &* UInt64(LABEL_BYTES) // the first stands for an empty entry, the second for the end
        return prepare()
    }

    /// Whether it is the label that a traced function was called from.
    static func contains(_ address: UInt64) -> Bool { address &- first < byteCount }
    static func label(containing address: UInt64) -> UInt64 { address & ~(UInt64(LABEL_BYTES) &- 1) }
    /// What is in a return slot, or the address that it stands for.
    static func returnAddress(_ address: UInt64) -> UInt64 {
        contains(address) ? tracer_label_return(label(containing: address)).pointee : address
    }

    /// The label of an address; nil when there are no more.
    static func label(of address: UInt64) -> UInt64? {
        lock.lock()
        defer { lock.unlock() }
        let known = entry(of: address, in: state.pointee.table)
        if known.pointee != first && known.pointee != end { return known.pointee }
        guard let label = take(address) else { return nil }
        let place = entry(of: address, in: state.pointee.table) // another one, perhaps
        if place.pointee == first { tracer_store_release_64(place, label) }
        return label
    }
    private static var end: UInt64 { first &+ UInt64(LABEL_BYTES) }

    /// Where the address is in the table, or is to be put, or its end.
    private static func entry(of address: UInt64, in table: UnsafeMutablePointer<UInt64>) -> UnsafeMutablePointer<UInt64> {
        let hash = UInt32(truncatingIfNeeded: address) &* UInt32(LABEL_HASH)
        var place = table + Int(hash & UInt32(truncatingIfNeeded: table[-1])) / 8
        while place.pointee != first && place.pointee != end && tracer_label_return(place.pointee).pointee != address { place += 1 }
        return place
    }

    /// A label that nobody has.
    private static func take(_ address: UInt64) -> UInt64? {
        if free != 0 { return takeFree(address) }
        if state.pointee.next >= state.pointee.limit && !prepare() {
            fill()
            return nil
        }
        let label = tracer_atomic_add(&state.pointee.next, UInt64(LABEL_BYTES))
        if label >= state.pointee.limit { return nil } // others have taken the rest: the next call comes here again
        tracer_label_return(label).pointee = address
        return label
    }

    // MARK: - Labels of modules that are gone

    /// In the place of the return address: of code that is no longer mapped.
    private static let gone: UInt64 = 2
    /// Such labels, linked by LABEL_NEXT. They are used again first: while there are any, the limit keeps the trampolines from
    /// taking others, so that a program which loads and unloads for ever does not grow.
    nonisolated(unsafe) private static var free: UInt64 = 0

    /// The code there has been unmapped: nothing can return to it.
    static func forget(_ low: UInt64, _ high: UInt64) {
        lock.lock()
        defer { lock.unlock() }
        var label = end &+ UInt64(LABEL_BYTES)
        while label < min(state.pointee.next, written) {
            if tracer_label_return(label).pointee &- low < high &- low {
                tracer_label_return(label).pointee = gone
                tracer_label_next(label).pointee = free
                free = label
                state.pointee.limit = 0
                state.pointee.is_full = 0
            }
            label &+= UInt64(LABEL_BYTES)
        }
    }
    private static func takeFree(_ address: UInt64) -> UInt64 {
        let label = free
        free = tracer_label_next(label).pointee
        tracer_label_next(label).pointee = 0
        tracer_label_return(label).pointee = address
        return label
    }
    private static func fill() {
        if state.pointee.is_full != 0 { return }
        state.pointee.is_full = 1
        Message.say { $0.append("calls from more than 65,534 places: those from others are recorded without their length") }
    }

    // MARK: - More labels of one address

    /// Another label of the same address, for a program that copies its stacks: where a call is still open that was made from
    /// the same place of the code at the same place of the stack, only the label can tell the two apart. They are handed
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
        guard let fresh = take(tracer_label_return(label).pointee) else { return nil }
        let following = candidate == 0 ? fresh : tracer_label_next(candidate).pointee & ~isAnother
        tracer_label_next(fresh).pointee = following | isAnother
        if candidate != 0 { tracer_label_next(candidate).pointee = fresh | isAnother }
        latest.pointee = fresh
        return fresh
    }
    /// In LABEL_NEXT of one that is not in the table: they form a ring.
    private static let isAnother: UInt64 = 1

    // MARK: - Room

    /// Code for some more, or a larger table; the limit up to which they may be taken. False: there are no more.
    private static func prepare() -> Bool {
        if state.pointee.next >= written && !writeCode() { return false }
        if Int(state.pointee.next &- first) / Int(LABEL_BYTES) >= tableCount / 2 && !grow() { return false }
        state.pointee.limit = min(written, first &+ UInt64(tableCount / 2 &* Int(LABEL_BYTES)))
        return true
    }

    private static func writeCode() -> Bool {
        let start = written, bytes = UInt64(agent.pageBytes)
        if start &+ bytes > first &+ byteCount || !Memory.protect(start &+ UInt64(LABEL_RETURN), bytes, Memory.readWrite)
            || !Memory.protect(start, bytes, Memory.readWrite) { return false }
        var label = start
        while label < start &+ bytes {
            ReturnLabel.write(at: UnsafeMutableRawPointer(bitPattern: UInt(label))!, returned: agent.trampolines.returned)
            label &+= UInt64(LABEL_BYTES)
        }
        if !Memory.protectCode(start, bytes) { return false }
        if start == first { tracer_label_return(end).pointee = UInt64(LABEL_END) }
        written = start &+ bytes
        return true
    }

    /// The old table stays: a trampoline may be looking into it.
    private static func grow() -> Bool {
        let wanted = min(max(tableCount &* 4, leastTable), largestTable)
        guard tableCount < wanted, let pages = Memory.pages((wanted &+ guardCount &+ 1) &* 8) else { return false }
        tableCount = wanted
        let mask = pages.assumingMemoryBound(to: UInt64.self), table = mask + 1
        mask.pointee = UInt64(tableCount &- 1) &* 8
        for n in 0..<(tableCount &+ guardCount &- 1) { table[n] = first }
        table[tableCount &+ guardCount &- 1] = end
        // Written before the table can be seen: by an address that depends on the load of it.
        var label = end &+ UInt64(LABEL_BYTES)
        while label < min(state.pointee.next, written) {
            let address = tracer_label_return(label).pointee
            if address > gone && tracer_label_next(label).pointee & isAnother == 0 {
                let place = entry(of: address, in: table)
                if place.pointee == first { place.pointee = label }
            }
            label &+= UInt64(LABEL_BYTES)
        }
        tracer_publish_label_table(table)
        return true
    }
}

enum ReturnLabel {
    #if arch(x86_64)
    /// call *(%r11); lea label(%rip), %r11; jmp returned. The jump ends at the fifteenth of sixteen bytes (Stub.write says why).
    static func write(at place: UnsafeMutableRawPointer, returned: UInt64) {
        place.storeBytes(of: 0x8d4c_13ff_41, as: UInt64.self) // 41 ff 13, 4c 8d
        place.storeBytes(of: 0x1d, toByteOffset: 5, as: UInt8.self)
        (place + 6).storeBytes(of: -10, as: Int32.self)
        place.storeBytes(of: 0xe9, toByteOffset: 10, as: UInt8.self)
        (place + 11).storeBytes(of: UInt32(truncatingIfNeeded: returned &- UInt64(UInt(bitPattern: place)) &- 15), as: UInt32.self)
        place.storeBytes(of: 0xcc, toByteOffset: 15, as: UInt8.self)
    }
    #elseif arch(arm64)
    /// blr x16; adr x17, label; b returned. Not in guarded pages, so no `bti`.
    static func write(at place: UnsafeMutableRawPointer, returned: UInt64) {
        let words = place.assumingMemoryBound(to: UInt32.self)
        let distance = Int64(bitPattern: returned &- UInt64(UInt(bitPattern: place)) &- 8)
        words[0] = 0xd63f_0200
        words[1] = 0x10ff_fff1 // adr x17, -4
        words[2] = 0x1400_0000 | UInt32(truncatingIfNeeded: distance &>> 2) & 0x3ff_ffff
        words[3] = 0xd420_0000 // brk #0
    }
    #endif
}
