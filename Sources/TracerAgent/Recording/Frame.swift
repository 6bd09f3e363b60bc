// What a frame record says about its enter event.
import CSupport

typealias Frame = UnsafeMutablePointer<frame_record>

extension UnsafeMutablePointer<frame_record> {
    private var slotBits: UInt { UInt(bitPattern: pointee.slot) }
    var isElsewhere: Bool { slotBits == UInt(SLOT_ELSEWHERE) }
    var isUnwritten: Bool { slotBits == UInt(SLOT_UNWRITTEN) }
    /// Its enter is in the file; otherwise the frame is being filled, or held back by the time filter.
    var isWritten: Bool { slotBits != 0 && !isUnwritten }
    func setElsewhere() { pointee.slot = UnsafeMutablePointer<UInt64>(bitPattern: UInt(SLOT_ELSEWHERE)) }
    func setUnwritten() { pointee.slot = UnsafeMutablePointer<UInt64>(bitPattern: UInt(SLOT_UNWRITTEN)) }
    var function: UInt32 { pointee.function.pointee.function }
}
