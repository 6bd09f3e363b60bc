// Members of structures and classes, by their names.
import CElfutils

enum SourceMembers {
    private static let deepest = 8

    /// Offset and type of a member; nil: the type has none of this name, or it is a bit-field or a virtual base's. Members of base classes and of
    /// unnamed members are a type's own.
    static func member(_ name: String, of die: Dwarf_Die) -> (offset: Int, type: Dwarf_Die)? { member(name, of: die, 0) }

    private static func member(_ name: String, of die: Dwarf_Die, _ depth: Int) -> (offset: Int, type: Dwarf_Die)? {
        var found: (offset: Int, type: Dwarf_Die)?, around: [(offset: Int, type: Dwarf_Die)] = []
        DebugInformation.forEachChild(of: die) { child in
            let tag = Int(dwarf_tag(&child))
            guard tag == DW_TAG_member || tag == DW_TAG_inheritance, let type = target(child),
                dwarf_hasattr(&child, UInt32(DW_AT_bit_size)) == 0
            else { return true }
            var attribute = Dwarf_Attribute(), offset: Dwarf_Word = 0 // 0: a union's
            if dwarf_attr(&child, UInt32(DW_AT_data_member_location), &attribute) != nil {
                guard dwarf_formudata(&attribute, &offset) == 0, offset < 1 << 16 else { return true } // an expression: of a virtual base
            }
            let own = DebugInformation.string(&child, Int(DW_AT_name))
            if tag == DW_TAG_member, own == name { found = (Int(offset), type) }
            if tag == DW_TAG_inheritance || own == nil { around.append((Int(offset), type)) }
            return found == nil
        }
        if let found { return found }
        if depth == deepest { return nil }
        for (offset, type) in around {
            guard let whole = definition(type), let within = member(name, of: whole, depth + 1) else { continue }
            return (offset + within.offset, within.type)
        }
        return nil
    }

    /// The type that an entry names.
    static func target(_ die: Dwarf_Die) -> Dwarf_Die? {
        var die = die, attribute = Dwarf_Attribute(), type = Dwarf_Die()
        guard dwarf_attr_integrate(&die, UInt32(DW_AT_type), &attribute) != nil, dwarf_formref_die(&attribute, &type) != nil else {
            return nil
        }
        return type
    }

    /// A type without its typedefs and qualifiers; nil: it is only declared.
    static func definition(_ type: Dwarf_Die) -> Dwarf_Die? {
        var die = type
        for _ in 0..<24 {
            var attribute = Dwarf_Attribute(), whole = Dwarf_Die()
            if dwarf_attr(&die, UInt32(DW_AT_signature), &attribute) != nil { // a type unit has it (DWARF 5, 3.1.4)
                guard dwarf_formref_die(&attribute, &whole) != nil, whole.addr != die.addr else { return nil }
                die = whole
                continue
            }
            switch Int(dwarf_tag(&die)) {
            case DW_TAG_typedef, DW_TAG_const_type, DW_TAG_volatile_type, DW_TAG_restrict_type:
                guard let next = target(die) else { return nil }
                die = next
            default: return dwarf_hasattr(&die, UInt32(DW_AT_declaration)) != 0 ? nil : die
            }
        }
        return nil
    }
}
