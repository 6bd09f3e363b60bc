// A plan as it lies in memory (plan_layout.h): bytes that somebody wrote. What they say is checked here, once, before any of it is used,
// and nothing outside of them is read. The tool and the agent (Embedded Swift) compile this same file.
import CTraceLayout

public struct PlanContent {
    private let start: UnsafeRawPointer
    /// The names, each with a zero after it; nil until they have been read.
    public private(set) var names: UnsafePointer<UInt8>?
    public static let headerBytes = MemoryLayout<plan_file>.size

    /// The whole file. nil: it is damaged, or of other rules. `start` is at a multiple of 8.
    public init?(_ start: UnsafeRawPointer, byteCount: Int) {
        guard let count = PlanContent.bytesBeforeNames(start, of: byteCount) else { return nil }
        self.init(start, withoutNames: count)
        if !addNames(start + count) { return nil }
    }
    /// The part before the names, `byteCount` bytes (`bytesBeforeNames`). nil: it is damaged.
    public init?(_ start: UnsafeRawPointer, withoutNames byteCount: Int) {
        self.start = start
        guard PlanContent.checksum(start, byteCount: byteCount, without: Int(PLAN_CHECKSUM_OFFSET)) == header.pointee.checksum, isSound
        else {
            return nil
        }
    }
    /// A whole file whose bytes have been checked.
    public init(checked start: UnsafeRawPointer) {
        self.start = start
        names = (start + Int(header.pointee.names)).assumingMemoryBound(to: UInt8.self)
    }

    /// Returns the offset of the names in a file of `byteCount` bytes, by its header alone. nil: it is unreadable, or of other rules.
    public static func bytesBeforeNames(_ start: UnsafeRawPointer, of byteCount: Int) -> Int? {
        if byteCount < headerBytes || byteCount > Int(PLAN_MOST_BYTES) || byteCount % 8 != 0 { return nil }
        let header = start.assumingMemoryBound(to: plan_file.self).pointee
        guard header.magic == UInt64(PLAN_MAGIC), header.version == UInt32(PLAN_VERSION), header.rules == UInt32(PLAN_RULES),
            header.byte_count == UInt64(byteCount), isLaidOut(header)
        else { return nil }
        return Int(header.names)
    }
    public var bytesOfNames: Int { Int(header.pointee.byte_count) &- Int(header.pointee.names) }
    /// Adds the names, the last `bytesOfNames` bytes of the file. Returns false when they are damaged.
    public mutating func addNames(_ start: UnsafeRawPointer) -> Bool {
        let text = start.assumingMemoryBound(to: UInt8.self), count = Int(header.pointee.names_count)
        if PlanContent.checksum(start, byteCount: bytesOfNames) != header.pointee.names_checksum || count > 0 && text[count &- 1] != 0 {
            return false
        }
        names = text
        return true
    }

    /// Its parts lie within the file, the names after all others.
    private static func isLaidOut(_ header: plan_file) -> Bool {
        func fits(_ offset: UInt32, _ count: UInt64) -> Bool {
            UInt64(offset) >= UInt64(headerBytes) && UInt64(offset) &+ count <= UInt64(header.names)
        }
        return header.function_count <= UInt32(PLAN_MOST_FUNCTIONS) && header.functions % 8 == 0 && header.fixups % 8 == 0
            && header.sites % 8 == 0 && header.keys % 8 == 0 && header.names % 8 == 0
            && fits(header.functions, UInt64(header.function_count) &* UInt64(MemoryLayout<plan_function>.size))
            && fits(header.fixups, UInt64(header.fixup_count) &* UInt64(MemoryLayout<plan_fixup>.size))
            && fits(header.sites, UInt64(header.site_count) &* UInt64(MemoryLayout<plan_site>.size))
            && fits(header.bytes, UInt64(header.bytes_count))
            && fits(header.keys, UInt64(header.key_count) &* UInt64(MemoryLayout<UInt32>.size))
            && UInt64(header.names) &+ UInt64(header.names_count) <= header.byte_count
    }

