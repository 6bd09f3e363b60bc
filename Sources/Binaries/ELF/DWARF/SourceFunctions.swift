// Functions as their source declares them: parameters and results, and where the parameters are when a function begins.
import CElfutils
import Glibc

/// A name in the symbol table.
package struct FunctionName: Sendable, Hashable {
    package var text: String
    package var isLocal: Bool

    package init(_ text: String, isLocal: Bool) { (self.text, self.isLocal) = (text, isLocal) }
}

/// A function that has code.
package struct SourceFunction: Sendable {
    package enum Language: Sendable, Equatable { case c, cPlusPlus, rust, swift, other(Int) }
    package enum Compiler: Sendable, Equatable { case gcc, llvm, other }

    package var name: String
    /// No other module can call it by its name.
    package var isLocal: Bool
    /// As linked.
    package var address: UInt64
    package var language: Language
    package var compiler: Compiler
    /// Its code was optimized, as far as the debug information shows.
    package var isOptimized: Bool
    /// Its declaration says the types of its parameters, as not all of C do.
    package var isPrototyped: Bool
    package enum Convention: Sendable { case standard, changed, other }
    /// `changed`: LLVM has changed what it takes or returns (DW_CC_nocall).
    package var convention: Convention
    package var parameters: [SourceParameter]
    package var result: SourceType
    /// What was asked for, by its path.
    package var members: [String: Result<SourceMember, MemberProblem>] = [:]

    package init(
        name: String, isLocal: Bool, address: UInt64, language: Language, compiler: Compiler, isOptimized: Bool, isPrototyped: Bool,
        convention: Convention, parameters: [SourceParameter], result: SourceType,
        members: [String: Result<SourceMember, MemberProblem>] = [:]
    ) {
        (self.name, self.isLocal, self.address, self.language, self.compiler) = (name, isLocal, address, language, compiler)
        (self.isOptimized, self.isPrototyped, self.convention) = (isOptimized, isPrototyped, convention)
        (self.parameters, self.result, self.members) = (parameters, result, members)
    }
}

package struct SourceParameter: Sendable {
    package var name: String?
    package var type: SourceType
    /// The compiler has added it: `this`, and what constructors get.
    package var isArtificial: Bool
    package var location: EntryLocation
    /// The place that its function keeps it at, in Rust and Swift; nil: none is said.
    package var home: ParameterHome?

    package init(name: String?, type: SourceType, isArtificial: Bool, location: EntryLocation, home: ParameterHome? = nil) {
        (self.name, self.type, self.isArtificial, self.location, self.home) = (name, type, isArtificial, location, home)
    }
}

/// Place of a parameter once the first instructions of its function have put it there. Registers have DWARF's numbers.
package enum ParameterHome: Sendable, Equatable {
    /// In the frame, at an offset from a register.
    case place(register: Int, offset: Int)
    /// Its address is there.
    case address(register: Int, offset: Int)
    /// Its address is in a register, before the instruction at an offset from the function's beginning.
    case held(register: Int, before: Int)
}

/// Place of a parameter at the first instruction of its function.
package enum EntryLocation: Sendable, Equatable {
    /// In a register, by its number in DWARF. `isList`: the location holds from the first instruction on; otherwise the whole function is
    /// said to have it there.
    case register(Int, isList: Bool)
    /// On the stack. `offset`: from the canonical frame address, where it is known; one below 0 is of the function's own frame, where the
    /// first instructions put the parameter.
    case stack(offset: Int?, isList: Bool)
    /// In the memory that a register points to, at an offset.
    case memory(register: Int, offset: Int, isList: Bool)
    /// In registers, a piece in each.
    case registers([EntryPiece], isList: Bool)
    /// In memory whose address is in the function's own frame, where the first instructions put it.
    case indirect
    /// Nowhere, as far as is known.
    case none
    /// Something else: a constant, parts in memory.
    case other
}

/// What a register has of a parameter, in its lowest bytes.
package struct EntryPiece: Sendable, Equatable {
    /// In DWARF.
    package var register: Int
    /// In the parameter.
    package var offset: Int
    package var byteCount: Int

    package init(register: Int, offset: Int, byteCount: Int) {
        (self.register, self.offset, self.byteCount) = (register, offset, byteCount)
    }
}

