// Puts a plan together, function by function, in the order of their addresses.
import CTraceLayout
import Glibc
import TraceFormat

struct PlanBuilder {
    let base: UInt64
    private(set) var functions: [plan_function] = []
    private var fixups: [plan_fixup] = []
    private var sites: [plan_site] = []
    private var bytes: [UInt8] = []
    private var keys: [UInt32] = []
    private var names: [UInt8] = []
    /// Most functions begin alike: what is there already is not kept twice.
    private var known: [[UInt8]: UInt32] = [:]

    init(base: UInt64) { self.base = base }

    mutating func addRelocated(_ relocated: RelocatedCode, to function: inout plan_function) {
        let originals = relocated.originals(patch: Int(function.patch)), content = relocated.bytes + originals
        if let offset = known[content] {
            function.relocated = offset
        } else {
            function.relocated = UInt32(bytes.count)
            known[content] = function.relocated
            bytes += content
        }
        function.relocated_count = UInt8(relocated.bytes.count)
        function.instruction_count = UInt8(originals.count / MemoryLayout<plan_instruction>.size)
        function.linked = UInt8(relocated.linked)
        function.fixup = UInt32(fixups.count)
        function.fixup_count = UInt8(relocated.fixups.count)
        fixups += relocated.fixups
    }

    /// - Parameter words: of the call sites that lead to it, in order, relative to the base
    mutating func add(_ function: plan_function, names texts: ArraySlice<UnsafeRawBufferPointer>, sites words: [UInt32]) {
        guard functions.count < Int(PLAN_MOST_FUNCTIONS) else { return }
        var function = function
        function.names = UInt32(names.count)
        function.name_count = UInt8(clamping: texts.count)
        for text in texts.prefix(255) {
            if RustWaits.isOne(text) { function.flags |= UInt8(PLAN_FUNCTION_OBJECT) }
            keys.append(text.withMemoryRebound(to: UInt8.self) { $0.baseAddress.map { PlanContent.nameKey($0, text.count) } ?? 0 })
            names += text
            names.append(0)
        }
        sites += words.map { plan_site(function: UInt32(functions.count), word: $0) }
        functions.append(function)
    }

    /// Only jumps to functions that have call sites depend on a stub.
    private func resolvedFixups() -> [plan_fixup] {
        let called = Set(functions.lazy.filter { $0.tactic == Tactic.calls.rawValue }.map { Int32(bitPattern: $0.address) })
        return fixups.map { fixup in
            var fixup = fixup
            if called.contains(fixup.target) { return fixup }
            if fixup.kind == UInt8(PLAN_STUB32.rawValue) { fixup.kind = UInt8(PLAN_RELATIVE32.rawValue) }
            if fixup.kind == UInt8(PLAN_STUB26.rawValue) { fixup.kind = UInt8(PLAN_BRANCH26.rawValue) }
            return fixup
        }
    }

    /// The file's bytes; nil: larger than a plan may be.
    func file(_ header: plan_file) -> [UInt8]? {
        var header = header
        func padded(_ count: Int) -> Int { (count + 7) & ~7 }
        let start = MemoryLayout<plan_file>.size
        let fixupsAt = start + functions.count * MemoryLayout<plan_function>.size
        let sitesAt = fixupsAt + fixups.count * MemoryLayout<plan_fixup>.size
        let bytesAt = sitesAt + sites.count * MemoryLayout<plan_site>.size
        let keysAt = bytesAt + padded(bytes.count)
        let namesAt = padded(keysAt + keys.count * MemoryLayout<UInt32>.size)
        let total = namesAt + padded(names.count)
        guard total <= Int(PLAN_MOST_BYTES) else { return nil }
        (header.magic, header.version, header.rules) = (UInt64(PLAN_MAGIC), UInt32(PLAN_VERSION), UInt32(PLAN_RULES))
        (header.byte_count, header.base) = (UInt64(total), base)
        (header.function_count, header.fixup_count) = (UInt32(functions.count), UInt32(fixups.count))
        (header.functions, header.fixups, header.bytes, header.names) = (UInt32(start), UInt32(fixupsAt), UInt32(bytesAt), UInt32(namesAt))
        (header.bytes_count, header.names_count) = (UInt32(bytes.count), UInt32(names.count))
        (header.sites, header.site_count) = (UInt32(sitesAt), UInt32(sites.count))
        (header.keys, header.key_count) = (UInt32(keysAt), UInt32(keys.count))
        return [UInt8](unsafeUninitializedCapacity: total) { buffer, count in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            raw.initializeMemory(as: UInt8.self, repeating: 0)
            func put<T>(_ values: [T], at offset: Int) {
                values.withUnsafeBytes { if !$0.isEmpty { UnsafeMutableRawBufferPointer(rebasing: raw[offset...]).copyMemory(from: $0) } }
            }
            put(functions, at: start)
            put(resolvedFixups(), at: fixupsAt)
            put(sites, at: sitesAt)
            put(bytes, at: bytesAt)
            put(keys, at: keysAt)
            put(names, at: namesAt)
            header.names_checksum = PlanContent.checksum(raw.baseAddress! + namesAt, byteCount: total - namesAt)
            put([header], at: 0)
            header.checksum = PlanContent.checksum(raw.baseAddress!, byteCount: namesAt, without: Int(PLAN_CHECKSUM_OFFSET))
            put([header], at: 0)
            count = total
        }
    }
}