    /// Each function is one that can be applied, or says why not.
    private var isSound: Bool {
        let header = header.pointee
        var end: Int64 = -1, nameCount = 0
        for n in 0..<functionCount {
            let function = function(n)
            if Int64(function.pointee.address) <= end || function.pointee.names > header.names_count
                || (function.pointee.tactic == UInt8(PLAN_NONE.rawValue)) != (function.pointee.reason != 0)
            {
                return false
            }
            end = Int64(function.pointee.address)
            nameCount &+= Int(function.pointee.name_count)
            if function.pointee.tactic != UInt8(PLAN_NONE.rawValue) && !isSound(function) { return false }
        }
        return nameCount == Int(header.key_count) && areSitesSound
    }
    /// Sites are in order, and of functions that have some.
    private var areSitesSound: Bool {
        for k in 0..<siteCount {
            let site = site(k)
            if site.function >= header.pointee.function_count || !PlanContent.isByCalls(function(Int(site.function))) { return false }
            if k == 0 { continue }
            let before = self.site(k &- 1)
            if before.function > site.function || before.function == site.function && before.word >= site.word { return false }
        }
        return true
    }
    /// The function is recorded where it is called, and its own bytes stay.
    public static func isByCalls(_ function: UnsafePointer<plan_function>) -> Bool { function.pointee.tactic == UInt8(PLAN_CALLS.rawValue) }
    /// Its first bytes become a short jump to a long one.
    @inline(__always) public static func isByLanding(_ function: plan_function) -> Bool {
        function.tactic == UInt8(PLAN_JUMP2.rawValue) || function.tactic == UInt8(PLAN_NEIGHBOUR.rawValue)
    }
    @inline(__always) private func isSound(_ function: UnsafePointer<plan_function>) -> Bool {
        let function = function.pointee, relocated = UInt64(function.relocated_count)
        guard function.tactic < UInt8(PLAN_TACTICS.rawValue), relocated <= UInt64(PLAN_RELOCATED_MOST_BYTES),
            function.instruction_count <= UInt8(PLAN_MOST_INSTRUCTIONS), UInt64(function.linked) <= relocated,
            UInt64(function.relocated) &+ relocated &+ UInt64(function.instruction_count) &* UInt64(MemoryLayout<plan_instruction>.size)
                <= UInt64(header.pointee.bytes_count),
            UInt64(function.fixup) &+ UInt64(function.fixup_count) <= UInt64(header.pointee.fixup_count),
            (function.replaced == 0) == (function.tactic == UInt8(PLAN_CALLS.rawValue)), function.replaced <= 6, function.patch <= 16,
            function.resume >= function.patch,
            PlanContent.isByLanding(function) == (function.landing != 0)
        else { return false }
        for k in 0..<Int(function.fixup_count) {
            let fixup = fixup(of: function, k)
            if UInt64(fixup.offset) &+ 4 > relocated || UInt64(fixup.end) > relocated || fixup.kind >= UInt8(PLAN_FIXUP_KINDS.rawValue) {
                return false
            }
        }
        return true
    }

