// Finds a symbol as the loader does (glibc elf/dl-lookup.c, do_lookup_x and check_match): by hash table, by version,
// skipping undefined entries. An undefined symbol of a non-PIE program may have a value: that is its canonical PLT
// entry, not a definition.
import CSupport

/// The version that a reference asks for; nil name: none.
struct VersionNeed {
    var hash: UInt32 = 0
    var name: CText?
}

struct SymbolQuery {
    var name: Name
    var version: VersionNeed
}

/// Versions that symbols of one module need, and versions of definitions that were found, each looked up once.
enum VersionNeeds {
    nonisolated(unsafe) private static var known = InlineArray<64, VersionNeed>(repeating: VersionNeed())
    nonisolated(unsafe) private static var isKnown: UInt64 = 0
    private struct Definition {
        var key: UInt64 = 0 // table and number
        var version = VersionNeed()
    }
    /// Direct-mapped: a later version replaces an earlier one.
    nonisolated(unsafe) private static var definitions = InlineArray<64, Definition>(repeating: Definition())

    /// Forgets all versions before the next module: a table of definitions may have been unmapped since.
    static func forget() {
        isKnown = 0
        for n in 0..<64 { definitions[n].key = 0 }
    }

    /// Returns version `number` of the table of definitions at an address; `read` finds it out if it is not known.
    @inline(__always) static func definition(_ number: UInt16, of table: UInt64, _ read: () -> VersionNeed?) -> VersionNeed? {
        let key = table &<< 16 | UInt64(number), index = Int(truncatingIfNeeded: table &>> 4 ^ UInt64(number)) & 63
        if definitions[index].key != key {
            guard let version = read() else { return nil }
            definitions[index] = Definition(key: key, version: version)
        }
        return definitions[index].version
    }

    @inline(__always) static func of(_ symbol: Int, _ image: UnsafeMutablePointer<Image>) -> VersionNeed {
        let number = image.pointee.versionNumber(ofSymbol: symbol)
        if number >= 64 { return image.pointee.versionNeed(number) }
        if isKnown &>> UInt64(number) & 1 == 0 {
            known[Int(number)] = image.pointee.versionNeed(number)
            isKnown |= 1 &<< UInt64(number)
        }
        return known[Int(number)]
    }
}

extension Image {
    /// The version number of symbol `index` (DT_VERSYM); 0: none.
    @inline(__always) func versionNumber(ofSymbol index: Int) -> UInt16 {
        guard versionTable != 0, let raw = word16(versionTable &+ UInt64(index) &* 2) else { return 0 }
        return raw & 0x7fff
    }

