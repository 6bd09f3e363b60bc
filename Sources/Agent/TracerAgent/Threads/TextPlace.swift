// The place of a string that a call was given: what a char * points to, or what an object of another language or library says. The object is copied
// before it is believed (string_copies.c): nothing that it says can hurt, and what it cannot say is not guessed.
import CSupport
import CTraceLayout

enum TextPlace {
    /// A zero byte ends it.
    case ended(at: UInt64)
    case counted(at: UInt64, count: UInt64)
    /// In the words themselves, from the lowest byte on.
    case words(UInt64, UInt64, count: Int)
    /// What leads to it could not be read, or has a form that is not known.
    case unreadable(at: UInt64)

    init(_ operation: arguments_operation, _ spills: Spills) {
        var address = spills.argument(Int(operation.source))
        if operation.step_count > 1 {
            for n in 0..<(Int(operation.step_count) &- 1) {
                guard let next = Self.words(at: address &+ operation.step(n), count: 1, spills)?.0 else {
                    self = .unreadable(at: address)
                    return
                }
                address = next
            }
        }
        let last = operation.step_count == 0 ? 0 : operation.step(Int(operation.step_count) &- 1)
        switch Int(operation.kind) {
        case Int(ARGUMENTS_COUNTED): self = Self.counted(operation, address, last, spills)
        case Int(ARGUMENTS_BYTES):
            self = address == 0 ? .unreadable(at: 0) : .counted(at: address &+ last, count: UInt64(operation.length_offset))
        case Int(ARGUMENTS_LIBCXX): self = Self.libcxx(address, last, spills)
        case Int(ARGUMENTS_SWIFT):
            if operation.step_count == 0 {
                self = Self.swift(address, spills.argument(Int(operation.length_source)))
            } else if let words = Self.words(at: address &+ last, count: 2, spills) {
                self = Self.swift(words.0, words.1)
            } else {
                self = .unreadable(at: address)
            }
        default:
            if operation.step_count == 0 {
                self = .ended(at: address)
            } else if let words = Self.words(at: address &+ last, count: 1, spills) {
                self = .ended(at: words.0)
            } else {
                self = .unreadable(at: address)
            }
        }
    }

    private static func counted(_ operation: arguments_operation, _ address: UInt64, _ last: UInt64, _ spills: Spills) -> TextPlace {
        var pointer = address, count: UInt64 = 0
        if Int(operation.length) == Int(ARGUMENTS_LENGTH_BESIDE) {
            // A pointer and a length that belong together are read together (ARGUMENTS_WINDOW_BYTES).
            let other = UInt64(operation.length_offset), low = min(last, other), high = max(last, other)
            guard let words = words(at: address &+ low, count: Int(high &- low) / 8 &+ 1, spills) else { return .unreadable(at: address) }
            let far = high &- low == 8 ? words.1 : high &- low == 16 ? words.2 : words.3
            (pointer, count) = last == low ? (words.0, far) : (far, words.0)
        } else {
            if operation.step_count > 0 {
                guard let words = words(at: address &+ last, count: 1, spills) else { return .unreadable(at: address) }
                pointer = words.0
            }
            let unused = UInt64(64 &- Int(operation.length_bytes) &* 8), shifted = spills.argument(Int(operation.length_source)) &<< unused
            count = shifted &>> unused
            if Int(operation.length) == Int(ARGUMENTS_LENGTH_SIGNED) && Int64(bitPattern: shifted) < 0 { return .unreadable(at: pointer) }
        }
        return .counted(at: pointer, count: count)
    }

    /// The lowest bit says whether it is long: capacity, length, pointer. A short one has its length above this bit, and its bytes follow.
    private static func libcxx(_ address: UInt64, _ offset: UInt64, _ spills: Spills) -> TextPlace {
        guard let words = words(at: address &+ offset, count: 3, spills) else { return .unreadable(at: address) }
        if words.0 & 1 != 0 { return .counted(at: words.2, count: words.1) }
        let count = (words.0 & 0xff) &>> 1
        return count < 23 ? .counted(at: address &+ offset &+ 1, count: count) : .unreadable(at: address)
    }

    /// StringObject.swift: up to 15 bytes lie in the words, with their number below the highest four bits; others behind the head of an object, or
    /// are a literal's that is pointed to as if it had one. What lies elsewhere (shared, foreign) is not looked for.
    private static func swift(_ flags: UInt64, _ object: UInt64) -> TextPlace {
        if object & swiftSmall != 0 { return .words(flags, object, count: Int((object &>> 56) & 0xf)) }
        if object & swiftForeign != 0 || flags & swiftTailAllocated == 0 { return .unreadable(at: object & swiftAddress) }
        return .counted(at: object & swiftAddress &+ 32, count: flags & 0xffff_ffff_ffff)
    }
    private static var swiftSmall: UInt64 { 1 &<< 61 }
    private static var swiftForeign: UInt64 { (1 &<< 62) | (1 &<< 60) } // lazily bridged, or without fast UTF-8
    private static var swiftTailAllocated: UInt64 { 1 &<< 60 }
    private static var swiftAddress: UInt64 { 0x0fff_ffff_ffff_ffff }

    /// Returns up to four words of the program's memory; nil: they cannot be read.
    private static func words(at address: UInt64, count: Int, _ spills: Spills) -> (UInt64, UInt64, UInt64, UInt64)? {
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        let byteCount = UInt32(count &* 8)
        let found = withUnsafeMutablePointer(to: &words) {
            tracer_copy_bytes(UnsafeMutableRawPointer($0).assumingMemoryBound(to: UInt8.self), address, byteCount, spills.stackPointer)
        }
        return found == byteCount ? words : nil
    }
}

extension arguments_operation {
    fileprivate func step(_ n: Int) -> UInt64 { UInt64(n == 0 ? steps.0 : n == 1 ? steps.1 : steps.2) }
}
