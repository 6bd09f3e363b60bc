// The registers of a caller, where the trampolines have put them.
import CSupport

/// The caller's registers, as the trampoline spilled them around the stack pointer that a frame is known by.
struct Spills {
    let stackPointer: UInt64
    init(_ stackPointer: UInt64) { self.stackPointer = stackPointer }

    func word(_ offset: Int) -> UnsafeMutablePointer<UInt64> {
        (UnsafeMutableRawPointer(bitPattern: UInt(stackPointer))! + offset).assumingMemoryBound(to: UInt64.self)
    }
    /// Content of the return slot: a label when a recorded function has made a tail call.
    var returnAddress: UInt64 { word(Int(RETURN_SLOT)).pointee }
    func setReturnAddress(_ address: UInt64) { word(Int(RETURN_SLOT)).pointee = address }
    var firstArgument: UInt64 { word(-Int(SPILL_FIRST)).pointee }
    var secondArgument: UInt64 { word(-Int(SPILL_SECOND)).pointee }
    var thirdArgument: UInt64 { word(-Int(SPILL_THIRD)).pointee }
    var fourthArgument: UInt64 { word(-Int(SPILL_FOURTH)).pointee }
    /// The target that the loader has found, kept here by tracer_lazy.
    var lazyTarget: UInt64 { word(-Int(SPILL_LAZY)).pointee }
    func setFirstArgument(_ value: UInt64) { word(-Int(SPILL_FIRST)).pointee = value }
}
