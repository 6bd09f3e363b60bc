// What a frame record says about its enter event.
import CSupport

typealias Frame = UnsafeMutablePointer<frame_record>

extension UnsafeMutablePointer<frame_record> {
    private var slotBits: UInt { UInt(bitPattern: pointee.slot) }
    /// A trampoline has taken the record and not yet filled it.
    var isFilling: Bool { slotBits == 0 }
    /// A trampoline is writing the frame's end.
    var isClosing: Bool { slotBits & UInt(SLOT_CLOSING) != 0 }
    var isElsewhere: Bool { slotBits & ~UInt(SLOT_CLOSING) == UInt(SLOT_ELSEWHERE) }
    var isUnwritten: Bool { slotBits == UInt(SLOT_UNWRITTEN) }
    /// Its enter is in the file; otherwise the frame is being filled, or held back by the time filter.
    var isWritten: Bool { !isFilling && !isUnwritten }
    func setElsewhere() { pointee.slot = UnsafeMutablePointer<UInt64>(bitPattern: UInt(SLOT_ELSEWHERE)) }
    func setUnwritten() { pointee.slot = UnsafeMutablePointer<UInt64>(bitPattern: UInt(SLOT_UNWRITTEN)) }
    /// Of a frame on another stack: it is open.
    var isInUse: Bool { pointee.use != 0 && pointee.use != UInt32(USE_ENDED) }
    /// Without what is said with it.
    var label: UInt64 { ReturnLabels.label(containing: pointee.label) }
    /// A tail call opened it: it ends with the one below.
    var isTailCall: Bool { pointee.label & UInt64(LABEL_TAIL) != 0 }
    var function: UInt32 { pointee.function.pointee.function }
}
