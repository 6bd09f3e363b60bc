// Reads types out of DWARF. A damaged file may describe types that contain themselves, and any number of them.
import CElfutils

struct SourceTypeReader {
    /// Types by where their entries lie, since offsets of several sections and files are alike: many functions have the same.
    private var known: [UnsafeMutableRawPointer: SourceType] = [:]
    /// The language has classes: how one without DW_AT_calling_convention is passed follows from its members.
    private let hasClasses: Bool
    /// Types are Swift's, which have names and mostly no members. Returns names of an enumeration's cases; nil: another language's.
    private let swiftNames: SwiftTypeNames?

    private static let deepest = 24, mostValues = 200, mostMembers = 4096, mostElements = 1 << 30

    init(hasClasses: Bool, swiftNames: SwiftTypeNames? = nil) { (self.hasClasses, self.swiftNames) = (hasClasses, swiftNames) }

    /// Returns the type of a parameter, or of a function's result.
    mutating func type(of die: inout Dwarf_Die) -> SourceType {
        var attribute = Dwarf_Attribute(), type = Dwarf_Die()
        guard dwarf_attr_integrate(&die, UInt32(DW_AT_type), &attribute) != nil else { return SourceType(.void, bytes: 0) }
        guard dwarf_formref_die(&attribute, &type) != nil else { return .unknown }
        return read(&type, 0)
    }

    mutating func type(at die: Dwarf_Die) -> SourceType {
        var die = die
        return read(&die, 0)
    }

    private mutating func read(_ die: inout Dwarf_Die, _ depth: Int) -> SourceType {
        guard let place = die.addr, depth < Self.deepest else { return .unknown }
        if let type = known[place] { return type }
        let type = make(&die, depth)
        if depth < 2 { known[place] = type } // deeper, it may have been cut
        return type
    }

    private mutating func make(_ die: inout Dwarf_Die, _ depth: Int) -> SourceType {
        var attribute = Dwarf_Attribute(), whole = Dwarf_Die()
        if dwarf_attr(&die, UInt32(DW_AT_signature), &attribute) != nil { // a type unit has it (DWARF 5, 3.1.4)
            guard dwarf_formref_die(&attribute, &whole) != nil, whole.addr != die.addr else { return .unknown }
            return read(&whole, depth + 1)
        }
        let bytes = Int(dwarf_bytesize(&die)) // -1: none
        if let swiftNames, let type = swift(&die, bytes, depth, swiftNames) { return type }
        switch Int(dwarf_tag(&die)) {
        case DW_TAG_base_type: return Self.base(&die, bytes)
        case DW_TAG_typedef:
            var type = target(&die, depth)
            if let name = DebugInformation.string(&die, Int(DW_AT_name)) { type.name = name }
            return type.aligned(&die)
        case DW_TAG_const_type, DW_TAG_volatile_type, DW_TAG_restrict_type, DW_TAG_immutable_type, DW_TAG_packed_type, DW_TAG_shared_type:
            return target(&die, depth)
        // A std::atomic is a class; _Atomic of a structure may be larger than it.
        case DW_TAG_atomic_type:
            let type = target(&die, depth)
            return type.kind == .aggregate ? .unknown : type
        case DW_TAG_pointer_type, DW_TAG_reference_type, DW_TAG_rvalue_reference_type:
            if bytes >= 0, bytes != 8 { return .unknown } // another address space's
            var type = SourceType(.pointer(toText: Int(dwarf_tag(&die)) == DW_TAG_pointer_type && pointsToText(&die)), bytes: 8)
            type.text = SourceText.behind(die)
            return type
        case DW_TAG_unspecified_type: // decltype(nullptr)
            return DebugInformation.string(&die, Int(DW_AT_name)) == "decltype(nullptr)"
                ? SourceType(.pointer(toText: false), bytes: 8) : .unknown
        case DW_TAG_ptr_to_member_type: return memberPointer(&die)
        case DW_TAG_enumeration_type: return enumeration(&die, bytes, depth)
        case DW_TAG_structure_type, DW_TAG_class_type, DW_TAG_union_type: return aggregate(&die, bytes, depth)
        case DW_TAG_array_type: return array(&die, bytes, depth)
        default: return .unknown
        }
    }