extension CodeFile {
    /// Reads the file or its separate debug file; nil: there is none, or it cannot be read.
    package var debugInformation: DebugInformation? {
        for each in [file] + others { if let found = DebugInformation(each) { return found } }
        return nil
    }
}

extension DebugInformation {
    private static let mostChildren = 1_000_000

    /// Calls `body` with each entry within this one, until it returns false. The entries of a damaged file may go round in circles.
    static func forEachChild(of parent: Dwarf_Die, _ body: (inout Dwarf_Die) -> Bool) {
        var parent = parent, child = Dwarf_Die()
        guard dwarf_child(&parent, &child) == 0 else { return }
        for _ in 0..<mostChildren {
            var current = child
            if !body(&child) || dwarf_siblingof(&current, &child) != 0 { return }
        }
    }

    /// Calls `body` with each function that begins at one of these addresses, as linked, where the symbol table has these names.
    /// - Parameters:
    ///   - paths: members to be found, by the name of the function
    ///   - swiftNames: of Swift's types
    ///   - isMissing: called with the path of each .dwo file that is needed and is not here
    package func forEachSourceFunction(
        at wanted: [UInt64: [FunctionName]], paths: [String: [MemberPath]] = [:],
        swiftNames: SwiftTypeNames = SwiftTypeNames(cases: { _ in nil }, fields: { _ in nil }),
        isMissing: (String) -> Void,
        _ body: (SourceFunction) -> Void
    ) {
        var units: [Dwarf_Off: (unit: Dwarf_Die, count: Int)] = [:]
        for address in wanted.keys {
            guard var die = unit(at: address)?.die else { continue }
            let offset = dwarf_dieoffset(&die)
            units[offset] = (die, (units[offset]?.count ?? 0) + 1)
        }
        var budget = Self.mostScanned
        for (_, (unit, count)) in units.sorted(by: { $0.key < $1.key }) {
            guard let entries = whole(unit) else {
                var unit = unit
                isMissing(Self.string(&unit, Int(DW_AT_dwo_name)) ?? Self.string(&unit, Int(DW_AT_GNU_dwo_name)) ?? "")
                continue
            }
            var reader = SourceFunctionReader(entries.die, wanted: wanted, paths: paths, swiftNames, count: count)
            reader.read(&budget, body)
        }
    }
    private static let mostScanned = 50_000_000
}

/// Reads the functions of one unit.
private struct SourceFunctionReader {
    private let unit: Dwarf_Die
    private let wanted: [UInt64: [FunctionName]]
    private let paths: [String: [MemberPath]]
    /// Addresses that are still to be found.
    private var left: Int
    private let language: SourceFunction.Language
    private let compiler: SourceFunction.Compiler
    private let isOldVersion: Bool
    /// Options that change how arguments are passed, which gcc notes.
    private let hasOwnConvention: Bool
    private var types: SourceTypeReader
    /// nil: each function shows it.
    private let isUnitOptimized: Bool?

    private static let deepest = 32, mostParameters = 64

    init(
        _ unit: Dwarf_Die, wanted: [UInt64: [FunctionName]], paths: [String: [MemberPath]], _ swiftNames: SwiftTypeNames,
        count: Int
    ) {
        var unit = unit, attribute = Dwarf_Attribute(), code: Dwarf_Word = 0, version: Dwarf_Half = 0
        if dwarf_attr(&unit, UInt32(DW_AT_language), &attribute) != nil { _ = dwarf_formudata(&attribute, &code) }
        let producer = DebugInformation.string(&unit, Int(DW_AT_producer)) ?? ""
        compiler = producer.hasPrefix("GNU ") ? .gcc : ["clang", "LLVM", "Swift"].contains { producer.contains($0) } ? .llvm : .other
        let options = producer.split(separator: " ")
        hasOwnConvention = ["-mabi=ms", "-mlong-double-128", "-msoft-float", "-mno-sse", "-mgeneral-regs-only", "-mabi=ilp32"].contains {
            options.contains(Substring($0))
        }
        language = Self.language(Int(truncatingIfNeeded: code), producer)
        _ = dwarf_cu_info(unit.cu, &version, nil, nil, nil, nil, nil, nil)
        isOldVersion = version < 4
        types = SourceTypeReader(hasClasses: language == .cPlusPlus, swiftNames: language == .swift ? swiftNames : nil)
        isUnitOptimized = language == .rust || language == .swift ? OptimizationMarks.areFound(in: unit) : nil
        left = count
        self.unit = unit
        self.wanted = wanted
        self.paths = paths
    }

