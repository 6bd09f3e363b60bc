// libFuzzer's entry for the code of the agent that reads what it did not write: loaded images, the environment, globs, the file in
// which searches are remembered. The first byte says which; what follows is an ELF file to be loaded, or text, or that file. scripts/fuzz builds and runs it.
@testable import AgentReading
import CSupport
import FuzzDriver
import Glibc

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzELF(_ data: UnsafePointer<UInt8>?, _ byteCount: Int) -> CInt {
    guard let data, byteCount > 1 else { return 0 }
    let rest = UnsafeRawBufferPointer(start: data + 1, count: byteCount - 1)
    switch data[0] {
    case 0x73: readSettings(rest) // s
    case 0x67: matchGlobs(rest) // g
    case 0x63: ScanFileChecks.read(rest) // c
    default:
        if let loaded = Arena.load(rest) { readImage(loaded) }
    }
    return 0
}

/// All that the agent does with an image, but for calling it.
private func readImage(_ loaded: Arena.Loaded) {
    let image = Image(bias: loaded.bias, dynamic: loaded.dynamic)
    var id: (UInt64, UInt64, UInt32) = (0, 0, 0)
    _ = withUnsafeMutablePointer(to: &id) { image.copyBuildID($0) }
    let filter = image.gnuHash.filter
    VersionNeeds.forget()
    for tag in [DynamicTag.initializer, DynamicTag.initArray, DynamicTag.initArrayBytes] {
        guard let entry = image.dynamicEntry(tag) else { continue }
        entry.pointee.value = entry.pointee.value &+ 0 // written in place by LoaderWatch
        _ = image.word64(image.bias &+ entry.pointee.value)
    }
    // As Rebinder does with each slot. More of them are only more of the same.
    let pointer = OneImage.image
    pointer.pointee = image
    _ = OneImage.filters.append(filter)
    for n in 0..<min(image.jumpRelocationCount, 500) { leaveUnbound(pointer, image.bias &+ image.jumpRelocation(n).offset) }
    var slots = CallSlots<OneImage>(pointer, isGlobal: true)
    for n in 0..<min(slots.count, 500) { _ = slots.slot(n) }
    OneImage.filters.removeAll()
    for n in 0..<min(image.jumpRelocationCount, 500) { resolve(pointer, image.jumpRelocation(n), filter) }
    var low = UInt64.max, high: UInt64 = 0
    let data = image.relativeRelocationCount..<min(image.dataRelocationCount, image.relativeRelocationCount + 500)
    for n in data {
        let relocation = image.dataRelocation(n)
        resolve(pointer, relocation, filter)
        let slot = image.bias &+ relocation.offset
        if slot & 7 == 0 && image.word64(slot) != nil {
            low = min(low, slot)
            high = max(high, slot)
        }
    }
    guard low <= high, let slots = CallOnlySlots(low: low, high: high) else { return }
    defer { slots.release() }
    for n in data {
        let slot = image.bias &+ image.dataRelocation(n).offset
        if slot >= low, slot <= high, slot & 7 == 0 { slots.add(slot) }
    }
    slots.scan(image, at: CText(StaticString("/lib/fuzz.so").utf8Start))
    let identity = FileIdentity(buildIDOf: image) ?? FileIdentity(words: (7, 7, 7))
    if let key = ScanKey(identity, image, slots) { ScanFileChecks.remember(slots, key) }
    for n in data where slots.isCallOnly(image.bias &+ image.dataRelocation(n).offset) {
        open(image, image.bias &+ image.dataRelocation(n).offset)
    }
}

/// The image itself is all that is searched.
private enum OneImage: SlotScope {
    nonisolated(unsafe) static let image = UnsafeMutablePointer<Image>.allocate(capacity: 1)
    nonisolated(unsafe) static var filters = Table<BloomFilter>()

    static var none: HookPolicy { .none }
    static func policy(of name: Name) -> HookPolicy { HookPolicy.named(name) }
    static func isNone(_ policy: HookPolicy) -> Bool { policy == .none }
    static func isKnown(_ query: SymbolQuery) -> Bool { false }
    static func prefetch(_ query: SymbolQuery) {}
    static func prefetchFunction(_ name: Name) {}
    static func first(from start: Int, thatAdmits hash: UInt32) -> Int { filters.first(from: start, thatAdmits: hash) }
    static func image(_ module: Int) -> UnsafePointer<Image>? {
        module >= filters.count || image.pointee.gnuHash.isEmpty ? nil : UnsafePointer(image)
    }
}

