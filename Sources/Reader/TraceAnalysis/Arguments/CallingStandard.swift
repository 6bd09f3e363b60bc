// Places where a caller leaves arguments: psABI 3.2.3 on x86-64, AAPCS64 6.8.2 on aarch64. Classification is done here alone; the agent
// knows registers and words of the stack.
import CTraceLayout
import ELF

/// What the agent reads a value from (arguments_layout.h).
package enum ArgumentSource: Hashable, Sendable {
    /// Registers for integers and pointers, in the order in which arguments take them.
    case register(Int)
    case vector(Int)
    /// Words above the return address.
    case stack(Int)
    /// Registers that a result of one or two words is in.
    case result(Int)

    /// As plans have it; nil: the agent does not read so many words of the stack.
    var number: UInt8? {
        switch self {
        case .register(let n): UInt8(n)
        case .vector(let n): UInt8(Int(ARGUMENTS_FROM_VECTOR) + n)
        case .stack(let n): n < Int(ARGUMENTS_MOST_SOURCES) ? UInt8(Int(ARGUMENTS_FROM_STACK) + n) : nil
        case .result(let n): UInt8(Int(ARGUMENTS_FROM_RESULT) + n)
        }
    }
}

/// Assigns the arguments of one function from left to right.
package struct CallingStandard {
    package enum Place: Equatable {
        case one(ArgumentSource)
        /// In two registers, 8 bytes each.
        case pair(ArgumentSource, ArgumentSource)
        /// In several others, this many bytes in each; or in memory of several words, which begin at this one.
        case registers([ArgumentSource], bytes: Int)
        case memory(word: Int)
        case nothing
        /// Its type is not known, or that of an argument before it.
        case unknown
    }

    package let isArm: Bool
    private var integers = 0, vectors = 0, words = 0
    /// Something before could not be assigned.
    private var isLost = false

    private static let x86Registers = 6, armRegisters = 8, vectorRegisters = 8
    private var registers: Int { isArm ? Self.armRegisters : Self.x86Registers }

    /// - Parameter machine: ELF's e_machine; nil: there is no standard for it here
    package init?(machine: UInt16) {
        guard machine == 62 || machine == 183 else { return nil }
        isArm = machine == 183
    }

    /// The result comes first: on x86-64, one in memory takes the first register for its address. x8 has it on aarch64.
    package mutating func returns(_ type: SourceType) {
        if isArm { return }
        if type.isByReference {
            integers = 1
            return
        }
        switch Self.classes(type) {
        case .registers: break
        case .unknown: isLost = true
        case .memory:
            // The x87 unit has these (psABI 3.2.3, "Returning of Values").
            let isExtended = type.leaves.map { $0.count == 1 && $0[0].kind == .extended } ?? false
            if case .floatingPoint = type.kind { return }
            if type.kind != .complex, !isExtended { integers = 1 }
        }
    }

    package mutating func place(_ type: SourceType) -> Place {
        if isLost { return .unknown }
        let place = type.isByReference ? integer() : isArm ? armPlace(type) : x86Place(type)
        if place == .unknown { isLost = true }
        return place
    }

    private mutating func integer() -> Place {
        guard integers < registers else { return stack(8, alignment: 8) }
        integers += 1
        return .one(.register(integers - 1))
    }
    private mutating func vector(_ type: SourceType) -> Place {
        guard vectors < Self.vectorRegisters else { return stack(type.byteCount, alignment: type.byteCount) }
        vectors += 1
        return .one(.vector(vectors - 1))
    }
    /// The stack is aligned to 16 bytes where a function is called: what needs more is at a place that depends on the address.
    private mutating func stack(_ bytes: Int, alignment: Int) -> Place {
        if alignment > 16 { return .unknown }
        if alignment == 16 { words = (words + 1) & ~1 }
        let first = words
        words += (bytes + 7) / 8
        return bytes <= 8 ? .one(.stack(first)) : .memory(word: first)
    }

    // MARK: - x86-64

    private enum Class { case none, integer, vector }
    private enum Classes { case registers([Class]), memory, unknown }

    private static func classes(_ type: SourceType) -> Classes {
        switch type.kind {
        case .void: return .registers([])
        case .unknown: return .unknown
        case .boolean, .pointer, .enumeration: return .registers([.integer])
        case .integer: return .registers(type.byteCount > 8 ? [.integer, .integer] : [.integer])
        case .floatingPoint(let isExtended): return isExtended ? .memory : .registers([.vector])
        case .vector: return type.byteCount == 8 || type.byteCount == 16 ? .registers([.vector]) : .unknown // depends on -mavx
        case .aggregate, .complex: break
        }
        if type.byteCount > SourceType.mostBytes { return .memory }
        guard let leaves = type.leaves else { return .unknown }
        if leaves.isEmpty { return .registers([]) }
        if type.byteCount > 16 { return leaves.contains { $0.kind == .vector && $0.byteCount > 16 } ? .unknown : .memory }
        if leaves.contains(where: { $0.kind == .extended || $0.offset % max($0.alignment, 1) != 0 }) { return .memory }
        if leaves.contains(where: { $0.byteCount == 16 && $0.kind != .integer }) {
            return leaves.count == 1 ? .registers([.vector]) : .unknown
        }
        var classes = [Class](repeating: .none, count: (type.byteCount + 7) / 8)
        for leaf in leaves {
            for n in classes.indices where leaf.offset < n * 8 + 8 && leaf.offset + leaf.byteCount > n * 8 {
                if leaf.kind == .integer { classes[n] = .integer } else if classes[n] == .none { classes[n] = .vector }
            }
        }
        return .registers(classes)
    }

    private mutating func x86Place(_ type: SourceType) -> Place {
        switch Self.classes(type) {
        case .unknown: return .unknown
        case .memory: return stack(type.byteCount, alignment: type.alignment)
        case .registers(let classes):
            let needed = classes.count { $0 == .integer }, others = classes.count { $0 == .vector }
            if needed + others == 0 { return .nothing }
            guard integers + needed <= registers, vectors + others <= Self.vectorRegisters else {
                return stack(type.byteCount, alignment: type.alignment)
            }
            let sources: [ArgumentSource] = classes.compactMap { each in
                switch each {
                case .none: return nil
                case .integer:
                    integers += 1
                    return .register(integers - 1)
                case .vector:
                    vectors += 1
                    return .vector(vectors - 1)
                }
            }
            if sources.count == 1 { return .one(sources[0]) }
            return needed == 2 ? .pair(sources[0], sources[1]) : .registers(sources, bytes: 8)
        }
    }

    // MARK: - aarch64

    private mutating func armPlace(_ type: SourceType) -> Place {
        switch type.kind {
        case .void: return .nothing
        case .unknown: return .unknown
        case .boolean, .pointer, .enumeration: return integer()
        case .integer: return type.byteCount > 8 ? pair() : integer()
        case .floatingPoint: return vector(type)
        case .vector: return type.byteCount == 8 || type.byteCount == 16 ? vector(type) : .unknown
        case .aggregate, .complex: break
        }
        if type.byteCount == 0 { return .nothing }
        if type.byteCount > SourceType.mostBytes { return integer() }
        guard let leaves = type.leaves else { return .unknown }
        if leaves.isEmpty { return type.byteCount == 1 ? integer() : .unknown } // an empty one of C++; C's have no bytes
        if let members = Self.homogeneous(type, leaves) {
            guard vectors + members <= Self.vectorRegisters else {
                vectors = Self.vectorRegisters
                return stack(type.byteCount, alignment: max(type.alignment, 8))
            }
            vectors += members
            return .registers((vectors - members..<vectors).map { .vector($0) }, bytes: leaves[0].byteCount)
        }
        if type.byteCount > 16 { return integer() } // the address of a copy
        if leaves.contains(where: { $0.alignment >= 16 }) { return pair() }
        // An alignment that the source has asked for counts with some compilers (gcc's -Wpsabi).
        if type.alignment >= 16 { return .unknown }
        let needed = (type.byteCount + 7) / 8
        guard integers + needed <= registers else {
            integers = registers
            return stack(type.byteCount, alignment: 8)
        }
        integers += needed
        return needed == 2 ? .pair(.register(integers - 2), .register(integers - 1)) : .one(.register(integers - 1))
    }
    /// 16 bytes with an alignment of 16 begin at an even register.
    private mutating func pair() -> Place {
        integers = (integers + 1) & ~1
        guard integers + 2 <= registers else {
            integers = registers
            return stack(16, alignment: 16)
        }
        integers += 2
        return .pair(.register(integers - 2), .register(integers - 1))
    }
    /// Number of members of a homogeneous aggregate (AAPCS64 5.9.5); nil: it is none.
    private static func homogeneous(_ type: SourceType, _ leaves: [SourceType.Leaf]) -> Int? {
        let first = leaves[0], isFloatingPoint = first.kind == .floatingPoint || first.kind == .extended
        guard isFloatingPoint || first.kind == .vector && (first.byteCount == 8 || first.byteCount == 16),
            leaves.allSatisfy({ $0.byteCount == first.byteCount && ($0.kind == .vector) == !isFloatingPoint && $0.kind != .integer })
        else { return nil }
        let count = Set(leaves.map(\.offset)).count
        return count <= 4 && count * first.byteCount == type.byteCount ? count : nil
    }
}