    /// DW_LANG_…, with numbers given out after DWARF 5 (https://dwarfstd.org/languages.html).
    private static func language(_ code: Int, _ producer: String) -> SourceFunction.Language {
        if producer.contains("zig") { return .other(code) } // it says that it is C
        switch code {
        case DW_LANG_C89, DW_LANG_C, DW_LANG_C99, DW_LANG_C11, 0x2c, 0x3e: return .c
        case DW_LANG_C_plus_plus, DW_LANG_C_plus_plus_03, DW_LANG_C_plus_plus_11, DW_LANG_C_plus_plus_14, 0x2a, 0x2b: return .cPlusPlus
        case DW_LANG_Rust: return .rust
        case 0x1e: return .swift
        default: return .other(code)
        }
    }

    mutating func read(_ budget: inout Int, _ body: (SourceFunction) -> Void) {
        var unit = unit
        scan(&unit, 0, &budget, body)
    }

    private mutating func scan(_ parent: inout Dwarf_Die, _ depth: Int, _ budget: inout Int, _ body: (SourceFunction) -> Void) {
        var die = Dwarf_Die(), current: Dwarf_Die
        guard depth < Self.deepest, dwarf_child(&parent, &die) == 0 else { return }
        repeat {
            current = die
            budget -= 1
            if budget < 0 || left <= 0 { return }
            switch Int(dwarf_tag(&die)) {
            case DW_TAG_subprogram:
                if let low = Self.entry(&die), let names = wanted[low] {
                    left -= 1
                    if let function = function(&die, low, names) { body(function) }
                }
            // Rust defines functions within the types whose methods they are, and within other functions.
            case DW_TAG_namespace, DW_TAG_module: scan(&die, depth + 1, &budget, body)
            case DW_TAG_structure_type, DW_TAG_enumeration_type, DW_TAG_union_type:
                if language == .rust { scan(&die, depth + 1, &budget, body) }
            default: break
            }
        } while dwarf_siblingof(&current, &die) == 0
    }

    /// Address of its first instruction; nil: it has no code of its own.
    private static func entry(_ die: inout Dwarf_Die) -> UInt64? {
        var base: Dwarf_Addr = 0, start: Dwarf_Addr = 0, end: Dwarf_Addr = 0
        if dwarf_hasattr(&die, UInt32(DW_AT_low_pc)) != 0 || dwarf_hasattr(&die, UInt32(DW_AT_entry_pc)) != 0 {
            return dwarf_entrypc(&die, &start) == 0 && start != 0 ? start : nil
        }
        // Code in several places begins in the first (gcc's dwarf2out.cc, gen_subprogram_die).
        return dwarf_hasattr(&die, UInt32(DW_AT_ranges)) != 0 && dwarf_ranges(&die, 0, &base, &start, &end) > 0 ? start : nil
    }