private func resolve(_ image: UnsafeMutablePointer<Image>, _ relocation: Relocation, _ filter: BloomFilter) {
    let slot = image.pointee.bias &+ relocation.offset
    guard slot & 7 == 0, let value = image.pointee.word64(slot), let symbol = image.pointee.symbol(relocation.symbol)?.pointee,
        let text = image.pointee.name(of: symbol)
    else { return }
    let name = Name(text)
    let query = SymbolQuery(name: name, version: VersionNeeds.of(relocation.symbol, image))
    var probe = BloomFilter.Probe(name.gnuHash)
    if filter.admits(&probe), let found = Image.find(query, in: image), let definition = image.pointee.symbol(found)?.pointee {
        _ = image.pointee.isCode(image.pointee.bias &+ definition.value)
    }
    var unversioned = query
    unversioned.version = VersionNeed()
    _ = Image.find(unversioned, in: image)
    _ = image.pointee.isCode(value)
    open(image.pointee, slot)
}

/// What the loader does with a slot that it leaves to the first call (glibc elf/dl-machine.h, elf_machine_lazy_rel).
private func leaveUnbound(_ image: UnsafeMutablePointer<Image>, _ slot: UInt64) {
    guard slot & 7 == 0, image.pointee.isData(slot), let value = image.pointee.word64(slot),
        let word = UnsafeMutablePointer<UInt64>(bitPattern: UInt(slot))
    else { return }
    word.pointee = value &+ image.pointee.bias
}

/// Asserts that a slot the agent would write is writable, or lies in the part that is opened for it.
private func open(_ image: Image, _ slot: UInt64) {
    if slot >= image.relroLow && slot < image.relroHigh { return }
    if image.isData(slot), let word = UnsafeMutablePointer<UInt64>(bitPattern: UInt(slot)), image.word64(slot) != nil {
        word.pointee = word.pointee &+ 0
    }
}

/// NUL-separated NAME=VALUE, as in an environment.
private func readSettings(_ text: UnsafeRawBufferPointer) {
    var bytes = [UInt8](text) + [0]
    var buffer = [UInt8](repeating: 0, count: 1 << 12)
    bytes.withUnsafeMutableBufferPointer { bytes in
        var entries: [CText?] = []
        var start = 0
        for n in bytes.indices where bytes[n] == 0 {
            entries.append(CText(bytes.baseAddress! + start))
            start = n + 1
        }
        entries.append(nil)
        buffer.withUnsafeMutableBufferPointer { buffer in
            var store = TextBuffer(buffer.baseAddress!, capacity: buffer.count)
            var settings = Settings()
            entries.withUnsafeMutableBufferPointer { settings.read($0.baseAddress!, into: &store).report() }
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4096) { described in
                var text = TextBuffer(described.baseAddress!, capacity: 4096)
                settings.describe(&text)
            }
        }
    }
}

/// The list of globs, NUL, function, NUL, module.
private func matchGlobs(_ text: UnsafeRawBufferPointer) {
    var parts = text.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false).map { [UInt8]($0) + [0] }
    while parts.count < 3 { parts.append([0x61, 0]) }
    parts[0].withUnsafeBufferPointer { list in
        parts[1].withUnsafeBufferPointer { function in
            parts[2].withUnsafeBufferPointer { path in
                NameFilter.include = list.baseAddress!
                NameFilter.exclude = nil
                _ = NameFilter.admits(function: function.baseAddress!, path: path.baseAddress!)
                TriggerList.text = list.baseAddress!
                _ = TriggerList.number(function: function.baseAddress!, path: path.baseAddress!)
                TriggerList.text = nil
                NameFilter.exclude = list.baseAddress!
                _ = NameFilter.admits(function: function.baseAddress!, path: path.baseAddress!)
            }
        }
    }
}

@_cdecl("fuzz_elf_main")
public func fuzzMain(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> CInt {
    runFuzzer(count, arguments) { fuzzELF($0, $1) }
}
