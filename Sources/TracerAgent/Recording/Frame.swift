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
    var isLeft: Bool { slotBits == UInt(SLOT_LEFT) }
    /// Its enter is in the file; otherwise the frame is being filled, or held back by the time filter.
    var isWritten: Bool { !isFilling && !isUnwritten }
    func setElsewhere() { pointee.slot = UnsafeMutablePointer<UInt64>(bitPattern: UInt(SLOT_ELSEWHERE)) }
    func setUnwritten() { pointee.slot = UnsafeMutablePointer<UInt64>(bitPattern: UInt(SLOT_UNWRITTEN)) }
    func setLeft() { pointee.slot = UnsafeMutablePointer<UInt64>(bitPattern: UInt(SLOT_LEFT)) }
    var function: UInt32 { pointee.function.pointee.function }
}
