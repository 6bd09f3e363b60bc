// Patches the distance of the thread's state from the thread pointer into the trampolines. It is the same in every
// thread (initial-exec TLS, psABI 3.4.2 and Drepper's "ELF Handling for Thread-Local Storage") and known only now.
import CSupport

enum Trampolines {
    static func prepare() -> Bool {
        let low = tracer_code_low()
        let byteCount = tracer_code_high() &- low
        if !Memory.protect(low, byteCount, Memory.readWrite) { return false }
        let sites = tracer_tls_sites()!
        for n in 0..<tracer_tls_site_count() {
            let site = sites + n
            patch(UnsafeMutableRawPointer(site) + Int(site.pointee), distance)
        }
        return Memory.protectCode(low, byteCount)
    }

    private static var distance: UInt64 { UInt64(UInt(bitPattern: tracer_thread_state())) &- tracer_thread_pointer() }

    #if arch(x86_64)
    static func isReachable() -> Bool { true }

    /// A 32-bit displacement: the placeholder and the field's offset.
    private static func patch(_ place: UnsafeMutableRawPointer, _ distance: UInt64) {
        let field = place.loadUnaligned(as: Int32.self) &- Int32(TLS_PLACEHOLDER)
        place.storeBytes(of: Int32(truncatingIfNeeded: Int64(bitPattern: distance)) &+ field, as: Int32.self)
    }
    #elseif arch(arm64)
    /// 24 bits: what an addition and an offset make together.
    static func isReachable() -> Bool {
        if distance < 1 &<< 24 &- 4096 { return true }
        Message.say { $0.append("more than 16 MB of thread-local variables: the program runs unrecorded") }
        return false
    }

    /// Twelve bits from bit 10 on, in eights in a load or store, and in an addition, which the variants for far
    /// states have, the twelve bits above the lowest twelve.
    private static func patch(_ place: UnsafeMutableRawPointer, _ distance: UInt64) {
        let instruction = place.load(as: UInt32.self)
        let isAddition = instruction & 0x7fc0_0000 == 0x1140_0000 // add Rd, Rn, #imm12, lsl #12
        let isFar = tracer_thread_is_far() != 0
        let low = isFar ? distance & 4095 : distance
        let value = isAddition ? isFar ? distance &>> 12 : 0 : low / 8 &+ UInt64(instruction &>> 10 & 4095)
        let bits = UInt32(truncatingIfNeeded: value & 4095)
        place.storeBytes(of: instruction & ~(4095 &<< 10) | bits &<< 10, as: UInt32.self)
    }
    #endif
}
