// Patches the distance of the thread's state from the thread pointer into the trampolines. It is the same in every
// thread (initial-exec TLS, psABI 3.4.2 and Drepper's "ELF Handling for Thread-Local Storage") and known only now.
import CSupport

enum Trampolines {
    static func prepare() -> Bool {
        let low = tracer_code_low()
        let byteCount = tracer_code_high() &- low
        let distance = UInt64(UInt(bitPattern: tracer_thread_state())) &- tracer_thread_pointer()
        if !Memory.protect(low, byteCount, Memory.readWrite) { return false }
        let sites = tracer_tls_sites()!
        for n in 0..<tracer_tls_site_count() {
            let site = sites + n
            let place = UnsafeMutableRawPointer(site) + Int(site.pointee)
            let field = place.loadUnaligned(as: Int32.self) &- Int32(TLS_PLACEHOLDER)
            place.storeBytes(of: Int32(truncatingIfNeeded: Int64(bitPattern: distance)) &+ field, as: Int32.self)
        }
        return Memory.protect(low, byteCount, Memory.readExecute)
    }
}