    private mutating func swift(_ die: inout Dwarf_Die, _ bytes: Int, _ depth: Int, _ names: SwiftTypeNames) -> SourceType? {
        let tag = Int(dwarf_tag(&die))
        if tag == DW_TAG_const_type {
            var type = target(&die, depth)
            type.isConstant = true
            return type
        }
        if let name = DebugInformation.string(&die, Int(DW_AT_linkage_name)) ?? DebugInformation.string(&die, Int(DW_AT_name)) {
            return SwiftType.named(name, bytes: bytes, names)
        }
        // Generic types are behind one without a name, which has them for a member.
        guard tag == DW_TAG_structure_type else { return nil }
        var members: [Dwarf_Die] = []
        DebugInformation.forEachChild(of: die) { child in
            if Int(dwarf_tag(&child)) == DW_TAG_member { members.append(child) }
            return members.count < 2
        }
        guard members.count == 1 else { return .unknown }
        let type = target(&members[0], depth)
        return type.byteCount == bytes ? type : .unknown
    }

    /// The type that another one is made of.
    private mutating func target(_ die: inout Dwarf_Die, _ depth: Int) -> SourceType {
        var attribute = Dwarf_Attribute(), type = Dwarf_Die()
        guard dwarf_attr(&die, UInt32(DW_AT_type), &attribute) != nil else { return SourceType(.void, bytes: 0) }
        guard dwarf_formref_die(&attribute, &type) != nil else { return .unknown }
        return read(&type, depth + 1)
    }

    private static func number(_ die: inout Dwarf_Die, _ name: Int) -> UInt64? {
        var attribute = Dwarf_Attribute(), value: Dwarf_Word = 0
        guard dwarf_attr(&die, UInt32(name), &attribute) != nil, dwarf_formudata(&attribute, &value) == 0 else { return nil }
        return value
    }

    private static func base(_ die: inout Dwarf_Die, _ bytes: Int) -> SourceType {
        let name = DebugInformation.string(&die, Int(DW_AT_name))
        if bytes == 0 { return SourceType(.aggregate, bytes: 0, leaves: []) } // Rust's ()
        guard let encoding = number(&die, Int(DW_AT_encoding)).flatMap({ Int(exactly: $0) }), [1, 2, 4, 8, 16, 32].contains(bytes) else {
            return .unknown
        }
        func integer(_ isSigned: Bool) -> SourceType {
            bytes > 16 ? .unknown : SourceType(.integer(isSigned: isSigned), bytes: bytes, name: name)
        }
        switch encoding {
        case DW_ATE_signed, DW_ATE_signed_char: return integer(true)
        case DW_ATE_unsigned, DW_ATE_unsigned_char, DW_ATE_UTF, DW_ATE_ASCII, DW_ATE_UCS: return integer(false)
        case DW_ATE_boolean: return bytes == 1 ? SourceType(.boolean, bytes: 1, name: name) : integer(false)
        case DW_ATE_float:
            return bytes > 16 || bytes < 2
                ? .unknown : SourceType(.floatingPoint(isExtended: isExtended(name, bytes)), bytes: bytes, name: name)
        case DW_ATE_complex_float:
            let half = bytes / 2
            if half < 2 { return .unknown }
            let kind: SourceType.LeafKind = isExtended(name, half) ? .extended : .floatingPoint
            let leaves = [0, half].map { SourceType.Leaf(offset: $0, byteCount: half, alignment: half, kind: kind) }
            return SourceType(.complex, bytes: bytes, alignment: half, name: name, leaves: leaves)
        default: return .unknown // decimal and fixed-point numbers
        }
    }

    private static func isExtended(_ name: String?, _ bytes: Int) -> Bool { bytes == 16 && name?.hasSuffix("long double") == true }

    /// char, however const, as no typedef of another name: what uint8_t points to is no text.
    private func pointsToText(_ die: inout Dwarf_Die) -> Bool {
        var current = die
        for _ in 0..<Self.deepest {
            var attribute = Dwarf_Attribute(), next = Dwarf_Die()
            guard dwarf_attr(&current, UInt32(DW_AT_type), &attribute) != nil, dwarf_formref_die(&attribute, &next) != nil else {
                return false
            }
            current = next
            switch Int(dwarf_tag(&current)) {
            case DW_TAG_const_type, DW_TAG_volatile_type, DW_TAG_restrict_type, DW_TAG_typedef: continue
            case DW_TAG_base_type:
                return dwarf_bytesize(&current) == 1 && DebugInformation.string(&current, Int(DW_AT_name)) == "char"
            default: return false
            }
        }
        return false
    }

