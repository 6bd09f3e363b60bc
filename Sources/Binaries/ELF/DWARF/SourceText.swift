// Strings of C++, Rust and Swift that are objects. They are known by their members, as the debug information has these: libraries lay them out
// differently, and rustc orders fields as it likes.
import CElfutils

package enum SourceText: Sendable, Equatable {
    /// A pointer, and the number of bytes that it points to, at these offsets.
    case counted(pointer: Int, length: Int)
    /// libc++'s std::string, which has the bytes of a short one within it (include/string, __rep, without the alternate layout).
    case libcxx
    /// Swift's String, two words.
    case swift
}

extension SourceText {
    /// nil: the type is none, or only declared.
    /// - Parameter type: or a typedef of it
    init?(_ type: Dwarf_Die) {
        guard var die = SourceMembers.definition(type), [DW_TAG_structure_type, DW_TAG_class_type].contains(Int(dwarf_tag(&die))),
            let name = DebugInformation.string(&die, Int(DW_AT_name))
        else { return nil }
        let forms: [(pointer: [String], length: [String])] =
            if name.hasPrefix("basic_string") {
                [
                    (["_M_dataplus", "_M_p"], ["_M_string_length"]), (["_M_str"], ["_M_len"]), // libstdc++: bits/basic_string.h, string_view
                    (["__data_"], ["__size_"]), (["__data"], ["__size"]), // libc++'s string_view
                ]
            } else if ["&str", "&mut str"].contains(name) || name.hasPrefix("alloc::boxed::Box<str") || name.hasPrefix("Box<str") {
                [(["data_ptr"], ["length"])]
            } else if name == "String" {
                [["inner", "ptr", "pointer", "pointer"], ["ptr", "pointer", "pointer"], ["ptr", "pointer"]].map {
                    (["vec", "buf"] + $0, ["vec", "len"])
                }
            } else {
                []
            }
        for (pointer, length) in forms {
            if let at = Self.bytes(pointer, in: die), let count = Self.number(length, in: die), Self.isNear(at, count) {
                self = .counted(pointer: at, length: count)
                return
            }
        }
        guard name.hasPrefix("basic_string"), Self.isLibcxx(die) else { return nil }
        self = .libcxx
    }

    /// A pointer and its length are read together.
    private static func isNear(_ a: Int, _ b: Int) -> Bool { a != b && (a - b) % 8 == 0 && abs(a - b) <= 24 && max(a, b) < 1 << 16 }

    private static func isLibcxx(_ die: Dwarf_Die) -> Bool {
        var whole = die
        let forms = [["__rep_"], ["__r_", "__value_"]]
        return dwarf_bytesize(&whole) == 24
            && forms.contains { form in
                bytes(form + ["__l", "__data_"], in: die) == 16 && number(form + ["__l", "__size_"], in: die) == 8
                    && place(form + ["__s", "__data_"], in: die)?.offset == 1
            }
    }

    // MARK: - Members

    /// Offset of a member that is a pointer to bytes.
    private static func bytes(_ path: [String], in die: Dwarf_Die) -> Int? {
        guard var found = place(path, in: die), Int(dwarf_tag(&found.type)) == DW_TAG_pointer_type,
            let type = SourceMembers.target(found.type),
            var element = SourceMembers.definition(type)
        else { return nil }
        return Int(dwarf_tag(&element)) == DW_TAG_base_type && dwarf_bytesize(&element) == 1 ? found.offset : nil
    }
    /// Offset of a member that is a number of 8 bytes without a sign.
    private static func number(_ path: [String], in die: Dwarf_Die) -> Int? {
        guard var found = place(path, in: die), Int(dwarf_tag(&found.type)) == DW_TAG_base_type, dwarf_bytesize(&found.type) == 8 else {
            return nil
        }
        var attribute = Dwarf_Attribute(), encoding: Dwarf_Word = 0
        guard dwarf_attr(&found.type, UInt32(DW_AT_encoding), &attribute) != nil, dwarf_formudata(&attribute, &encoding) == 0 else {
            return nil
        }
        return Int(encoding) == DW_ATE_unsigned ? found.offset : nil
    }

    /// Offset and type of a member of a member; typedefs are followed.
    private static func place(_ path: [String], in die: Dwarf_Die) -> (offset: Int, type: Dwarf_Die)? {
        var place = (offset: 0, type: die)
        for name in path {
            guard let next = SourceMembers.member(name, of: place.type), let type = SourceMembers.definition(next.type) else { return nil }
            place = (place.offset + next.offset, type)
        }
        return place
    }
    /// The string that a pointer or a reference leads to.
    static func behind(_ pointer: Dwarf_Die) -> SourceText? { SourceMembers.target(pointer).flatMap { SourceText($0) } }
}
