// The functions of a module: one entry for each address that has a name or a description of its frames, with all its names. Code that
// compilers put elsewhere (.cold) is in the list to be scanned, but is no function.
import ELF
import Glibc
import TraceFormat

struct FunctionEntry {
    var address: UInt64
    var end: UInt64
    /// Its names in `FunctionList.names`, the one to show first; empty: there is a description of frames alone.
    var names: Range<Int>
    var isResolver = false
    /// Code of another function: looked through, and not planned.
    var isPart = false
    /// Its first byte lies in another function.
    var isInside = false
    var frames: CallFrames.Function?
}

struct FunctionList {
    private(set) var entries: [FunctionEntry] = [] // ascending by address, one for each
    /// Without a version; valid as long as the file is open.
    private(set) var names: [UnsafeRawBufferPointer] = []
    private let resolverNames = ResolverNames()
    /// Other addresses in code that have a name: nobody knows who jumps there.
    private(set) var bareSymbols: [UInt64] = []

    private struct Name {
        var address: UInt64
        var byteCount: UInt64
        var rank: UInt8
        var isResolver: Bool
        var isBareSymbol: Bool
        var text: UnsafeRawBufferPointer
    }

    init(_ file: CodeFile, _ code: ModuleCode, _ frames: FrameTable) {
        // Linkage stubs lead to functions of others and have names at best for disassemblers.
        let stubs = file.sections.filter { $0.name == ".iplt" || $0.name.hasPrefix(".plt") }
            .map { $0.address..<$0.address &+ UInt64($0.byteCount) }.filter { !$0.isEmpty }
        func isStub(_ address: UInt64) -> Bool { stubs.contains { $0.contains(address) } }

        var found: [Name] = []
        file.forEachCodeSymbol { symbol in
            guard symbol.address >= code.text.lowerBound, code.isCode(symbol.address), !isStub(symbol.address) else { return }
            let text = symbol.name, isNoType = symbol.isNoType, isResolver = symbol.isResolver
            if text.isEmpty || isNoType && (text[0] == UInt8(ascii: "$") || text[0] == UInt8(ascii: ".")) { return } // mapping symbols
            found.append(
                Name(
                    address: symbol.address, byteCount: symbol.byteCount,
                    rank: SymbolRank.of(text, isNoType: isNoType, isResolver: isResolver, isLocal: symbol.isLocal, isWeak: symbol.isWeak),
                    isResolver: isResolver, isBareSymbol: isNoType && symbol.byteCount == 0,
                    text: isResolver ? resolverNames.add(text) : text))
        }
        found.sort { a, b in
            if (a.address, a.rank) != (b.address, b.rank) { return (a.address, a.rank) < (b.address, b.rank) }
            if a.text.count != b.text.count { return a.text.count < b.text.count }
            return memcmp(a.text.baseAddress!, b.text.baseAddress!, a.text.count) < 0
        }

        var index = 0, frame = 0
        let described = frames.functions.filter { code.isCode($0.address) && !isStub($0.address) }
        // Unwinders look up the byte before a return address: the description of what signal handlers return to begins there (glibc,
        // sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c).
        func start(_ frame: Int) -> UInt64 {
            let address = described[frame].address
            return frames.isSignalFrame(described[frame]) && index < found.count && found[index].address == address + 1
                ? address + 1 : address
        }
        while index < found.count || frame < described.count {
            let address = min(index < found.count ? found[index].address : .max, frame < described.count ? start(frame) : .max)
            var entry = FunctionEntry(address: address, end: address, names: names.count..<names.count)
            while frame < described.count, start(frame) == address {
                entry.frames = described[frame]
                frame += 1
            }
            var isBareSymbol = true, isCold = false
            let first = index
            while index < found.count, found[index].address == address {
                let name = found[index]
                if index == first { isCold = Self.isCold(name.text) }
                if !name.isBareSymbol { isBareSymbol = false }
                if name.isResolver { entry.isResolver = true }
                entry.end = max(entry.end, address &+ min(name.byteCount, 1 << 31))
                let isKnown = names[entry.names.lowerBound...].contains {
                    $0.count == name.text.count && memcmp($0.baseAddress!, name.text.baseAddress!, $0.count) == 0
                }
                if !isKnown { names.append(name.text) }
                index += 1
            }
            entry.names = entry.names.lowerBound..<names.count
            if entry.frames == nil && isBareSymbol { // not a function as far as anybody says
                names.removeSubrange(entry.names)
                bareSymbols.append(address)
                continue
            }
            if entry.end == address { entry.end = address &+ (entry.frames?.byteCount ?? 0) }
            entry.isPart = isCold
            entries.append(entry)
        }
        finish(file, code)
    }

    /// Sets sizes that nobody states, and marks entries that lie in others.
    private mutating func finish(_ file: CodeFile, _ code: ModuleCode) {
        let sections = file.sections.filter { $0.flags & 4 != 0 && $0.byteCount > 0 }.map {
            $0.address..<$0.address &+ UInt64($0.byteCount)
        }
        var reach: UInt64 = 0 // highest end of the entries so far
        var kept: [FunctionEntry] = []
        kept.reserveCapacity(entries.count)
        for (index, entry) in entries.enumerated() {
            var entry = entry
            let segmentEnd = entry.address &+ UInt64(code.code(at: entry.address).count)
            if entry.end <= entry.address { // assembly without .size: as far as the next, in its section
                let section = sections.first { $0.contains(entry.address) }
                entry.end = min(index + 1 < entries.count ? entries[index + 1].address : .max, section?.upperBound ?? segmentEnd)
            }
            entry.end = min(entry.end, segmentEnd)
            if entry.address < reach {
                // A description within what a symbol covers is none of a function.
                if entry.names.isEmpty {
                    bareSymbols.append(entry.address)
                    continue
                }
                entry.isInside = true
            }
            if entry.end <= entry.address { continue }
            reach = max(reach, entry.end)
            kept.append(entry)
        }
        // Real functions hardly lie in each other. Where a damaged table says so of many, each byte is not looked at many times.
        let total = kept.reduce(UInt64(0)) { $0 &+ ($1.end - $1.address) }
        if total / 4 > code.text.upperBound - code.text.lowerBound {
            for index in kept.indices.dropLast() { kept[index].end = min(kept[index].end, kept[index + 1].address) }
        }
        entries = kept
    }

    /// gcc, clang: the part of a function that is hardly ever reached.
    private static func isCold(_ name: UnsafeRawBufferPointer) -> Bool {
        var at = name.count - 5
        while at > 0 { // also NAME.cold.1
            if name[at] == UInt8(ascii: "."), memcmp(name.baseAddress! + at, ".cold", 5) == 0 {
                return at + 5 == name.count || name[at + 5] == UInt8(ascii: ".")
            }
            at -= 1
        }
        return false
    }

    mutating func markPart(_ index: Int) { entries[index].isPart = true }
    mutating func markResolver(_ index: Int) { entries[index].isResolver = true }

    /// The last entry that begins at or below the address; -1: none.
    func last(at address: UInt64) -> Int { bisect(entries.count) { entries[$0].address <= address } - 1 }
}