    /// Returns the version that number `wanted` of this image stands for (DT_VERNEED; its own DT_VERDEF too).
    func versionNeed(_ wanted: UInt16) -> VersionNeed {
        if wanted < 2 { return VersionNeed() }
        var need = versionNeeds
        for _ in 0..<versionNeedCount {
            guard let entry = bytes(need, 16) else { break } // Elf64_Verneed
            let count = entry.loadUnaligned(fromByteOffset: 2, as: UInt16.self),
                next = entry.loadUnaligned(fromByteOffset: 12, as: UInt32.self)
            var auxiliary = need &+ UInt64(entry.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
            for _ in 0..<count {
                guard let version = bytes(auxiliary, 16) else { break } // Elf64_Vernaux
                if version.loadUnaligned(fromByteOffset: 6, as: UInt16.self) & 0x7fff == wanted {
                    return VersionNeed(
                        hash: version.loadUnaligned(as: UInt32.self),
                        name: string(Int(version.loadUnaligned(fromByteOffset: 8, as: UInt32.self))))
                }
                let step = version.loadUnaligned(fromByteOffset: 12, as: UInt32.self)
                if step == 0 { break }
                auxiliary = auxiliary &+ UInt64(step)
            }
            if next == 0 { break }
            need = need &+ UInt64(next)
        }
        return definedVersion(wanted) ?? VersionNeed()
    }

    /// Name and hash of version definition `index`.
    private func definedVersion(_ index: UInt16) -> VersionNeed? {
        var definition = versionDefinitions
        for _ in 0..<versionDefinitionCount {
            guard let entry = bytes(definition, 20) else { return nil } // Elf64_Verdef
            if entry.loadUnaligned(fromByteOffset: 4, as: UInt16.self) & 0x7fff == index {
                let name = word32(definition &+ UInt64(entry.loadUnaligned(fromByteOffset: 12, as: UInt32.self)))
                return name.map { VersionNeed(hash: entry.loadUnaligned(fromByteOffset: 8, as: UInt32.self), name: string(Int($0))) }
            }
            let next = entry.loadUnaligned(fromByteOffset: 16, as: UInt32.self)
            if next == 0 { return nil }
            definition = definition &+ UInt64(next)
        }
        return nil
    }
    /// Returns the bytes at an address; nil unless all of them may be read.
    @inline(__always) private func bytes(_ address: UInt64, _ byteCount: UInt64) -> UnsafeRawPointer? {
        isReadable(address, byteCount) ? UnsafeRawPointer(bitPattern: UInt(address)) : nil
    }

    /// Properties of a function, as its definition has them.
    struct Definition {
        /// The caller's own symbol may lack this mark, if it was linked to another build of the library (see Symbol).
        var hasVariantConvention = false
        var byteCount: UInt64 = 0
    }
    /// Returns no properties if no mark in a symbol matters.
    @inline(__always) static func definition(_ name: Name, at target: UInt64, in image: UnsafePointer<Image>) -> Definition {
        Architecture.variantConvention == 0 ? Definition() : markedDefinition(name, target, image)
    }
    static func markedDefinition(_ name: Name, _ target: UInt64, _ image: UnsafePointer<Image>) -> Definition {
        guard let index = find(SymbolQuery(name: name, version: VersionNeed()), in: image),
            let symbol = image.pointee.symbol(index)?.pointee,
            image.pointee.bias &+ symbol.value == target
        else { return Definition() }
        return Definition(hasVariantConvention: symbol.hasVariantConvention, byteCount: symbol.size)
    }

    /// The address of a function that the image defines, by its name.
    @inline(never) static func function(_ name: StaticString, of image: UnsafePointer<Image>) -> UInt64? {
        let query = SymbolQuery(name: Name(CText(name.utf8Start)), version: VersionNeed())
        guard let index = find(query, in: image), let symbol = image.pointee.symbol(index)?.pointee,
            image.pointee.isCode(image.pointee.bias &+ symbol.value)
        else { return nil }
        return image.pointee.bias &+ symbol.value
    }

    /// Index of the definition that answers the query, or nil. By address: a start looks for tens of thousands of symbols,
    /// and to hand over the structure itself is to copy it. `first`: the first symbol with this hash, where it is known.
    static func find(_ query: SymbolQuery, in image: UnsafePointer<Image>, from first: UInt32 = 0) -> Int? {
        if !image.pointee.isUsable { return nil }
        return !image.pointee.gnuHash.isEmpty
            ? findByGnuHash(image, query, first)
            : image.pointee.sysvHashTable != 0 ? findBySysvHash(image, query) : nil
    }

    /// A search of many modules asks their filters first.
    private static func findByGnuHash(_ image: UnsafePointer<Image>, _ query: SymbolQuery, _ first: UInt32) -> Int? {
        let hash = query.name.gnuHash
        var index = first != 0 ? first : image.pointee.gnuHash.bucket(of: hash).pointee
        var choice = VersionChoice()
        while let link = image.pointee.gnuHash.chain(ofSymbol: index)?.pointee {
            if (link ^ hash) &>> 1 == 0, matches(image, Int(index), query, &choice) { return Int(index) }
            if link & 1 != 0 { break }
            index = index &+ 1
        }
        return choice.only
    }

    private static func findBySysvHash(_ image: UnsafePointer<Image>, _ query: SymbolQuery) -> Int? {
        var hash: UInt32 = 0
        for n in 0..<query.name.byteCount {
            hash = hash &<< 4 &+ UInt32(query.name.text[n])
            hash = (hash ^ ((hash & 0xf000_0000) &>> 24)) & 0x0fff_ffff
        }
        let sysvHashTable = image.pointee.sysvHashTable
        guard let bucketCount = image.pointee.rareWord32(sysvHashTable), let chainCount = image.pointee.rareWord32(sysvHashTable &+ 4),
            bucketCount > 0, var index = image.pointee.rareWord32(sysvHashTable &+ 8 &+ UInt64(hash % bucketCount) &* 4)
        else { return nil }
        let chains = sysvHashTable &+ 8 &+ UInt64(bucketCount) &* 4
        var choice = VersionChoice()
        // In a hostile file the chain may be circular, and the count wrong.
        var left = image.pointee.isReadable(chains, UInt64(chainCount) &* 4) ? chainCount : 0
        while index != 0 && left > 0 {
            if matches(image, Int(index), query, &choice) { return Int(index) }
            guard let next = image.pointee.rareWord32(chains &+ UInt64(index) &* 4) else { break }
            index = next
            left &-= 1
        }
        return choice.only
    }

    /// For a reference without a version: the only default version that was seen counts.
    struct VersionChoice {
        var first = 0
        var count = 0
        var only: Int? { count == 1 ? first : nil }
    }

    private static func matches(_ image: UnsafePointer<Image>, _ index: Int, _ query: SymbolQuery, _ choice: inout VersionChoice) -> Bool {
        guard let symbol = image.pointee.symbol(index)?.pointee, symbol.section != 0, symbol.binding != Symbol.local,
            symbol.value != 0 || symbol.section == 0xfff1, symbol.type != 6,
            image.pointee.isNamed(symbol, query.name)
        else { return false }
        guard image.pointee.versionTable != 0, let raw = image.pointee.word16(image.pointee.versionTable &+ UInt64(index) &* 2)
        else { return true }
        if let wanted = query.version.name {
            // Indices 0 and 1 are the library's unversioned symbols: they answer unless they are hidden.
            let number = raw & 0x7fff
            guard number > 1,
                let defined = VersionNeeds.definition(
                    number, of: image.pointee.versionDefinitions, { image.pointee.definedVersion(number) })
            else { return raw & 0x8000 == 0 }
            return defined.hash == query.version.hash && defined.name != nil && equal(defined.name!, wanted)
        }
        if raw & 0x7fff < 3 { return true }
        if raw & 0x8000 == 0 {
            if choice.count == 0 { choice.first = index }
            choice.count &+= 1
        }
        return false
    }
}
