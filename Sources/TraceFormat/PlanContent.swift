// A plan as it lies in memory (plan_layout.h): bytes that somebody wrote. What they say is checked here, once, before any of it is used,
// and nothing outside of them is read. The tool and the agent (Embedded Swift) compile this same file.
import CTraceLayout

public struct PlanContent {
    private let start: UnsafeRawPointer
    private static let headerBytes = MemoryLayout<plan_file>.size

    /// nil: they are damaged, or of other rules. `start` is at a multiple of 8.
    public init?(_ start: UnsafeRawPointer, byteCount: Int) {
        if byteCount < PlanContent.headerBytes || byteCount > Int(PLAN_MOST_BYTES) || byteCount % 8 != 0 { return nil }
        self.start = start
        guard header.pointee.magic == UInt64(PLAN_MAGIC), header.pointee.version == UInt32(PLAN_VERSION),
            header.pointee.rules == UInt32(PLAN_RULES), header.pointee.byte_count == UInt64(byteCount), isLaidOut(UInt64(byteCount)),
            PlanContent.checksum(start, byteCount: byteCount) == header.pointee.checksum, isSound
        else { return nil }
    }
    /// Of bytes that have been checked.
    public init(checked start: UnsafeRawPointer) { self.start = start }

    /// Its parts lie within the file.
    private func isLaidOut(_ byteCount: UInt64) -> Bool {
        let header = header.pointee
        func fits(_ offset: UInt32, _ count: UInt64) -> Bool {
            UInt64(offset) >= UInt64(PlanContent.headerBytes) && UInt64(offset) &+ count <= byteCount
        }
        return header.function_count <= UInt32(PLAN_MOST_FUNCTIONS) && header.functions % 8 == 0 && header.fixups % 8 == 0
            && fits(header.functions, UInt64(header.function_count) &* UInt64(MemoryLayout<plan_function>.size))
            && fits(header.fixups, UInt64(header.fixup_count) &* UInt64(MemoryLayout<plan_fixup>.size))
            && fits(header.bytes, UInt64(header.bytes_count)) && fits(header.names, UInt64(header.names_count))
            && (header.names_count == 0 || names[Int(header.names_count) &- 1] == 0)
    }

    /// Each function is one that can be applied, or says why not.
    private var isSound: Bool {
        let header = header.pointee
        var end: Int64 = -1
        for n in 0..<functionCount {
            let function = function(n)
            if Int64(function.pointee.address) <= end || function.pointee.names > header.names_count
                || (function.pointee.tactic == UInt8(PLAN_NONE.rawValue)) != (function.pointee.reason != 0)
            {
                return false
            }
            end = Int64(function.pointee.address)
            if function.pointee.tactic != UInt8(PLAN_NONE.rawValue) && !isSound(function) { return false }
        }
        return true
    }
    @inline(__always) private func isSound(_ function: UnsafePointer<plan_function>) -> Bool {
        let function = function.pointee, moved = UInt64(function.moved_count)
        guard function.tactic < UInt8(PLAN_TACTICS.rawValue), moved <= UInt64(PLAN_MOVED_ROOM),
            function.places_count <= UInt8(PLAN_MOST_PLACES), UInt64(function.linked) <= moved,
            UInt64(function.moved) &+ moved &+ UInt64(function.places_count) &* UInt64(MemoryLayout<plan_place>.size)
                <= UInt64(header.pointee.bytes_count),
            UInt64(function.fixup) &+ UInt64(function.fixup_count) <= UInt64(header.pointee.fixup_count),
            function.replaced > 0, function.replaced <= 6, function.patch <= 16, function.resume >= function.patch,
            (function.tactic == UInt8(PLAN_JUMP2.rawValue)) == (function.landing != 0)
        else { return false }
        for k in 0..<Int(function.fixup_count) {
            let fixup = fixup(of: function, k)
            if UInt64(fixup.offset) &+ 4 > moved || UInt64(fixup.end) > moved || fixup.kind >= UInt8(PLAN_FIXUP_KINDS.rawValue) {
                return false
            }
        }
        return true
    }