    /// Itanium C++ ABI, 2.3: an offset, or, of a function, a pair.
    private func memberPointer(_ die: inout Dwarf_Die) -> SourceType {
        var attribute = Dwarf_Attribute(), type = Dwarf_Die()
        guard dwarf_attr(&die, UInt32(DW_AT_type), &attribute) != nil, dwarf_formref_die(&attribute, &type) != nil else { return .unknown }
        let words = Int(dwarf_tag(&type)) == DW_TAG_subroutine_type ? 2 : 1
        let leaves = (0..<words).map { SourceType.Leaf(offset: $0 * 8, byteCount: 8, alignment: 8, kind: .integer) }
        return SourceType(.aggregate, bytes: words * 8, alignment: 8, leaves: leaves)
    }

    private mutating func enumeration(_ die: inout Dwarf_Die, _ bytes: Int, _ depth: Int) -> SourceType {
        let base = target(&die, depth), name = DebugInformation.string(&die, Int(DW_AT_name))
        let size = bytes > 0 ? bytes : base.byteCount
        guard [1, 2, 4, 8].contains(size) else { return .unknown }
        var values: [SourceEnumeration.Value] = [], isSigned = false, hasAll = true
        if case .integer(true) = base.kind { isSigned = true }
        DebugInformation.forEachChild(of: die) { child in
            guard Int(dwarf_tag(&child)) == DW_TAG_enumerator, let value = DebugInformation.string(&child, Int(DW_AT_name)) else {
                return true
            }
            var attribute = Dwarf_Attribute(), number: Dwarf_Sword = 0
            hasAll =
                values.count < Self.mostValues && dwarf_attr(&child, UInt32(DW_AT_const_value), &attribute) != nil
                && Self.constant(&attribute, isSigned, size, &number)
            values.append(SourceEnumeration.Value(name: value, number: number))
            return hasAll
        }
        if !hasAll { return SourceType(.integer(isSigned: isSigned), bytes: size, name: nil) }
        return SourceType(
            .enumeration(SourceEnumeration(name: name, isSigned: isSigned, values: values)), bytes: size, name: name)
    }

    /// A constant of DW_FORM_data1 and its like has no sign of its own (DWARF 5, 7.5.5): the type says it.
    private static func constant(_ attribute: inout Dwarf_Attribute, _ isSigned: Bool, _ bytes: Int, _ number: inout Dwarf_Sword) -> Bool {
        var word: Dwarf_Word = 0
        switch Int(dwarf_whatform(&attribute)) {
        case DW_FORM_sdata, DW_FORM_implicit_const:
            guard dwarf_formsdata(&attribute, &number) == 0 else { return false }
            // rustc before 1.65 writes -5 of 16 bits as 65531.
            if isSigned, bytes < 8 { number = (number << Int64(64 - bytes * 8)) >> Int64(64 - bytes * 8) }
            return true
        default:
            guard dwarf_formudata(&attribute, &word) == 0 else { return false }
            let unused = UInt64(64 - bytes * 8)
            number = isSigned ? Int64(bitPattern: word << unused) >> Int64(unused) : Int64(bitPattern: word)
            return true
        }
    }

    // MARK: - Aggregates

    private mutating func aggregate(_ die: inout Dwarf_Die, _ bytes: Int, _ depth: Int) -> SourceType {
        let name = DebugInformation.string(&die, Int(DW_AT_name))
        if bytes < 0 || dwarf_hasattr(&die, UInt32(DW_AT_declaration)) != 0 { return .unknown }
        var type = SourceType(.aggregate, bytes: bytes, alignment: 1, name: name, leaves: [])
        if Int(dwarf_tag(&die)) != DW_TAG_union_type { type.fields = [] }
        var count = 0, copying = Copying(), isKnown = true
        DebugInformation.forEachChild(of: die) { child in
            count += 1
            switch Int(dwarf_tag(&child)) {
            case DW_TAG_subprogram: if hasClasses { copying.add(function: &child, of: die, name) }
            case DW_TAG_variant_part: isKnown = false // Rust's enumerations
            case DW_TAG_member, DW_TAG_inheritance:
                if dwarf_hasattr(&child, UInt32(DW_AT_virtuality)) != 0 { copying.isVirtual = true }
                let isStatic = [DW_AT_external, DW_AT_declaration].contains { dwarf_hasattr(&child, UInt32($0)) != 0 }
                if !isStatic { copying.add(member: addMember(&child, to: &type, depth)) }
            default: break
            }
            isKnown = isKnown && count <= Self.mostMembers
            return isKnown
        }
        if !isKnown { return .unknown }
        switch Self.number(&die, Int(DW_AT_calling_convention)) {
        case UInt64(DW_CC_pass_by_reference): type.isByReference = true
        case UInt64(DW_CC_pass_by_value): break
        default:
            guard hasClasses else { break }
            guard let isTrivial = copying.isTrivial else { return .unknown }
            type.isByReference = !isTrivial
        }
        if bytes > SourceType.mostBytes { (type.leaves, type.fields) = (nil, nil) }
        type.text = SourceText(die)
        return type.aligned(&die)
    }

