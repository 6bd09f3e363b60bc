// Functions of Rust's library and of the crate parking_lot that wait by futex(2), or wake, with `self` or the word as their first
// argument. Their names contain hashes, so that the agent's list cannot have them: the plan marks them.

enum RustWaits {
    /// Parts of names: in both of rustc's manglings an identifier follows its length.
    private static let libraries = ["3std3sys", "3std4sync", "11parking_lot"].map { [UInt8]($0.utf8) }
    private static let functions = [
        "5Mutex14lock_contended", "5Mutex4wake", "6RwLock14read_contended", "6RwLock15write_contended", "6RwLock22wake_writer_or_readers",
        "4Once4call", "7Condvar4wait", "7Condvar12wait_timeout", "7Condvar10notify_one", "7Condvar10notify_all",
        "5futex10futex_wait", "5futex10futex_wake", "5futex14futex_wake_all",
        "8RawMutex9lock_slow", "8RawMutex11unlock_slow", "9RawRwLock16lock_shared_slow", "9RawRwLock18unlock_shared_slow",
        "9RawRwLock19lock_exclusive_slow", "9RawRwLock21unlock_exclusive_slow", "7Condvar19wait_until_internal",
        "7Condvar15notify_one_slow", "7Condvar15notify_all_slow",
    ].map { [UInt8]($0.utf8) }

    static func isOne(_ symbol: UnsafeRawBufferPointer) -> Bool {
        guard let name = path(symbol) else { return false }
        return functions.contains { name.count > $0.count && name.suffix($0.count).elementsEqual($0) }
            && libraries.contains { library in
                (0...max(name.count - library.count, 0)).contains { name.dropFirst($0).starts(with: library) }
            }
    }

    /// The mangled path, without the hash at the end of the legacy mangling and without a suffix of LLVM's; nil: it is none of Rust's.
    private static func path(_ symbol: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer>? {
        let hashCount = 20 // 17h, 16 digits, E
        let name = symbol.prefix { $0 != UInt8(ascii: ".") }
        if name.starts(with: "_R".utf8) { return name }
        guard name.count > hashCount, name.last == UInt8(ascii: "E"), name.starts(with: "_ZN".utf8) else { return nil }
        return name.suffix(hashCount).starts(with: "17h".utf8) ? name.dropLast(hashCount) : nil
    }
}