    /// Of all words but its own; four at a time, which do not wait for each other.
    public static func checksum(_ start: UnsafeRawPointer, byteCount: Int) -> UInt64 {
        func mixed(_ sum: UInt64, _ word: UInt64) -> UInt64 {
            let product = (sum ^ word) &* 0xff51_afd7_ed55_8ccd
            return product ^ product &>> 32
        }
        func word(_ offset: Int) -> UInt64 {
            offset < byteCount && offset != Int(PLAN_CHECKSUM_OFFSET) ? start.loadUnaligned(fromByteOffset: offset, as: UInt64.self) : 0
        }
        var a: UInt64 = 1, b: UInt64 = 2, c: UInt64 = 3, d: UInt64 = 4, offset = 0
        while offset < byteCount {
            a = mixed(a, word(offset))
            b = mixed(b, word(offset &+ 8))
            c = mixed(c, word(offset &+ 16))
            d = mixed(d, word(offset &+ 24))
            offset &+= 32
        }
        return mixed(mixed(mixed(mixed(UInt64(byteCount), a), b), c), d)
    }

    public var header: UnsafePointer<plan_file> { start.assumingMemoryBound(to: plan_file.self) }
    public var functionCount: Int { Int(header.pointee.function_count) }
    @inline(__always) public func function(_ n: Int) -> UnsafePointer<plan_function> {
        (start + Int(header.pointee.functions)).assumingMemoryBound(to: plan_function.self) + n
    }
    @inline(__always) public func fixup(of function: plan_function, _ k: Int) -> plan_fixup {
        ((start + Int(header.pointee.fixups)).assumingMemoryBound(to: plan_fixup.self) + Int(function.fixup))[k]
    }
    public func movedCode(of function: plan_function) -> UnsafeRawPointer { start + Int(header.pointee.bytes) + Int(function.moved) }
    public func place(of function: plan_function, _ k: Int) -> plan_place {
        (movedCode(of: function) + Int(function.moved_count)).loadUnaligned(
            fromByteOffset: k &* MemoryLayout<plan_place>.size, as: plan_place.self)
    }
    /// Each ends in a zero.
    public var names: UnsafePointer<UInt8> { (start + Int(header.pointee.names)).assumingMemoryBound(to: UInt8.self) }

    // MARK: - Names that may be known

    /// Of a function with this one name: what the agent has to know of it to tell, for nearly all, that it is none which it treats in a way
    /// of its own, so that it need not read a hundred thousand names. PLAN_NAME_… and the lowest bits of DT_GNU_HASH's hash.
    public static func nameKey(_ name: UnsafePointer<UInt8>, _ count: Int) -> UInt16 {
        var hash: UInt32 = 5381, isOfContexts = false
        for n in 0..<count {
            hash = hash &* 33 &+ UInt32(name[n])
            isOfContexts = isOfContexts || begins(name + n, count &- n, "jmp") || begins(name + n, count &- n, "context")
        }
        var key = UInt16(PLAN_NAME_IS_KEYED) | UInt16(truncatingIfNeeded: hash) & UInt16(PLAN_NAME_HASH)
        if begins(name, count, "__") || begins(name, count, "_dl_") { key |= UInt16(PLAN_NAME_OF_RUNTIME) }
        if isOfContexts { key |= UInt16(PLAN_NAME_OF_CONTEXTS) }
        return key
    }
    /// Small or capital.
    private static func begins(_ text: UnsafePointer<UInt8>, _ count: Int, _ literal: StaticString) -> Bool {
        if count < literal.utf8CodeUnitCount { return false }
        for n in 0..<literal.utf8CodeUnitCount where text[n] | 0x20 != literal.utf8Start[n] | 0x20 { return false }
        return true
    }
}
