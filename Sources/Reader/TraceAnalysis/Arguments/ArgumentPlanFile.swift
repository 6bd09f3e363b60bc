// Writes the argument plan, which the agent reads (arguments_layout.h).
import CTraceLayout
import ELF

extension ArgumentChoice {
    /// The content of the file; nil: no function is chosen, or too many are.
    package var plan: [UInt8]? {
        guard !functions.isEmpty, functions.count <= Int(ARGUMENTS_MOST_FUNCTIONS),
            functions.allSatisfy({ $0.tests.count <= Int(ARGUMENTS_MOST_TESTS) })
        else { return nil }
        let head = MemoryLayout<arguments_file>.size, row = MemoryLayout<arguments_function>.size
        let sorted = functions.map { (hash: Self.hash($0.name), chosen: $0) }.sorted {
            ($0.hash, $0.chosen.name, $0.chosen.place?.address ?? 0) < ($1.hash, $1.chosen.name, $1.chosen.place?.address ?? 0)
        }
        var rows: [UInt8] = [], rest: [UInt8] = []
        let start = head + sorted.count * row
        func put(_ value: some FixedWidthInteger, _ bytes: inout [UInt8]) { withUnsafeBytes(of: value.littleEndian) { bytes += $0 } }
        for (hash, chosen) in sorted {
            let operations = chosen.prototype.operations(on: machine)
            while (start + rest.count) % 4 != 0 { rest.append(0) }
            let operationsAt = start + rest.count
            rest += operations.flatMap { [$0.kind, $0.source, $0.bytes, $0.failure] }
            let nameAt = start + rest.count
            rest += Array(chosen.name.utf8)
            let textAt = start + rest.count, text = Array(text(chosen).utf8)
            rest += text
            // The texts that strings are compared with come before the tests.
            let texts = chosen.tests.map { test in
                defer { rest += test.text }
                return UInt32(start + rest.count)
            }
            while (start + rest.count) % MemoryLayout<arguments_test>.alignment != 0 { rest.append(0) }
            let testsAt = start + rest.count
            for (test, text) in zip(chosen.tests, texts) {
                put(test.number, &rest)
                put(test.mask, &rest)
                put(text, &rest)
                put(UInt32(test.text.count), &rest)
                rest += [UInt8(test.operation), test.comparison, test.isErrno ? 1 : 0, UInt8(test.bytes), test.isSigned ? 1 : 0, 0, 0, 0]
            }
            for value in [
                hash, UInt32(nameAt), UInt32(chosen.name.utf8.count), UInt32(textAt), UInt32(text.count), UInt32(operationsAt),
                UInt32(operations.count),
                UInt32(
                    chosen.place != nil ? ARGUMENTS_OF_MODULE : chosen.prototype.isLibc ? ARGUMENTS_OF_LIBC : ARGUMENTS_OF_ANY),
                UInt32(testsAt), UInt32(chosen.tests.count),
            ] { put(value, &rows) }
            put(chosen.place?.module ?? 0, &rows)
            put(chosen.place?.address ?? 0, &rows)
        }
        var header: [UInt8] = []
        put(UInt64(ARGUMENTS_MAGIC), &header)
        put(UInt32(ARGUMENTS_VERSION), &header)
        put(UInt32(sorted.count), &header)
        let notesAt = start + rest.count
        rest += Array(notes.joined(separator: "\n").utf8)
        put(UInt32(start + rest.count), &header)
        put(purpose.rawValue, &header)
        put(UInt32(notesAt), &header)
        put(UInt32(0), &header)
        let whole = header + rows + rest
        return whole.count <= Int(ARGUMENTS_MOST_BYTES) ? whole : nil
    }

    /// DT_GNU_HASH's, as far as plans of functions have it.
    static func hash(_ name: String) -> UInt32 {
        name.utf8.reduce(5381 as UInt32) { $0 &* 33 &+ UInt32($1) } & PLAN_NAME_HASH
    }
}

extension Prototype {
    /// How its values are read: those of a call, and, last, that of its result.
    /// - Parameter machine: ELF's e_machine
    package func operations(on machine: UInt16) -> [arguments_operation] {
        var all: [arguments_operation] = []
        for (parameter, source) in zip(parameters, sources(on: machine)) where parameter.type.byteCount > 0 {
            guard let source else { continue }
            let kind = parameter.type == .string ? ARGUMENTS_STRING : ARGUMENTS_VALUE
            all.append(
                arguments_operation(kind: UInt8(kind), source: source, bytes: UInt8(parameter.type.byteCount), failure: 0))
        }
        if let result {
            let source = result.type.isFloatingPoint ? UInt8(ARGUMENTS_FROM_VECTOR) : 0
            all.append(
                arguments_operation(
                    kind: UInt8(ARGUMENTS_RESULT), source: source, bytes: UInt8(result.type.byteCount), failure: result.failure.rawValue))
        }
        return all
    }

    /// Index of the operation that reads it; nil: none does.
    func operation(of subject: CallSubject, on machine: UInt16) -> Int? {
        guard case .argument(let name) = subject else { return result.map { _ in operations(on: machine).count - 1 } }
        guard let index = parameters.firstIndex(where: { $0.name == name }) else { return nil }
        let isRead = zip(parameters, sources(on: machine)).map { $0.type.byteCount > 0 && $1 != nil }
        return isRead[index] ? isRead[..<index].count { $0 } : nil
    }

    /// What each parameter is read from; nil: it is not passed.
    private func sources(on machine: UInt16) -> [UInt8?] {
        // Integers and pointers are numbered alike on every processor.
        if !parameters.contains(where: { $0.source != nil || $0.type.isFloatingPoint || $0.type == .unavailable }) {
            return parameters.indices.map { UInt8($0) }
        }
        var standard = CallingStandard(machine: machine)
        return parameters.map { parameter in
            if let source = parameter.source { return source.number }
            if parameter.type == .unavailable { return nil }
            let kind: SourceType.Kind = parameter.type.isFloatingPoint ? .floatingPoint(isExtended: false) : .integer(isSigned: true)
            guard case .one(let source)? = standard?.place(SourceType(kind, bytes: 8)) else { return nil }
            return source.number
        }
    }
}
