// A condition as the agent tests it (arguments_test). What the agent has to know of types, names and widths is found out here.
import CTraceLayout

package struct PlannedTest: Equatable, Sendable {
    package struct Problem: Error, Equatable {
        package var reason: String
    }

    /// Index among the operations of the function.
    var operation: Int
    /// ARGUMENTS_IS_
    var comparison: UInt8
    /// Bytes of the number, and whether it has a sign.
    var bytes = 8
    var isSigned = false
    var isErrno = false
    /// Only the lowest bit counts.
    var isBit = false
    var number: UInt64 = 0
    var mask: UInt64 = 0
    var text: [UInt8] = []
}

extension RecordedPrototype {
    /// Returns tests all of which a call must pass: as `holds` decides it (ConditionTest.swift).
    /// - Parameter operation: index of the operation that reads what is asked about; nil: none does
    package func tests(_ condition: CallCondition, of operation: Int?) throws(PlannedTest.Problem) -> [PlannedTest] {
        if let problem = problem(condition) { throw .init(reason: problem) }
        guard let type = type(condition.subject) else { throw .init(reason: "\(prototype.names[0]) has no \(condition.subject.name)") }
        if case .argument(let name) = condition.subject, !isAlwaysPassed(name) {
            throw .init(
                reason: "\(name) is an argument of some calls only: which of them, is known after the recording: tracer report --where")
        }
        if type == .text(.filled) {
            throw .init(reason: "\(condition.subject.name) is known when the call has ended, after the recording: tracer report --where")
        }
        if case .argument(let name) = condition.subject, !prototype.parameters.contains(where: { $0.name == name }) {
            throw .init(reason: "\(name) is a member of a structure, which is looked at after the recording: tracer report --where")
        }
        guard let operation else { throw .init(reason: "\(prototype.names[0]) has no \(condition.subject.name)") }
        if type.isText { return [try textTest(condition, operation)] }
        let isFlags = enumeration(type)?.areFlags ?? false
        var form = PlannedTest(operation: operation, comparison: 0, bytes: type.byteCount, isSigned: type.isSigned(areFlags: isFlags))
        if case .integer(_, _, .bit) = type { form.isBit = true }
        var more: [PlannedTest] = []
        if condition.subject == .errno {
            if prototype.result?.type == .error { // the result is the error; 0 is none
                more = [PlannedTest(operation: operation, comparison: UInt8(ARGUMENTS_IS_NOT), bytes: 4, isSigned: true)]
            } else {
                form.isErrno = true
            }
        }
        return try numberTests(condition, form, enumeration(type)) + more
    }

    private func textTest(_ condition: CallCondition, _ operation: Int) throws(PlannedTest.Problem) -> PlannedTest {
        guard case .text(let wanted) = condition.operand else { // NULL: the pointer itself is compared
            guard condition.comparison == .equal || condition.comparison == .notEqual else {
                throw .init(reason: "\(condition.subject.name) is a string: compare it with NULL by == or !=")
            }
            let comparison = condition.comparison == .equal ? ARGUMENTS_IS_EQUAL : ARGUMENTS_IS_NOT
            return PlannedTest(operation: operation, comparison: UInt8(comparison))
        }
        let comparison: Int
        switch condition.comparison {
        case .equal: comparison = ARGUMENTS_IS_TEXT
        case .notEqual: comparison = ARGUMENTS_IS_OTHER_TEXT
        default:
            if wanted.contains(where: { "[\\".utf8.contains($0) }) {
                throw .init(reason: "a text with [ or \\ is compared by report and replay alone: tracer replay --where")
            }
            comparison = wanted.contains { "*?".utf8.contains($0) } ? ARGUMENTS_IS_LIKE : ARGUMENTS_IS_WITH_TEXT
        }
        return PlannedTest(operation: operation, comparison: UInt8(comparison), text: wanted)
    }

    private func numberTests(
        _ condition: CallCondition, _ form: PlannedTest, _ enumeration: Enumeration?
    ) throws(PlannedTest.Problem) -> [PlannedTest] {
        var all: [(number: Int128, mask: Int128)] = []
        switch condition.operand {
        case .number(let number): all = [(number, number)]
        case .names(let names): all = names.compactMap { enumeration?.value($0) }.map { (Int128($0.number), Int128($0.mask)) }
        case .text: break // `problem` has refused it
        }
        if condition.comparison == .matches, enumeration?.areFlags != false { return all.map { form.bits($0.number, $0.mask) } }
        let comparison = condition.comparison == .matches ? .equal : condition.comparison
        return form.comparing(comparison, all.reduce(0) { $0 | $1.number }).map { [$0] } ?? []
    }
}

extension PlannedTest {
    private var never: PlannedTest {
        var test = self
        test.comparison = UInt8(ARGUMENTS_IS_NEVER)
        return test
    }

    /// nil: each number is so.
    fileprivate func comparing(_ comparison: CallCondition.Comparison, _ wanted: Int128) -> PlannedTest? {
        if isBit {
            let held = [0, 1].filter { (own: Int128) in
                switch comparison {
                case .equal, .matches: own == wanted
                case .notEqual: own != wanted
                case .less: own < wanted
                case .more: own > wanted
                case .atMost: own <= wanted
                case .atLeast: own >= wanted
                }
            }
            return held.count == 2 ? nil : held.first.map { self.bits($0, 1) } ?? never
        }
        let bits = Int128(bytes * 8), low: Int128 = isSigned ? -(1 << (bits - 1)) : 0,
            high: Int128 = (1 << (isSigned ? bits - 1 : bits)) - 1
        func test(_ comparison: Int) -> PlannedTest {
            var test = self
            test.comparison = UInt8(comparison)
            test.number = UInt64(truncatingIfNeeded: wanted)
            return test
        }
        let isThere = wanted >= low && wanted <= high
        switch comparison {
        case .equal, .matches: return isThere ? test(ARGUMENTS_IS_EQUAL) : never
        case .notEqual: return isThere ? test(ARGUMENTS_IS_NOT) : nil
        case .less: return wanted > high ? nil : wanted <= low ? never : test(ARGUMENTS_IS_LESS)
        case .more: return wanted < low ? nil : wanted >= high ? never : test(ARGUMENTS_IS_MORE)
        case .atMost: return wanted >= high ? nil : wanted < low ? never : test(ARGUMENTS_IS_AT_MOST)
        case .atLeast: return wanted <= low ? nil : wanted > high ? never : test(ARGUMENTS_IS_AT_LEAST)
        }
    }

    /// These bits are so; of a number with a sign also those above it.
    fileprivate func bits(_ number: Int128, _ mask: Int128) -> PlannedTest {
        let bits = Int128(bytes * 8), most: Int128 = isSigned ? Int128(UInt64.max) : (1 << bits) - 1
        guard mask >= (isSigned ? Int128(Int64.min) : 0), mask <= most else { return never }
        var test = self
        test.comparison = UInt8(ARGUMENTS_IS_BITS)
        test.number = UInt64(truncatingIfNeeded: number)
        test.mask = UInt64(truncatingIfNeeded: mask)
        return test
    }
}

extension ArgumentType {
    /// As its values are numbers of conditions.
    fileprivate func isSigned(areFlags: Bool) -> Bool {
        switch self {
        case .integer(_, let isSigned, .decimal): isSigned
        case .folder, .error: true
        case .named(_, _, let isSigned): !areFlags && isSigned
        default: false
        }
    }
}
