// Types of parameters and results, as far as it takes to know where a caller leaves them and how to show them.

package struct SourceType: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        case void
        case integer(isSigned: Bool)
        case boolean
        /// `isExtended`: long double, which on x86-64 is not in a vector register.
        case floatingPoint(isExtended: Bool)
        /// A pointer or a reference. `toText`: to char.
        case pointer(toText: Bool)
        case enumeration(SourceEnumeration)
        /// A structure, a union, a pointer to a member of a class.
        case aggregate
        case complex
        /// A short vector, which SIMD registers hold.
        case vector
        /// Its definition is not here, or it is of a kind that C and C++ do not have.
        case unknown
    }
    /// What lies at an offset of an aggregate, and is none itself.
    package struct Leaf: Sendable, Equatable {
        package var offset: Int
        package var byteCount: Int
        /// As memory; a bit-field has 1.
        package var alignment: Int
        package var kind: LeafKind

        package init(offset: Int, byteCount: Int, alignment: Int, kind: LeafKind) {
            (self.offset, self.byteCount, self.alignment, self.kind) = (offset, byteCount, alignment, kind)
        }
        func moved(by distance: Int) -> Leaf { Leaf(offset: offset + distance, byteCount: byteCount, alignment: alignment, kind: kind) }
    }
    package enum LeafKind: Sendable, Equatable { case integer, floatingPoint, extended, vector }

    package var kind: Kind
    package var byteCount: Int
    package var alignment: Int
    /// The outermost typedef, or the name of a base type.
    package var name: String?
    /// Members of an aggregate of up to `mostBytes`; nil: they are not known.
    package var leaves: [Leaf]?
    /// Members of a structure or a class of up to `mostBytes` that have names, in their order; those of base classes and unnamed members are its
    /// own. nil: it is none, or they are not known.
    package var fields: [SourceField]?
    /// The type of an array's elements, of which there are as many as fit; empty: it is no array.
    package var element: [SourceType] = []
    /// A class that is passed by a pointer to a copy, since it is not trivial for the purposes of calls (Itanium C++ ABI, 1.1).
    package var isByReference = false
    /// The string that an aggregate is, or that a pointer leads to; nil: it is none, or a char *.
    package var text: SourceText?

    /// A Bool of Swift, of whose byte only the lowest bit is passed.
    package var isBit = false
    /// A type of Swift that is no `inout`.
    package var isConstant = false

    /// Larger ones are passed in memory, whatever they hold: four members of 16 bytes are the most that registers take (AAPCS64 5.9.5).
    package static let mostBytes = 64

    package init(_ kind: Kind, bytes: Int, alignment: Int? = nil, name: String? = nil, leaves: [Leaf]? = nil) {
        self.kind = kind
        byteCount = bytes
        self.alignment = max(alignment ?? bytes, 1)
        self.name = name
        self.leaves = leaves
    }

    package static let unknown = SourceType(.unknown, bytes: 0)
}

package struct SourceField: Sendable, Equatable {
    package var name: String
    package var offset: Int
    package var type: SourceType
    /// The bits of a bit-field, counted from the lowest one of the byte at the offset (DWARF 5, 5.7.6); nil: it is none.
    package var bits: Range<Int>?

    package init(_ name: String, offset: Int, _ type: SourceType, bits: Range<Int>? = nil) {
        (self.name, self.offset, self.type, self.bits) = (name, offset, type, bits)
    }
}

/// Names of the values of an enumeration.
package struct SourceEnumeration: Sendable, Equatable {
    package struct Value: Sendable, Equatable {
        package var name: String
        package var number: Int64

        package init(name: String, number: Int64) { (self.name, self.number) = (name, number) }
    }
    /// nil: it has none.
    package var name: String?
    package var isSigned: Bool
    package var values: [Value]

    package init(name: String?, isSigned: Bool, values: [Value]) { (self.name, self.isSigned, self.values) = (name, isSigned, values) }
}