    /// Returns its type.
    @discardableResult
    private mutating func addMember(_ die: inout Dwarf_Die, to type: inout SourceType, _ depth: Int) -> SourceType {
        let member = target(&die, depth)
        type.alignment = max(type.alignment, member.aligned(&die).alignment)
        guard let leaves = type.leaves, leaves.count <= SourceType.mostBytes else { return member }
        guard let offset = Self.offset(&die) else {
            type.leaves = nil
            return member
        }
        if let bits = Self.number(&die, Int(DW_AT_bit_size)) {
            guard bits > 0, bits <= 64 else { return member }
            // The bytes that it lies in; of the older form the storage unit is known.
            let start: Int, end: Int
            if let first = Self.number(&die, Int(DW_AT_data_bit_offset)).flatMap({ Int(exactly: $0) }), first < 1 << 20 {
                (start, end) = (first / 8, (first + Int(bits) + 7) / 8)
                addField(&die, member, at: start, bits: first % 8..<first % 8 + Int(bits), to: &type)
            } else {
                (start, end) = (offset, offset + max(member.byteCount, 1))
                // DWARF 3, 5.5.6: counted from the highest bit of the storage unit.
                let unit = Self.number(&die, Int(DW_AT_byte_size)) ?? UInt64(max(member.byteCount, 1))
                if let above = Self.number(&die, Int(DW_AT_bit_offset)), unit <= 8, above + bits <= unit * 8 {
                    let first = Int(unit * 8 - above - bits)
                    addField(&die, member, at: offset + first / 8, bits: first % 8..<first % 8 + Int(bits), to: &type)
                }
            }
            for byte in start..<end {
                type.leaves?.append(SourceType.Leaf(offset: byte, byteCount: 1, alignment: 1, kind: .integer))
            }
            return member
        }
        addField(&die, member, at: offset, to: &type)
        guard let own = member.own else {
            type.leaves = nil
            return member
        }
        type.leaves = leaves + own.map { $0.moved(by: offset) }
        return member
    }

    private func addField(
        _ die: inout Dwarf_Die, _ member: SourceType, at offset: Int, bits: Range<Int>? = nil, to type: inout SourceType
    ) {
        guard let count = type.fields?.count, count <= SourceType.mostBytes else { // a damaged file may have any number
            type.fields = nil
            return
        }
        if Int(dwarf_tag(&die)) == DW_TAG_member, let name = DebugInformation.string(&die, Int(DW_AT_name)) {
            type.fields?.append(SourceField(name, offset: offset, member, bits: bits))
        } else {
            for field in member.fields ?? [] {
                type.fields?.append(SourceField(field.name, offset: offset + field.offset, field.type, bits: field.bits))
            }
        }
    }

    private static func offset(_ die: inout Dwarf_Die) -> Int? {
        var attribute = Dwarf_Attribute(), value: Dwarf_Word = 0
        guard dwarf_attr(&die, UInt32(DW_AT_data_member_location), &attribute) != nil else { return 0 } // a union's
        guard dwarf_formudata(&attribute, &value) == 0, value < 1 << 20 else { return nil } // an expression: of a virtual base
        return Int(value)
    }

    private mutating func array(_ die: inout Dwarf_Die, _ bytes: Int, _ depth: Int) -> SourceType {
        let element = target(&die, depth)
        var count = 1
        DebugInformation.forEachChild(of: die) { child in
            guard Int(dwarf_tag(&child)) == DW_TAG_subrange_type else { return true }
            let own =
                Self.number(&child, Int(DW_AT_count))
                ?? Self.number(&child, Int(DW_AT_upper_bound)).map { $0 &+ 1 } ?? 0 // 0: a flexible array
            count = own < Self.mostElements ? min(count * Int(own), Self.mostElements) : Self.mostElements
            return count < Self.mostElements
        }
        guard count < Self.mostElements, element.byteCount < Self.mostElements, element.byteCount > 0 else { return .unknown }
        let size = bytes > 0 ? bytes : element.byteCount * count
        if dwarf_hasattr(&die, UInt32(DW_AT_GNU_vector)) != 0 {
            return SourceType(.vector, bytes: size, leaves: [SourceType.Leaf(offset: 0, byteCount: size, alignment: size, kind: .vector)])
        }
        var type = SourceType(.aggregate, bytes: size, alignment: element.alignment, leaves: nil)
        type.isByReference = element.isByReference // as a member of a class
        type.element = [element]
        if count * element.byteCount <= SourceType.mostBytes, let own = element.own, own.count * count <= SourceType.mostBytes {
            type.leaves = (0..<count).flatMap { n in
                own.map { leaf in
                    var leaf = leaf
                    leaf.offset += n * element.byteCount
                    return leaf
                }
            }
        }
        return type
    }
}

