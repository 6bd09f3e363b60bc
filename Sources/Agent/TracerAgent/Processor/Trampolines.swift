// Makes the trampolines ready before the first call: the distance of the thread's state from the thread pointer, which is the
// same in every thread (initial-exec TLS, psABI 3.4.2 and Drepper's "ELF Handling for Thread-Local Storage") and known
// only now, the clock, and whether call sites are recorded.
import CSupport

enum Trampolines {
    /// Trampolines for the filter that was chosen.
    nonisolated(unsafe) static var set = trampoline_set()
    /// Trampolines of patched functions, once there are any.
    nonisolated(unsafe) static var patchedSet = trampoline_set()
    /// Returns the address that labels lead to on return.
    static func returned(_ set: trampoline_set) -> UInt64 { readsKernelClock ? set.returned_checked : set.returned }
    nonisolated(unsafe) private static var readsKernelClock = false
    /// They can take calls back that were too short, whether or not a shortest time is set now.
    nonisolated(unsafe) private(set) static var areFiltered = false
    /// Calls are recorded with the address that they return to. Said before `prepare`.
    nonisolated(unsafe) static var recordsSites = false

    /// Only what is used becomes writable for a moment, and is a copy of this process's own from then on. False when the kernel
    /// refuses.
    static func prepare(readsKernelClock: Bool, isFiltered: Bool) -> Bool {
        self.readsKernelClock = readsKernelClock
        areFiltered = isFiltered
        set = tracer_trampolines(isFiltered ? 1 : 0)
        return prepare(set)
    }
    static func preparePatched(isFiltered: Bool) -> Bool {
        if patchedSet.enter != 0 { return true }
        let chosen = tracer_patched_trampolines(isFiltered ? 1 : 0)
        if chosen.enter != set.enter && !prepare(chosen) { return false }
        patchedSet = chosen
        tracer_publish_patched_special(chosen.special)
        return true
    }
    private static func prepare(_ set: trampoline_set) -> Bool {
        if !Memory.protect(set.enter, set.end &- set.enter, Memory.readWrite) { return false }
        each(tracer_tls_sites(), tracer_tls_site_count(), set) { address, _ in patch(address, distance) }
        if readsKernelClock { each(tracer_clock_sites(), tracer_clock_site_count(), set) { address, _ in patchClock(address) } }
        if recordsSites {
            each(tracer_site_words(), tracer_site_word_count(), stride: 2, set) { jump(from: $0, to: address($1 + 1)) }
        }
        return Memory.protectCode(set.enter, set.end &- set.enter)
    }
    private static func each(
        _ sites: UnsafeMutablePointer<Int32>, _ count: Int, stride: Int = 1, _ set: trampoline_set,
        _ patch: (UnsafeMutableRawPointer, UnsafeMutablePointer<Int32>) -> Void
    ) {
        for n in 0..<count {
            let entry = sites + n &* stride, address = address(entry)
            if UInt64(UInt(bitPattern: address)) &- set.enter < set.end &- set.enter { patch(address, entry) }
        }
    }
    private static func address(_ entry: UnsafeMutablePointer<Int32>) -> UnsafeMutableRawPointer {
        UnsafeMutableRawPointer(entry) + Int(entry.pointee)
    }

    static var distance: UInt64 { UInt64(UInt(bitPattern: tracer_thread_state())) &- tracer_thread_pointer() }
}
