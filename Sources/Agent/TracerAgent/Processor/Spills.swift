// The registers of a caller, where the trampolines have put them.
import CSupport
import CTraceLayout

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
    /// Low half of a vector register, from 0 on. Only on the slow path, which has saved them at the top of its stack.
    func vector(_ number: Int) -> UInt64 {
        guard let context = tracer_thread_state().pointee.context else { return 0 }
        return (UnsafeRawPointer(context) - Int(SAVED_VECTORS_BYTES)).load(fromByteOffset: number &* 16, as: UInt64.self)
    }
    /// Argument by its source (arguments_layout.h), or an integer or pointer argument by its number, from 0 on.
    func argument(_ number: Int) -> UInt64 {
        guard let offset = Spills.offset(number) else { return vector(number &- Int(ARGUMENTS_FROM_VECTOR)) }
        return word(offset).pointee
    }
    /// Its offset, in bytes from the stack pointer; nil: it is in a vector register.
    static func offset(_ number: Int) -> Int? {
        switch number {
        case Int(ARGUMENTS_FROM_RESULT)...: resultRegister(number &- Int(ARGUMENTS_FROM_RESULT))
        case Int(ARGUMENTS_FROM_STACK)...: Int(RETURN_SLOT) &+ 8 &+ (number &- Int(ARGUMENTS_FROM_STACK)) &* 8
        case Int(ARGUMENTS_FROM_VECTOR)...: nil
        case 0: -Int(SPILL_FIRST)
        case 1: -Int(SPILL_SECOND)
        case 2: -Int(SPILL_THIRD)
        case 3: -Int(SPILL_FOURTH)
        case ..<Int(ARGUMENT_REGISTERS): laterRegister(number)
        default: Int(RETURN_SLOT) &+ 8 &+ (number &- Int(ARGUMENT_REGISTERS)) &* 8
        }
    }
    /// The target that the loader has found, kept here by tracer_lazy.
    var lazyTarget: UInt64 { word(-Int(SPILL_LAZY)).pointee }
    func setFirstArgument(_ value: UInt64) { word(-Int(SPILL_FIRST)).pointee = value }
}
