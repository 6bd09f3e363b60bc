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
            for operation in operations { withUnsafeBytes(of: operation) { rest += $0 } }
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
            let home = Self.home(chosen)
            for value in [
                hash, UInt32(nameAt), UInt32(chosen.name.utf8.count), UInt32(textAt), UInt32(text.count), UInt32(operationsAt),
                UInt32(operations.count),
                UInt32(home.kind), UInt32(testsAt), UInt32(chosen.tests.count),
            ] { put(value, &rows) }
            put(home.module, &rows)
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

    /// ARGUMENTS_OF_, and the module or the library that has the function.
    private static func home(_ chosen: Chosen) -> (kind: Int, module: UInt64) {
        if let place = chosen.place { return (Int(ARGUMENTS_OF_MODULE), place.module) }
        switch chosen.prototype.library {
        case .any: return (Int(ARGUMENTS_OF_ANY), 0)
        case .libc: return (Int(ARGUMENTS_OF_LIBC), 0)
        case .named(let name): return (Int(ARGUMENTS_OF_LIBRARY), arguments_library_id(name))
        }
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
        for (parameter, place) in zip(parameters, places(on: machine)) where parameter.type.byteCount > 0 {
            if let place { all += place.operations(parameter.type) }
        }
        if let result, let operation = operation(result, on: machine) { all.append(operation) }
        return all
    }
    /// nil: its place is not known at the return.
    private func operation(_ result: Result, on machine: UInt16) -> arguments_operation? {
        var operation = arguments_operation()
        if result.type.isText {
            guard let own = (result.place ?? Self.place(result.type, on: machine))?.operations(result.type).first else { return nil }
            operation = own
        } else {
            operation.kind = UInt8(ARGUMENTS_RESULT)
            operation.source = result.type.isFloatingPoint ? UInt8(ARGUMENTS_FROM_VECTOR) : 0
            operation.bytes = UInt8(result.type.byteCount)
        }
        operation.failure = result.failure.rawValue
        return operation
    }
    /// The place of a string that is a result.
    private static func place(_ type: ArgumentType, on machine: UInt16) -> ValuePlace? {
        guard case .text(let form) = type else { return ValuePlace(.result(0)) }
        switch form {
        case .standard: return ValuePlace(returnedInMemory: .counted(pointer: 0, length: 8), on: machine)
        case .view: return ValuePlace(.result(0), .result(1), .counted(pointer: 8, length: 0))
        case .slice: return ValuePlace(.result(0), .result(1), .counted(pointer: 0, length: 8))
        case .swift: return ValuePlace(swift: .result(0), .result(1))
        case .bytes, .filled, .described: return nil
        }
    }

    /// Index of the operation that reads it; nil: none does.
    func operation(of subject: CallSubject, on machine: UInt16) -> Int? {
        guard case .argument(let name) = subject else {
            return result.flatMap { operation($0, on: machine) }.map { _ in operations(on: machine).count - 1 }
        }
        guard let index = parameters.firstIndex(where: { $0.name == name }) else { return nil }
        let counts = zip(parameters, places(on: machine)).map { $0.type.byteCount > 0 ? $1?.operations($0.type).count ?? 0 : 0 }
        return counts[index] > 0 ? counts[..<index].reduce(0, +) : nil
    }

    /// The place of each parameter; nil: it is not passed.
    private func places(on machine: UInt16) -> [ValuePlace?] {
        let words = sources(on: machine)
        return parameters.indices.map { n in
            if let place = parameters[n].place { return place }
            guard let first = words[n].first else { return nil }
            if let count = parameters[n].type.count {
                guard let other = parameters.firstIndex(where: { $0.name == count }), let source = words[other].first else { return nil }
                return ValuePlace(first, countedBy: source, parameters[other].type)
            }
            if case .time = parameters[n].type { return ValuePlace(behind: first, bytes: 16) } // two words (timespec(3type))
            guard case .text(let form) = parameters[n].type else { return ValuePlace(first) }
            switch form {
            case .standard: return ValuePlace(behind: first, .counted(pointer: 0, length: 8)) // libstdc++, bits/basic_string.h
            case .view: return ValuePlace(first, words[n][1], .counted(pointer: 8, length: 0)) // the same, string_view
            case .slice: return ValuePlace(first, words[n][1], .counted(pointer: 0, length: 8))
            case .swift: return ValuePlace(swift: first, words[n][1])
            case .filled: return ValuePlace(first)
            case .described, .bytes: return nil
            }
        }
    }

    /// The words that each parameter is in; none: it is not passed.
    private func sources(on machine: UInt16) -> [[ArgumentSource]] {
        // The address of an object that is returned takes the first register on x86-64; x8 has it on aarch64.
        let isHeaded = machine == 62 && result?.type == .text(.standard)
        // Integers and pointers are numbered alike on every processor.
        let isPlain = parameters.allSatisfy { parameter in
            if case .text(let form) = parameter.type, form.isOfTwoWords { return false }
            return parameter.place == nil && !parameter.type.isFloatingPoint && parameter.type != .unavailable
        }
        if isPlain { return parameters.indices.map { [.register($0 + (isHeaded ? 1 : 0))] } }
        var standard = CallingStandard(machine: machine)
        func word(_ kind: SourceType.Kind) -> [ArgumentSource] {
            guard case .one(let source)? = standard?.place(SourceType(kind, bytes: 8)) else { return [] }
            return [source]
        }
        if isHeaded { _ = word(.pointer(toText: false)) }
        return parameters.map { parameter in
            if parameter.place != nil || parameter.type == .unavailable { return [] }
            if parameter.type.isFloatingPoint { return word(.floatingPoint(isExtended: false)) }
            guard case .text(let form) = parameter.type, form.isOfTwoWords else { return word(.integer(isSigned: true)) }
            // Rust and Swift pass the words as two arguments; of C++ both are in registers, or none is.
            if form != .view { return word(.integer(isSigned: true)) + word(.integer(isSigned: true)) }
            switch standard?.place(.twoWords) {
            case .pair(let first, let second)?: return [first, second]
            case .memory(let word)?: return [.stack(word), .stack(word + 1)]
            default: return []
            }
        }
    }
}

extension SourceType {
    fileprivate static let twoWords = SourceType(
        .aggregate, bytes: 16, alignment: 8,
        leaves: [0, 8].map { Leaf(offset: $0, byteCount: 8, alignment: 8, kind: .integer) })
}
