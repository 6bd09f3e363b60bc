// DWARF of one file, as far as it is asked for: lines of addresses, and the variables of a compilation unit. SourceFunctions.swift reads
// the declarations of its functions.
//
// A file whose DWARF the compiler has split (-gsplit-dwarf) has skeletons: addresses and lines of units (DWARF 5, 3.1.2). The other entries
// are in .dwo files, which are read if they lie where the skeletons say, or in one .dwp file, which libdw 0.188 does not read.
import CElfutils
import Glibc
import TraceFormat

package struct SourceLocation: Sendable, Equatable, Hashable {
    /// As it was given to the compiler, made absolute where DWARF has the directory.
    package var path: String
    package var line: Int

    package var fileName: String { String(path[(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex)...]) }
}

package final class DebugInformation {
    struct Unit {
        var range: Range<UInt64>
        var die: Dwarf_Die
    }

    private let file: ObjectFile // holds the bytes that `dwarf` reads
    private let dwarf: OpaquePointer
    /// Sorted by address. A unit may have several ranges.
    let units: [Unit]

    // A hostile file may ask for any amount of work; these are beyond what the largest programs have.
    private static let mostUnits = 500_000, mostRanges = 4_000_000, mostEntries = 200_000, deepestNamespace = 16

    /// nil when the file has none.
    package init?(_ file: ObjectFile) {
        guard let dwarf = dwarf_begin_elf(file.elf, DWARF_C_READ, nil) else { return nil }
        self.file = file
        self.dwarf = dwarf
        units = Self.units(dwarf)
        if units.isEmpty { return nil }
    }

    // No dwarf_end: libdw 0.188 frees twice what it has read of a damaged file. What is kept instead is small against
    // the file, and the file is let go of.

    /// .debug_aranges would be faster and is not always there: clang writes none.
    private static func units(_ dwarf: OpaquePointer) -> [Unit] {
        var result: [Unit] = []
        var offset: Dwarf_Off = 0, next: Dwarf_Off = 0
        var headerBytes = 0
        var count = 0
        while count < mostUnits, dwarf_nextcu(dwarf, offset, &next, &headerBytes, nil, nil, nil) == 0, next > offset {
            count += 1
            var die = Dwarf_Die()
            if dwarf_offdie(dwarf, offset + Dwarf_Off(headerBytes), &die) != nil,
                [DW_TAG_compile_unit, DW_TAG_skeleton_unit].contains(Int(dwarf_tag(&die)))
            {
                let unit = die
                forEachRange(of: &die) { result.append(Unit(range: $0, die: unit)) }
            }
            if result.count > mostRanges { break }
            offset = next
        }
        return result.sorted { $0.range.lowerBound < $1.range.lowerBound }
    }

    private static func forEachRange(of die: inout Dwarf_Die, _ body: (Range<UInt64>) -> Void) {
        var base: Dwarf_Addr = 0, start: Dwarf_Addr = 0, end: Dwarf_Addr = 0
        var offset = 0
        for _ in 0..<mostRanges {
            offset = dwarf_ranges(&die, offset, &base, &start, &end)
            guard offset > 0 else { return }
            if start < end, start != 0 { body(start..<end) } // 0: a function that the linker dropped
        }
    }

    func unit(at address: UInt64) -> Unit? {
        let next = bisect(units.count) { units[$0].range.lowerBound <= address }
        // Ranges of different units overlap only in damaged files; a few are looked at for those that nest.
        return units[max(next - 8, 0)..<next].last { $0.range.contains(address) }
    }

    /// Returns the unit with all of its entries: that of its .dwo file in place of a skeleton; nil: it is not here.
    func whole(_ unit: Dwarf_Die) -> (die: Dwarf_Die, isSplit: Bool)? {
        var unit = unit
        guard let name = Self.string(&unit, Int(DW_AT_dwo_name)) ?? Self.string(&unit, Int(DW_AT_GNU_dwo_name)) else {
            return (unit, false)
        }
        // libdw will look there (libdw_find_split_unit.c), and would wait for a FIFO.
        let folder = String(file.path[..<(file.path.lastIndex(of: "/") ?? file.path.startIndex)])
        var paths = [Self.absolute(name, folder)]
        if let directory = Self.string(&unit, Int(DW_AT_comp_dir)) { paths.append(Self.absolute(name, Self.absolute(directory, folder))) }
        let kinds = paths.compactMap { path in
            var status = stat()
            return stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
        }
        var split = Dwarf_Die()
        guard !kinds.isEmpty, kinds.allSatisfy({ $0 == S_IFREG }), dwarf_cu_info(unit.cu, nil, nil, nil, &split, nil, nil, nil) == 0,
            split.addr != nil
        else { return nil }
        return (split, true)
    }

    /// Returns the contiguous range of its unit's code that holds `address`; nil: no unit does.
    package func unitRange(at address: UInt64) -> Range<UInt64>? { unit(at: address)?.range }

    package func line(at address: UInt64) -> SourceLocation? {
        guard var die = unit(at: address)?.die, let line = dwarf_getsrc_die(&die, address) else { return nil }
        return Self.location(line, in: &die)
    }

    private static func location(_ line: OpaquePointer, in unit: inout Dwarf_Die) -> SourceLocation? {
        var number: Int32 = 0
        guard dwarf_lineno(line, &number) == 0, number > 0, let source = dwarf_linesrc(line, nil, nil) else { return nil }
        return SourceLocation(path: absolute(printable(source), string(&unit, Int(DW_AT_comp_dir))), line: Int(number))
    }

    private static let mostInlined = 256

    package func inlined(at address: UInt64) -> [String] {
        guard var unit = unit(at: address).flatMap({ whole($0.die)?.die }) else { return [] }
        var found: UnsafeMutablePointer<Dwarf_Die>?, names: [String] = []
        // The first goes on with where an inlined function was declared, the second with what it was put into.
        guard dwarf_getscopes(&unit, address, &found) > 0, let innermost = found else { return [] }
        defer { free(innermost) }
        var around: UnsafeMutablePointer<Dwarf_Die>?
        let count = dwarf_getscopes_die(innermost, &around)
        guard count > 0, let around else { return [] }
        defer { free(around) }
        for index in 0..<min(Int(count), Self.mostInlined) where Int(dwarf_tag(&around[index])) == DW_TAG_inlined_subroutine {
            if let name = Self.string(&around[index], Int(DW_AT_linkage_name)) ?? Self.string(&around[index], Int(DW_AT_name)) {
                names.append(name)
            }
        }
        return names
    }

    private static func absolute(_ path: String, _ directory: String?) -> String {
        path.hasPrefix("/") ? path : directory.map { $0 + "/" + path } ?? path
    }

    static func string(_ die: inout Dwarf_Die, _ name: Int) -> String? {
        var attribute = Dwarf_Attribute()
        guard dwarf_attr_integrate(&die, UInt32(name), &attribute) != nil,
            let text = dwarf_formstring(&attribute)
        else { return nil }
        return printable(text)
    }

    /// Returns the ranges of all code of the unit at this address (100,000 at most); empty: no unit holds it.
    package func unitRanges(at address: UInt64) -> [Range<UInt64>] {
        guard var die = unit(at: address)?.die else { return [] }
        var ranges: [Range<UInt64>] = []
        Self.forEachRange(of: &die) { if ranges.count < 100_000 { ranges.append($0) } }
        return ranges
    }

    /// The name of the source file of the unit at this address, as the compiler was given it.
    package func unitName(at address: UInt64) -> String? {
        guard var die = unit(at: address).flatMap({ whole($0.die)?.die }) else { return nil }
        return Self.string(&die, Int(DW_AT_name))
    }

    /// Variables of the unit that holds `ranges`, declared on lines that code in `ranges` is of, in source order.
    package func variables(initializedIn ranges: [Range<UInt64>]) -> [String] {
        guard let first = ranges.first, var unit = unit(at: first.lowerBound)?.die else { return [] }
        var lines: Set<SourceLocation> = []
        var table: OpaquePointer?
        var count = 0
        guard dwarf_getsrclines(&unit, &table, &count) == 0, let table else { return [] }
        for index in 0..<count {
            guard let line = dwarf_onesrcline(table, index) else { break }
            var address: Dwarf_Addr = 0
            guard dwarf_lineaddr(line, &address) == 0, ranges.contains(where: { $0.contains(address) }) else { continue }
            if let location = Self.location(line, in: &unit) { lines.insert(location) }
        }
        guard !lines.isEmpty, let entries = whole(unit) else { return [] }
        var root = entries.die
        var found: [(line: Int, name: String)] = []
        var budget = Self.mostEntries
        let source = Source(
            name: Self.string(&root, Int(DW_AT_name)), directory: Self.string(&unit, Int(DW_AT_comp_dir)), isSplit: entries.isSplit)
        Self.variables(in: &root, source, on: lines, &found, &budget, 0)
        return found.sorted { ($0.line, $0.name) < ($1.line, $1.name) }.map { $0.name }
    }

    /// A unit's own source file. DWARF 5 numbers files from 0, and libdw 0.188 takes file 0 for none: it is the unit's own file.
    private struct Source {
        var name: String?
        var directory: String?
        /// libdw has not read the list of files of a .dwo, and insists on it (dwarf_decl_file.c).
        var isSplit: Bool

        /// The file that a variable is declared in; nil: unknown.
        func file(of die: inout Dwarf_Die) -> String? {
            if !isSplit { return dwarf_decl_file(&die).map { printable($0) } ?? name }
            var attribute = Dwarf_Attribute(), number: Dwarf_Word = 0
            guard dwarf_attr_integrate(&die, UInt32(DW_AT_decl_file), &attribute) != nil, dwarf_formudata(&attribute, &number) == 0
            else { return nil }
            return number <= 1 ? name : nil // 0 or 1 is the unit's own (DWARF 5, 6.2.4; gcc has it at both)
        }
    }

    private static func variables(
        in parent: inout Dwarf_Die, _ source: Source, on lines: Set<SourceLocation>,
        _ found: inout [(line: Int, name: String)], _ budget: inout Int, _ depth: Int
    ) {
        var die = Dwarf_Die()
        guard depth < deepestNamespace, dwarf_child(&parent, &die) == 0 else { return }
        var current: Dwarf_Die
        repeat {
            current = die
            budget -= 1
            if budget < 0 { return }
            switch Int(dwarf_tag(&die)) {
            case DW_TAG_namespace: variables(in: &die, source, on: lines, &found, &budget, depth + 1)
            case DW_TAG_variable:
                var line: Int32 = 0
                // Only variables with a location: neither declarations nor constants.
                guard dwarf_hasattr(&die, UInt32(DW_AT_location)) != 0, dwarf_decl_line(&die, &line) == 0,
                    let file = source.file(of: &die),
                    lines.contains(SourceLocation(path: absolute(file, source.directory), line: Int(line))),
                    let name = string(&die, Int(DW_AT_linkage_name)) ?? string(&die, Int(DW_AT_name))
                else { continue }
                found.append((Int(line), name))
            default: break
            }
        } while dwarf_siblingof(&current, &die) == 0
    }
}