    private mutating func function(_ die: inout Dwarf_Die, _ address: UInt64, _ names: [FunctionName]) -> SourceFunction? {
        let linkage =
            DebugInformation.string(&die, Int(DW_AT_linkage_name)) ?? DebugInformation.string(&die, Int(DW_AT_MIPS_linkage_name))
        let own = linkage ?? DebugInformation.string(&die, Int(DW_AT_name))
        // Another name of the same code is a function of its own, whose parameters may be others: the linker has found them alike.
        guard let own,
            let name = names.first(where: { $0.text == own }) ?? names.first(where: { Self.isSameConstructor($0.text, own) })
                ?? (language == .cPlusPlus && linkage == nil ? Self.mangled(own, names) : nil)
        else {
            return nil
        }
        var attribute = Dwarf_Attribute(), value: Dwarf_Word = 0, flag = false
        var convention = hasOwnConvention ? SourceFunction.Convention.other : .standard
        if dwarf_attr_integrate(&die, UInt32(DW_AT_calling_convention), &attribute) != nil {
            if dwarf_formudata(&attribute, &value) != 0 { value = 0 }
            if value != DW_CC_normal, value != DW_CC_program { convention = value == DW_CC_nocall ? .changed : .other }
        }
        let isPrototyped =
            language != .c
            || dwarf_attr_integrate(&die, UInt32(DW_AT_prototyped), &attribute) != nil && dwarf_formflag(&attribute, &flag) == 0 && flag
        let entries = parameters(&die, address)
        if language == .swift, name.text.hasSuffix("Tm") { convention = .other } // several functions that the compiler has merged
        // Both compilers say of optimized code alone that all its calls are described.
        let isOptimized =
            isOldVersion && compiler != .gcc
            || [DW_AT_call_all_calls, DW_AT_GNU_all_call_sites].contains { dwarf_hasattr_integrate(&die, UInt32($0)) != 0 }
            || entries.contains {
                switch $0.location {
                case .register, .other, .stack(_, isList: true), .memory(_, _, isList: true), .registers: true
                case .none: !$0.isArtificial // a constructor that needs no address of virtual bases is not given one
                case .stack, .memory, .indirect: false
                }
            }
        var members: [String: Result<SourceMember, MemberProblem>] = [:]
        for path in paths[name.text] ?? [] {
            do throws(MemberProblem) { members[path.text] = .success(try member(path, of: die)) } catch {
                members[path.text] = .failure(error)
            }
        }
        return SourceFunction(
            name: name.text, isLocal: name.isLocal, address: address, language: language, compiler: compiler,
            isOptimized: isUnitOptimized ?? isOptimized,
            isPrototyped: isPrototyped,
            convention: convention, parameters: entries, result: types.type(of: &die), members: members)
    }

    private mutating func member(_ path: MemberPath, of die: Dwarf_Die) throws(MemberProblem) -> SourceMember {
        var die = die, attribute = Dwarf_Attribute(), origin = Dwarf_Die(), all = Self.entries(die)
        if dwarf_attr(&die, UInt32(DW_AT_abstract_origin), &attribute) != nil, dwarf_formref_die(&attribute, &origin) != nil {
            all += Self.entries(origin)
        }
        let named = all.first { entry in
            var entry = entry
            return DebugInformation.string(&entry, Int(DW_AT_name)) == path.parameter
        }
        guard let type = named.flatMap(SourceMembers.target) else {
            throw MemberProblem(reason: "no parameter is called \(path.parameter)")
        }
        return try path.resolved(from: type, &types)
    }

    /// gcc does not say the mangled name of a C++ function that no other unit can call (dwarf2out.cc, add_linkage_name).
    private static func mangled(_ name: String, _ names: [FunctionName]) -> FunctionName? {
        guard names.count == 1, names[0].isLocal, names[0].text.hasPrefix("_Z"), names[0].text.contains("\(name.utf8.count)\(name)") else {
            return nil
        }
        return names[0]
    }

