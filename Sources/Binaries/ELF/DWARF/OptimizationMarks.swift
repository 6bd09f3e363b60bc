// Finds out whether the code of a unit was optimized. Neither rustc nor swiftc says it of each function, or of functions without parameters.
import CElfutils

enum OptimizationMarks {
    private static let mostEntries = 5_000_000, deepest = 32, mostRanges = 1000

    private struct Search {
        var budget = mostEntries
        /// A parameter is in a register somewhere: without optimization all are in memory.
        var isInRegister = false
        var isInMemory = false
    }

    /// True also where there is nothing that shows it.
    static func areFound(in unit: Dwarf_Die) -> Bool {
        var search = Search()
        look(in: unit, 0, &search)
        return search.isInRegister || !search.isInMemory
    }

    private static func look(in parent: Dwarf_Die, _ depth: Int, _ search: inout Search) {
        if depth == deepest { return search.isInRegister = true }
        DebugInformation.forEachChild(of: parent) { child in
            search.budget -= 1
            if search.budget < 0 { search.isInRegister = true }
            switch Int(dwarf_tag(&child)) {
            case DW_TAG_subprogram:
                if dwarf_hasattr(&child, UInt32(DW_AT_low_pc)) != 0 || dwarf_hasattr(&child, UInt32(DW_AT_ranges)) != 0 {
                    lookAtParameters(of: child, &search)
                }
            case DW_TAG_namespace, DW_TAG_module, DW_TAG_structure_type, DW_TAG_class_type, DW_TAG_enumeration_type, DW_TAG_union_type:
                look(in: child, depth + 1, &search)
            default: break
            }
            return !search.isInRegister
        }
    }

    private static func lookAtParameters(of function: Dwarf_Die, _ search: inout Search) {
        DebugInformation.forEachChild(of: function) { child in
            search.budget -= 1
            guard Int(dwarf_tag(&child)) == DW_TAG_formal_parameter else { return search.budget > 0 }
            var attribute = Dwarf_Attribute(), operations: UnsafeMutablePointer<Dwarf_Op>?, count = 0
            guard dwarf_attr(&child, UInt32(DW_AT_location), &attribute) != nil else { return true }
            if dwarf_getlocation(&attribute, &operations, &count) == 0 {
                look(at: operations, count, &search)
                return !search.isInRegister
            }
            var base: Dwarf_Addr = 0, start: Dwarf_Addr = 0, end: Dwarf_Addr = 0, offset = 0
            for _ in 0..<mostRanges {
                offset = dwarf_getlocations(&attribute, offset, &base, &start, &end, &operations, &count)
                if offset <= 0 { break }
                look(at: operations, count, &search)
            }
            return !search.isInRegister
        }
    }

    private static func look(at operations: UnsafeMutablePointer<Dwarf_Op>?, _ count: Int, _ search: inout Search) {
        guard let operations else { return }
        for n in 0..<count {
            let atom = Int(operations[n].atom)
            if (DW_OP_reg0...DW_OP_reg31).contains(atom) || atom == DW_OP_regx { search.isInRegister = true }
            if atom == DW_OP_fbreg || (DW_OP_breg0...DW_OP_breg31).contains(atom) { search.isInMemory = true }
        }
    }
}