extension SourceType {
    /// With the alignment that the source asks for (DWARF 5, 5.16).
    fileprivate func aligned(_ die: inout Dwarf_Die) -> SourceType {
        var type = self, attribute = Dwarf_Attribute(), value: Dwarf_Word = 0
        if dwarf_attr(&die, UInt32(DW_AT_alignment), &attribute) != nil, dwarf_formudata(&attribute, &value) == 0, value > 0,
            value <= 1 << 20
        {
            type.alignment = max(type.alignment, Int(value))
        }
        return type
    }
    /// What lies in it; nil: not known.
    var own: [Leaf]? {
        switch kind {
        case .integer, .boolean, .pointer, .enumeration: [Leaf(offset: 0, byteCount: byteCount, alignment: alignment, kind: .integer)]
        case .floatingPoint(let isExtended):
            [Leaf(offset: 0, byteCount: byteCount, alignment: alignment, kind: isExtended ? .extended : .floatingPoint)]
        case .aggregate, .complex, .vector: leaves
        case .void, .unknown: nil
        }
    }
}

/// What copies a class, and destroys it: whether that is trivial for the purposes of calls (Itanium C++ ABI, 1.1), where the debug
/// information does not say it (gcc's).
private struct Copying {
    var isVirtual = false
    private var isWritten = false, isUncertain = false

    /// nil: it cannot be told.
    var isTrivial: Bool? { isVirtual || isWritten ? false : isUncertain ? nil : true }

    mutating func add(member: SourceType) {
        if member.isByReference { isWritten = true }
        if member.kind == .unknown { isUncertain = true }
    }

    mutating func add(function die: inout Dwarf_Die, of owner: Dwarf_Die, _ ownerName: String?) {
        if dwarf_hasattr(&die, UInt32(DW_AT_virtuality)) != 0 { isVirtual = true }
        guard let name = DebugInformation.string(&die, Int(DW_AT_name)) else { return }
        let isDestructor = name.hasPrefix("~")
        guard isDestructor || name == ownerName?.prefix(while: { $0 != "<" }) ?? "" && Self.copies(die, owner.addr) else { return }
        // Implicit ones are trivial if those of all members are.
        if dwarf_hasattr(&die, UInt32(DW_AT_artificial)) != 0 { return }
        var attribute = Dwarf_Attribute(), value: Dwarf_Word = 0
        if dwarf_attr(&die, UInt32(DW_AT_defaulted), &attribute) != nil, dwarf_formudata(&attribute, &value) == 0,
            value == DW_DEFAULTED_in_class
        {
            return
        }
        // What is deleted copies nothing: it depends on the others.
        if dwarf_hasattr(&die, UInt32(DW_AT_deleted)) != 0 { isUncertain = true } else { isWritten = true }
    }

    /// Returns true if a constructor has one parameter, a reference to its class. Others may be there with values of their own.
    private static func copies(_ die: Dwarf_Die, _ owner: UnsafeMutableRawPointer?) -> Bool {
        var isCopy = false
        DebugInformation.forEachChild(of: die) { child in
            guard Int(dwarf_tag(&child)) == DW_TAG_formal_parameter, dwarf_hasattr(&child, UInt32(DW_AT_artificial)) == 0 else {
                return true
            }
            var attribute = Dwarf_Attribute(), type = Dwarf_Die()
            guard dwarf_attr(&child, UInt32(DW_AT_type), &attribute) != nil, dwarf_formref_die(&attribute, &type) != nil,
                [DW_TAG_reference_type, DW_TAG_rvalue_reference_type].contains(Int(dwarf_tag(&type)))
            else { return false }
            for _ in 0..<4 {
                guard dwarf_attr(&type, UInt32(DW_AT_type), &attribute) != nil, dwarf_formref_die(&attribute, &type) != nil else {
                    return false
                }
                if ![DW_TAG_const_type, DW_TAG_volatile_type, DW_TAG_typedef].contains(Int(dwarf_tag(&type))) { break }
            }
            isCopy = type.addr == owner
            return false
        }
        return isCopy
    }
}