    /// Names of the several functions that one constructor or destructor becomes differ in one digit (Itanium C++ ABI, 5.1.4.3).
    private static func isSameConstructor(_ a: String, _ b: String) -> Bool {
        let a = Array(a.utf8), b = Array(b.utf8)
        guard a.count == b.count, let n = a.indices.first(where: { a[$0] != b[$0] }), n > 0, a[(n + 1)...] == b[(n + 1)...] else {
            return false
        }
        func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x35 }
        return (a[n - 1] == UInt8(ascii: "C") || a[n - 1] == UInt8(ascii: "D")) && isDigit(a[n]) && isDigit(b[n])
    }

    // MARK: - Parameters

    private mutating func parameters(_ die: inout Dwarf_Die, _ address: UInt64) -> [SourceParameter] {
        let entries = Self.entries(die), frame = Self.frameBase(&die)
        // What is said of a function that is also inlined stands apart, and its code has only the parameters that are left.
        var attribute = Dwarf_Attribute(), origin = Dwarf_Die()
        guard dwarf_attr(&die, UInt32(DW_AT_abstract_origin), &attribute) != nil, dwarf_formref_die(&attribute, &origin) != nil else {
            return entries.map { parameter($0, at: address, frame) }
        }
        var left: [UnsafeMutableRawPointer: Dwarf_Die] = [:], others: [SourceParameter] = []
        for entry in entries {
            var entry = entry, source = Dwarf_Die()
            if dwarf_attr(&entry, UInt32(DW_AT_abstract_origin), &attribute) != nil, dwarf_formref_die(&attribute, &source) != nil,
                let place = source.addr
            {
                left[place] = entry
            } else {
                others.append(parameter(entry, at: address, frame))
            }
        }
        return Self.entries(origin).map { source in
            guard let place = source.addr, let entry = left[place] else {
                var lost = parameter(source, at: address, frame)
                lost.location = .none
                return lost
            }
            return parameter(entry, at: address, frame)
        } + others
    }

    private static func entries(_ die: Dwarf_Die) -> [Dwarf_Die] {
        var all: [Dwarf_Die] = []
        DebugInformation.forEachChild(of: die) { child in
            switch Int(dwarf_tag(&child)) {
            case DW_TAG_formal_parameter: all.append(child)
            // Its own entries are parameters, and no packs.
            case DW_TAG_GNU_formal_parameter_pack:
                DebugInformation.forEachChild(of: child) { one in
                    if Int(dwarf_tag(&one)) == DW_TAG_formal_parameter { all.append(one) }
                    return all.count < mostParameters
                }
            default: break
            }
            return all.count < mostParameters
        }
        return all
    }

    /// What offsets of the frame count from.
    private enum FrameBase: Equatable { case frameAddress, register(Int), other }

    private static func frameBase(_ die: inout Dwarf_Die) -> FrameBase {
        var attribute = Dwarf_Attribute(), operations: UnsafeMutablePointer<Dwarf_Op>?, count = 0
        guard dwarf_attr_integrate(&die, UInt32(DW_AT_frame_base), &attribute) != nil,
            dwarf_getlocation(&attribute, &operations, &count) == 0, count == 1, let atom = operations.map({ Int($0[0].atom) })
        else { return .other }
        switch atom {
        case DW_OP_call_frame_cfa: return .frameAddress
        case DW_OP_reg0...DW_OP_reg31: return .register(atom - DW_OP_reg0)
        default: return .other
        }
    }

    private mutating func parameter(_ die: Dwarf_Die, at address: UInt64, _ frame: FrameBase) -> SourceParameter {
        var die = die, attribute = Dwarf_Attribute(), flag = false
        let isArtificial =
            dwarf_attr_integrate(&die, UInt32(DW_AT_artificial), &attribute) != nil && dwarf_formflag(&attribute, &flag) == 0 && flag
        return SourceParameter(
            name: DebugInformation.string(&die, Int(DW_AT_name)), type: types.type(of: &die), isArtificial: isArtificial,
            location: Self.location(&die, address, frame == .frameAddress),
            home: language == .rust || language == .swift ? home(&die, address, frame) : nil)
    }

    private func home(_ die: inout Dwarf_Die, _ address: UInt64, _ frame: FrameBase) -> ParameterHome? {
        var attribute = Dwarf_Attribute(), operations: UnsafeMutablePointer<Dwarf_Op>?, count = 0
        guard dwarf_attr(&die, UInt32(DW_AT_location), &attribute) != nil else { return nil }
        if [DW_FORM_exprloc, DW_FORM_block, DW_FORM_block1, DW_FORM_block2, DW_FORM_block4].contains(Int(dwarf_whatform(&attribute))) {
            guard dwarf_getlocation(&attribute, &operations, &count) == 0, let operations,
                count == 1 || count == 2 && Int(operations[1].atom) == DW_OP_deref, let offset = Self.distance(operations[0])
            else { return nil }
            var register = Int(operations[0].atom) - DW_OP_breg0
            if Int(operations[0].atom) == DW_OP_fbreg {
                guard case .register(let base) = frame else { return nil }
                register = base
            }
            guard (0..<32).contains(register) else { return nil }
            return count == 1 ? .place(register: register, offset: offset) : .address(register: register, offset: offset)
        }
        // Optimized code may have given it another value by then.
        guard isUnitOptimized == false else { return nil }
        var base: Dwarf_Addr = 0, start: Dwarf_Addr = 0, end: Dwarf_Addr = 0
        guard dwarf_getlocations(&attribute, 0, &base, &start, &end, &operations, &count) > 0, let operations, start > address,
            start - address < 4096, (1...2).contains(count), (DW_OP_breg0...DW_OP_breg31).contains(Int(operations[0].atom)),
            let offset = Self.distance(operations[0])
        else { return nil }
        let register = Int(operations[0].atom) - DW_OP_breg0
        if count == 1 { return offset == 0 ? .held(register: register, before: Int(start - address)) : nil }
        return Int(operations[1].atom) == DW_OP_deref ? .address(register: register, offset: offset) : nil
    }
    private static func distance(_ operation: Dwarf_Op) -> Int? {
        let offset = Int64(bitPattern: operation.number)
        return offset.magnitude < 1 << 30 ? Int(offset) : nil
    }

    private static func location(_ die: inout Dwarf_Die, _ address: UInt64, _ hasFrameAddress: Bool) -> EntryLocation {
        var attribute = Dwarf_Attribute()
        guard dwarf_attr(&die, UInt32(DW_AT_location), &attribute) != nil else {
            return dwarf_hasattr(&die, UInt32(DW_AT_const_value)) != 0 ? .other : .none
        }
        let isList = ![DW_FORM_exprloc, DW_FORM_block, DW_FORM_block1, DW_FORM_block2, DW_FORM_block4].contains(
            Int(dwarf_whatform(&attribute)))
        var operations: UnsafeMutablePointer<Dwarf_Op>?, count = 0
        guard dwarf_getlocation_addr(&attribute, address, &operations, &count, 1) > 0, let first = operations?[0], count > 0 else {
            return .none
        }
        if count != 1 { return Self.location(UnsafeBufferPointer(start: operations, count: count), isList) }
        switch Int(first.atom) {
        case DW_OP_reg0...DW_OP_reg31: return .register(Int(first.atom) - DW_OP_reg0, isList: isList)
        case DW_OP_regx: return first.number < 1024 ? .register(Int(first.number), isList: isList) : .other
        case DW_OP_fbreg:
            let offset = Int64(bitPattern: first.number)
            guard abs(offset) < 1 << 30 else { return .other }
            return .stack(offset: hasFrameAddress ? Int(offset) : nil, isList: isList)
        case DW_OP_breg0...DW_OP_breg31:
            let offset = Int64(bitPattern: first.number)
            guard abs(offset) < 1 << 30 else { return .other }
            return .memory(register: Int(first.atom) - DW_OP_breg0, offset: Int(offset), isList: isList)
        default: return .other
        }
    }
    private static func location(_ operations: UnsafeBufferPointer<Dwarf_Op>, _ isList: Bool) -> EntryLocation {
        if let pieces = pieces(operations) { return .registers(pieces, isList: isList) }
        return operations.map { Int($0.atom) } == [DW_OP_fbreg, DW_OP_deref] && !isList ? .indirect : .other
    }
    /// nil: some piece is elsewhere. One without a place is padding (DWARF 5, 2.6.1.2), or was removed.
    private static func pieces(_ operations: UnsafeBufferPointer<Dwarf_Op>) -> [EntryPiece]? {
        var found: [EntryPiece] = [], offset = 0, register: Int?, isValue = false
        for operation in operations {
            switch Int(operation.atom) {
            case DW_OP_reg0...DW_OP_reg31 where register == nil: register = Int(operation.atom) - DW_OP_reg0
            case DW_OP_breg0...DW_OP_breg31 where register == nil && operation.number == 0:
                register = Int(operation.atom) - DW_OP_breg0
                isValue = true
            case DW_OP_stack_value where isValue: isValue = false
            case DW_OP_bit_piece where !isValue && operation.number == 1 && operation.number2 == 0:
                // A Bool of Swift. LLVM does not say what is between it and the next piece: where that belongs is not known.
                if let register { found.append(EntryPiece(register: register, offset: offset, byteCount: 1)) }
                return found.isEmpty ? nil : found
            case DW_OP_piece where isValue: return nil // in memory
            case DW_OP_piece where operation.number <= SourceType.mostBytes:
                let byteCount = Int(operation.number)
                if let register { found.append(EntryPiece(register: register, offset: offset, byteCount: byteCount)) }
                (offset, register) = (offset + byteCount, nil)
            default: return nil
            }
        }
        return register == nil && !found.isEmpty ? found : nil
    }
}
