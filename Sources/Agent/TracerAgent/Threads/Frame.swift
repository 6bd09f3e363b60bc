// State of a frame record with regard to its enter event.
import CSupport

typealias Frame = UnsafeMutablePointer<frame_record>

extension function_hook {
    /// Its function's own first bytes lead here.
    var isPatched: Bool { kind == UInt8(KIND_PATCHED) || kind == UInt8(KIND_PATCHED_ARGUMENTS) }
}

extension UnsafeMutablePointer<frame_record> {
    private var eventBits: UInt { UInt(bitPattern: pointee.event) }
    /// A trampoline has taken the record and not yet filled it.
    var isFilling: Bool { eventBits == 0 }
    /// The trampoline has not come to its stack pointer, nor to a word in the chunk: a record that is given up has none.
    var isJustTaken: Bool { isFilling && pointee.stack_pointer == 0 }
    /// It is free.
    func giveUp() {
        pointee.event = nil
        pointee.stack_pointer = 0
    }
    /// A trampoline is writing the frame's end.
    var isClosing: Bool { eventBits & UInt(FRAME_CLOSING) != 0 }
    var isElsewhere: Bool { eventBits & ~UInt(FRAME_CLOSING) == UInt(FRAME_ELSEWHERE) }
    var isUnwritten: Bool { eventBits == UInt(FRAME_UNWRITTEN) }
    /// Its enter is in the file; otherwise the frame is being filled, or its enter could not be written.
    var isWritten: Bool { !isFilling && !isUnwritten }
    /// What is after its enter, if that is in the open chunk; nil: it is elsewhere, or nowhere.
    var written: UnsafeMutablePointer<UInt64>? {
        eventBits > UInt(FRAME_UNWRITTEN | FRAME_CLOSING)
            ? UnsafeMutablePointer<UInt64>(bitPattern: eventBits & ~UInt(FRAME_CLOSING)) : nil
    }
    func setElsewhere() { pointee.event = UnsafeMutablePointer<UInt64>(bitPattern: UInt(FRAME_ELSEWHERE)) }
    /// Its enter is in a chunk that has moved.
    func moveEvent(_ distance: Int, from start: Int, _ byteCount: Int) {
        if eventBits &- UInt(bitPattern: start) > UInt(bitPattern: byteCount) { return }
        pointee.event = UnsafeMutablePointer<UInt64>(bitPattern: eventBits &+ UInt(bitPattern: distance))
    }
    func setUnwritten() { pointee.event = UnsafeMutablePointer<UInt64>(bitPattern: UInt(FRAME_UNWRITTEN)) }
    /// True if the frame is open; only for a frame on another stack.
    var isInUse: Bool { pointee.use != 0 && pointee.use != UInt32(USE_ENDED) }
    /// Without what is said with it.
    var label: UInt64 { ReturnLabels.label(containing: pointee.label) }
    /// The address that it was called from and returns to. A tail call is a jump, from nobody knows where: 0.
    var site: UInt64 { isTailCall ? 0 : ReturnLabels.returnAddress(label) }
    /// The same while frames are sorted, in the upper three bytes of trace_open_frame.flags.
    var siteTag: UInt32 { @inline(never) get { Trampolines.recordsSites && !isTailCall ? ReturnLabels.tag(of: label) &<< 8 : 0 } }
    /// A tail call opened it: it ends with the one below.
    var isTailCall: Bool { pointee.label & UInt64(LABEL_TAIL) != 0 }
    /// Its return is for Swift, too.
    var isWatched: Bool { pointee.label & UInt64(LABEL_WATCHED) != 0 }
    var isLost: Bool { pointee.label & UInt64(LABEL_LOST) != 0 }
    func setLost() {
        setUnwritten()
        pointee.label |= UInt64(LABEL_LOST | LABEL_WATCHED)
    }
    /// For a dlopen, the load that it made; 0: none.
    var load: UInt32 { UInt32(truncatingIfNeeded: pointee.reserved.0) }
    /// For a dlopen, the dlopen that it was called in.
    var outerLoad: Frame? { Frame(bitPattern: UInt(pointee.reserved.1)) }
    /// For a call whose arguments say whether it asks for a snapshot, which no dlopen is: they fulfil the conditions.
    var mayTrigger: Bool { pointee.reserved.1 == 0 }
    func setMayTrigger(_ may: Bool) { pointee.reserved.1 = may ? 0 : 1 }
    /// For a call that makes two descriptors, where they go; in other calls of its kind 0.
    var pair: UInt64 { pointee.reserved.0 }
    var function: UInt32 { pointee.function.pointee.function }
}