    /// Returns the checksum of all words but the one at `without`, where it is kept; four at a time, which do not wait for each other.
    public static func checksum(_ start: UnsafeRawPointer, byteCount: Int, without: Int = -1) -> UInt64 {
        func mixed(_ sum: UInt64, _ word: UInt64) -> UInt64 {
            let product = (sum ^ word) &* 0xff51_afd7_ed55_8ccd
            return product ^ product &>> 32
        }
        func word(_ offset: Int) -> UInt64 {
            offset < byteCount && offset != without ? start.loadUnaligned(fromByteOffset: offset, as: UInt64.self) : 0
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
    public var siteCount: Int { Int(header.pointee.site_count) }
    @inline(__always) public func site(_ k: Int) -> plan_site {
        (start + Int(header.pointee.sites)).assumingMemoryBound(to: plan_site.self)[k]
    }
    /// Returns the numbers of a function's call sites.
    public func sites(of n: Int) -> Range<Int> {
        func first(_ n: Int) -> Int { bisect(siteCount) { Int(site($0).function) < n } }
        return first(n)..<first(n &+ 1)
    }
    /// Returns the number of the function that begins at `address`, relative to the base; nil: none does.
    public func number(at address: UInt32) -> Int? {
        let n = bisect(functionCount) { function($0).pointee.address < address }
        return n < functionCount && function(n).pointee.address == address ? n : nil
    }
    /// Returns the number of the function whose relocated instructions the landing of one of PLAN_NEIGHBOUR is among; nil: there is none.
    public func neighbour(of function: plan_function) -> Int? {
        let n = bisect(functionCount) { self.function($0).pointee.address <= function.landing } &- 1
        if n < 0 { return nil }
        let other = self.function(n).pointee, offset = function.landing &- other.address
        let isMoved = other.tactic == UInt8(PLAN_JUMP5.rawValue) || other.tactic == UInt8(PLAN_WHOLE.rawValue)
        return isMoved && offset >= UInt32(other.patch) &+ 5 && offset <= UInt32(other.resume) &- min(UInt32(other.resume), 5) ? n : nil
    }
    public func relocatedCode(of function: plan_function) -> UnsafeRawPointer {
        start + Int(header.pointee.bytes) + Int(function.relocated)
    }
    public func instruction(of function: plan_function, _ k: Int) -> plan_instruction {
        (relocatedCode(of: function) + Int(function.relocated_count)).loadUnaligned(
            fromByteOffset: k &* MemoryLayout<plan_instruction>.size, as: plan_instruction.self)
    }
    /// Keys of all names: a function has as many as it has names, after those of the functions before it.
    public var keys: UnsafePointer<UInt32> { (start + Int(header.pointee.keys)).assumingMemoryBound(to: UInt32.self) }
    /// Returns true when `test` is true of one of the function's names, each of which ends in a zero; false when names have not been read.
    /// The names of a damaged plan end early.
    @inline(never) public func someName(of function: UnsafePointer<plan_function>, _ test: (UnsafePointer<UInt8>) -> Bool) -> Bool {
        guard let names else { return false }
        let end = names + Int(header.pointee.names_count)
        var name = names + Int(function.pointee.names)
        for _ in 0..<function.pointee.name_count {
            if name >= end { return false }
            if test(name) { return true }
            while name.pointee != 0 { name += 1 }
            name += 1
        }
        return false
    }

    // MARK: - Names that may be known

    /// PLAN_NAME_…, by which the agent need not read a hundred thousand names.
    public static func nameKey(_ name: UnsafePointer<UInt8>, _ count: Int) -> UInt32 {
        var hash: UInt32 = 5381, isOfContexts = false
        for n in 0..<count {
            hash = hash &* 33 &+ UInt32(name[n])
            isOfContexts = isOfContexts || begins(name + n, count &- n, "jmp") || begins(name + n, count &- n, "context")
        }
        var key = hash & PLAN_NAME_HASH
        let isOfStatics = begins(name, count, "__cxx_global_") || begins(name, count, "__do_global_")
        if begins(name, count, "__") && !isOfStatics || begins(name, count, "_dl_") { key |= PLAN_NAME_OF_RUNTIME }
        if isOfContexts { key |= PLAN_NAME_OF_CONTEXTS }
        return key
    }
    /// Small or capital.
    private static func begins(_ text: UnsafePointer<UInt8>, _ count: Int, _ literal: StaticString) -> Bool {
        if count < literal.utf8CodeUnitCount { return false }
        for n in 0..<literal.utf8CodeUnitCount where text[n] | 0x20 != literal.utf8Start[n] | 0x20 { return false }
        return true
    }
}
