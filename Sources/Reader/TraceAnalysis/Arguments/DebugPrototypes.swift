// Prototypes out of debug information. What a function is declared with is not always what its code takes: compilers remove parameters and
// move others. So a parameter's location at the first instruction goes before the standard, and what neither tells is not read.
import ELF

/// Why a function with debug information has no prototype.
package enum PrototypeRefusal: Error, Hashable, Sendable {
    case noEntry, clone, convention, unprototyped, unplaced, unshown, language

    package var reason: String {
        switch self {
        case .noEntry: "the debug information does not describe them"
        case .clone: "the compiler has made them of other functions, perhaps without some of the parameters"
        case .convention: "they do not have the usual calling convention"
        case .unprototyped: "they are declared without a prototype"
        case .unplaced: "it is not known where their arguments are"
        case .unshown: "all that they take and return are structures and the like, which are not shown"
        case .language: "the calling convention of their language is not known"
        }
    }
}

/// Why what was asked for cannot be recorded.
package struct PrototypeProblem: Error, Sendable {
    package var reason: String
}

package struct DebugPrototype: Sendable {
    package private(set) var prototype: Prototype
    /// Enumerations that it names.
    package private(set) var enumerations: [Enumeration] = []

    /// - Parameters:
    ///   - machine: ELF's e_machine
    ///   - code: of the function, from its first instruction on; empty: it is not here
    package init(_ function: SourceFunction, machine: UInt16, code: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0))
        throws(PrototypeRefusal)
    {
        prototype = Prototype(names: [function.name], library: .any, parameters: [], result: nil)
        guard function.convention != .other, let places = try Placed(function, machine, code) else { throw .convention }
        guard function.parameters.count <= Prototype.mostParameters else { throw .unplaced }
        var words = 0 // structures are passed in these
        for (n, parameter) in function.parameters.enumerated() {
            guard let place = places.all[n] else { continue }
            var own = Prototype.Parameter(name: name(of: parameter, n), typeName: "opaque", type: .opaque)
            switch place {
            case .source(let source):
                (own.typeName, own.type) = type(parameter.type)
                own.place = ValuePlace(source)
                if own.type.byteCount == 0 || own.place?.operations(own.type).isEmpty != false {
                    (own.typeName, own.type) = ("opaque", .opaque)
                }
            case .address(let source):
                (own.typeName, own.type) = ("pointer", .pointer)
                own.place = ValuePlace(source)
            case .text(let place):
                (own.typeName, own.type) = ("text", .text(.described))
                own.place = place
                if place.operations(own.type).isEmpty { (own.typeName, own.type) = ("opaque", .opaque) }
            case .structure(let place, let byteCount, let isBehind):
                guard let form = structure(parameter.type, byteCount, isBehind: isBehind) else { break }
                let count = place.operations(.structure(form)).count
                // The agent reads so many words of one call.
                guard count > 0, function.parameters.count + words + count <= Prototype.mostParameters else { break }
                words += count
                (own.typeName, own.type, own.place) = (form.text, .structure(form), place)
            case .parts(let leaves, let sources):
                var recorded: [Int: Int] = [:], parts: [ValuePlace.Word] = [], end = 0
                for (leaf, source) in zip(leaves, sources) {
                    guard let source else { continue }
                    recorded[leaf.offset] = end
                    parts.append(ValuePlace.Word(source: source, bytes: leaf.byteCount))
                    end += leaf.byteCount
                }
                guard let form = structure(parameter.type, end, isBehind: false, recorded),
                    function.parameters.count + words + parts.count <= Prototype.mostParameters
                else { break }
                words += parts.count
                (own.typeName, own.type, own.place) = (form.text, .structure(form), ValuePlace(words: parts))
            case .opaque: break
            case .unavailable: (own.typeName, own.type) = ("unavailable", .unavailable)
            }
            prototype.parameters.append(own)
        }
        if places.hasResult {
            let (typeName, type) = type(function.result)
            if function.result.text != nil {
                prototype.result = textResult(function, machine)
            } else if type.byteCount > 0 {
                prototype.result = Prototype.Result(typeName: typeName, type: type, failure: .never)
            }
        }
        // A function without parameters and without a result says that it is called, as without a prototype.
        if !prototype.parameters.contains(where: { $0.type.byteCount > 0 }), prototype.result == nil, !function.parameters.isEmpty {
            throw prototype.parameters.contains { $0.type == .unavailable } ? .unplaced : .unshown
        }
    }

    /// A string that is no `char *`; nil: it is not known where it is at the return.
    private func textResult(_ function: SourceFunction, _ machine: UInt16) -> Prototype.Result? {
        let type = function.result
        guard let text = type.text else { return nil }
        let place: ValuePlace?
        if type.kind != .aggregate {
            place = ValuePlace(behind: .result(0), text)
        } else if !type.isByReference, type.byteCount == 16 {
            place = ValuePlace(.result(0), .result(1), text)
        } else {
            place = ValuePlace(returnedInMemory: text, on: machine)
        }
        guard let place, !place.operations(.text(.described)).isEmpty else { return nil }
        return Prototype.Result(typeName: "text", type: .text(.described), failure: .never, place: place)
    }

    /// Only what a prototype names, and members of what it points to.
    package init(_ function: SourceFunction, machine: UInt16, code: UnsafeRawBufferPointer, selecting wanted: Prototype)
        throws(PrototypeProblem)
    {
        do throws(PrototypeRefusal) { try self.init(function, machine: machine, code: code) } catch {
            throw PrototypeProblem(reason: error.reason)
        }
        let all = prototype.parameters
        prototype.parameters = []
        prototype.result = wanted.result
        for item in wanted.parameters {
            let parameter = item.path?.parameter ?? item.name
            guard let own = all.first(where: { $0.name == parameter }) else {
                throw PrototypeProblem(reason: "\(function.name) has no parameter \(parameter)")
            }
            prototype.parameters.append(
                !item.isMember ? Self.chosen(item, own) : try member(item, of: own, function.members))
        }
    }

    /// A parameter itself: as the debug information says, or as another type of the same kind.
    private static func chosen(_ item: Prototype.Parameter, _ own: Prototype.Parameter) -> Prototype.Parameter {
        var item = item
        if item.typeName.isEmpty { return own }
        if case .structure = own.type { return own }
        guard own.type.byteCount > 0, !own.type.isText || item.type.isText || item.type == .pointer, item.type.byteCount > 0,
            own.type.isFloatingPoint == item.type.isFloatingPoint
        else { return own }
        item.place = own.place
        return item
    }

    private mutating func member(
        _ item: Prototype.Parameter, of own: Prototype.Parameter, _ members: [String: Result<SourceMember, MemberProblem>]
    ) throws(PrototypeProblem) -> Prototype.Parameter {
        func found(_ path: String) throws(PrototypeProblem) -> SourceMember {
            switch members[path] {
            case .success(let member)?: return member
            case .failure(let problem)?: throw PrototypeProblem(reason: problem.reason)
            case nil: throw PrototypeProblem(reason: "\(path) is no member of a parameter")
            }
        }
        var item = item
        let member = try found(item.name)
        if item.typeName.isEmpty {
            if member.type.text != nil {
                (item.typeName, item.type) = ("text", .text(.described))
            } else {
                (item.typeName, item.type) = type(member.type)
            }
        }
        guard let source = own.place?.source else {
            (item.typeName, item.type) = ("unavailable", .unavailable) // the compiler has removed the parameter
            return item
        }
        if item.type == .secret || item.type == .opaque { return item }
        if case .text(.bytes(let count)) = item.type {
            item.place = ValuePlace(source, member, countedBy: try found(count))
        } else {
            item.place = ValuePlace(source, member, as: item.type)
        }
        if item.place?.operations(item.type).isEmpty != false {
            throw PrototypeProblem(reason: "\(item.name) cannot be recorded as \(item.typeName)")
        }
        return item
    }

    /// A name that a prototype can have, and no other parameter has.
    private func name(of parameter: SourceParameter, _ n: Int) -> String {
        let text = parameter.name.flatMap { Prototype.isName($0) && MemberPath($0) == nil ? $0 : nil } ?? "p\(n + 1)"
        return prototype.parameters.contains { $0.name == text } ? "\(text)_\(n + 1)" : text
    }

    /// How a structure of which so many bytes are recorded is shown; nil: not at all.
    /// - Parameter recorded: where each of its parts lies among what is recorded, by its offset; nil: at the same offset
    private mutating func structure(_ type: SourceType, _ byteCount: Int, isBehind: Bool, _ recorded: [Int: Int]? = nil) -> StructureForm? {
        var left = StructureForm.mostFields
        guard var fields = fields(type, recorded == nil ? byteCount : type.byteCount, 0, &left) else { return nil }
        if let recorded { fields = Self.moved(fields, of: type, 0, 0, recorded) }
        return StructureForm(fields: fields, byteCount: byteCount, isBehind: isBehind)
    }
    /// Members at the places where they are recorded.
    /// - Parameters:
    ///   - begin: of the structure that they are members of
    ///   - place: of what is recorded of it
    private static func moved(
        _ fields: [StructureForm.Field], of type: SourceType, _ begin: Int, _ place: Int, _ recorded: [Int: Int]
    ) -> [StructureForm.Field] {
        zip(fields, type.fields ?? []).map { field, source in
            var own = field
            let offset = begin + source.offset
            switch field.type {
            case .opaque: own.offset = 0
            case .structure(let nested):
                let first = recorded.filter { (offset..<offset + source.type.byteCount).contains($0.key) }.map(\.value).min()
                let form = StructureForm(
                    fields: moved(nested.fields, of: source.type, offset, first ?? 0, recorded), byteCount: 0, isBehind: false)
                (own.offset, own.typeName, own.type) = ((first ?? place) - place, form.text, .structure(form))
            default:
                if let at = recorded[offset] {
                    own.offset = at - place
                } else {
                    (own.offset, own.typeName, own.type) = (0, "unavailable", .unavailable)
                }
            }
            return own
        }
    }
    private mutating func fields(_ whole: SourceType, _ byteCount: Int, _ depth: Int, _ left: inout Int) -> [StructureForm.Field]? {
        guard let all = whole.fields, !all.isEmpty, all.count <= left, whole.text == nil else { return nil }
        left -= all.count
        var fields: [StructureForm.Field] = []
        for (n, each) in all.enumerated() {
            var own = StructureForm.Field(name: each.name, typeName: "opaque", type: .opaque, offset: each.offset)
            if !Prototype.isName(own.name) || own.name.contains(".") { own.name = "m\(n + 1)" }
            while fields.contains(where: { $0.name == own.name }) { own.name += "_\(n + 1)" }
            own.bits = each.bits.map { StructureForm.Bits(shift: $0.lowerBound, count: $0.count) }
            let end = each.offset + (own.bits.map { ($0.shift + $0.count + 7) / 8 } ?? each.type.byteCount)
            if end <= byteCount, own.bits.map({ $0.shift + $0.count <= 64 }) != false {
                if let element = each.type.element.first {
                    if let found = array(element, count: each.type.byteCount / element.byteCount) { (own.typeName, own.type) = found }
                } else if each.type.kind == .aggregate {
                    if depth < StructureForm.deepest, let nested = self.fields(each.type, byteCount - each.offset, depth + 1, &left) {
                        let form = StructureForm(fields: nested, byteCount: 0, isBehind: false)
                        (own.typeName, own.type) = (form.text, .structure(form))
                    }
                } else {
                    (own.typeName, own.type) = scalar(each.type)
                }
            }
            fields.append(own)
        }
        return fields
    }
    private mutating func array(_ element: SourceType, count: Int) -> (String, ArgumentType)? {
        if element.name == "char", element.byteCount == 1 { return ("text[\(count)]", .characters(count)) }
        let (name, type) = scalar(element)
        if element.kind == .aggregate || type.byteCount == 0 || count > StructureForm.mostElements { return nil }
        return ("\(name)[\(count)]", .array(type, count: count))
    }
    /// A member's type. What it points to is not recorded.
    private mutating func scalar(_ type: SourceType) -> (String, ArgumentType) {
        let found = self.type(type)
        return found.1 == .string ? ("pointer", .pointer) : found
    }
    private mutating func type(_ type: SourceType) -> (String, ArgumentType) {
        switch type.kind {
        case .boolean where type.isBit: return ("bit", ArgumentType.byName["bit"]!)
        case .boolean: return ("bool", ArgumentType.byName["bool"]!)
        case .pointer(toText: true): return ("string", .string)
        case .pointer: return ("pointer", .pointer)
        case .floatingPoint where type.byteCount == 4: return ("float", .floatingPoint(bytes: 4))
        case .floatingPoint where type.byteCount == 8: return ("double", .floatingPoint(bytes: 8))
        case .integer(let isSigned) where type.byteCount <= 8: return Self.integer(type, isSigned)
        case .enumeration(let source):
            guard !source.values.isEmpty else { return Self.integer(type, source.isSigned) }
            return named(source, type.byteCount)
        default: return ("opaque", .opaque)
        }
    }

    /// A typedef keeps its name if prototypes know it as the same: mode_t, pid_t.
    private static func integer(_ type: SourceType, _ isSigned: Bool) -> (String, ArgumentType) {
        if let name = type.name, case .integer(type.byteCount, isSigned, let style)? = ArgumentType.byName[name], name != "bool",
            name != "fd",
            style == .decimal || name == "mode_t"
        {
            return (name, ArgumentType.byName[name]!)
        }
        let name =
            switch type.byteCount {
            case 1: isSigned ? "i8" : type.name == "char" ? "uchar" : "u8"
            case 2: isSigned ? "short" : "ushort"
            case 4: isSigned ? "int" : "uint"
            default: isSigned ? "long" : "ulong"
            }
        return (name, ArgumentType.byName[name]!)
    }

    private mutating func named(_ source: SourceEnumeration, _ bytes: Int) -> (String, ArgumentType) {
        var name = source.name.flatMap { Prototype.isName($0) ? $0 : nil } ?? "enumeration"
        if ArgumentType.byName[name] != nil { name += "_" }
        let values = source.values.filter { Prototype.isName($0.name) }.map {
            Enumeration.Value(name: $0.name, number: $0.number, mask: $0.number)
        }
        var own = Enumeration(
            name: name, machine: nil, areFlags: false, base: .init(bytes: bytes, isSigned: source.isSigned), values: values)
        var n = 1
        while let other = enumerations.first(where: { $0.name == own.name }), other != own {
            n += 1
            own.name = "\(name)_\(n)"
        }
        if !enumerations.contains(own) { enumerations.append(own) }
        return (own.name, .named(own.name, bytes: bytes, isSigned: source.isSigned))
    }
}

/// Registers and stack words of a function's parameters.
private struct Placed {
    enum Place {
        case source(ArgumentSource)
        /// The address of a value of its type.
        case address(ArgumentSource)
        case text(ValuePlace)
        /// A structure, of which so many bytes are recorded.
        case structure(ValuePlace, byteCount: Int, isBehind: Bool)
        /// A structure of these parts, each in a register or a word; nil: it is not known where.
        case parts([SourceType.Leaf], [ArgumentSource?])
        /// It is passed, and nothing of it is shown.
        case opaque
        case unavailable
    }
    /// One a parameter; nil: it is not passed, since it has no bytes, or it is the compiler's own.
    private(set) var all: [Place?] = []
    private(set) var hasResult = true

    private let function: SourceFunction
    private let isArm: Bool
    /// nil: the standard says where parameters are, or nothing does.
    private let entry: EntryCode?

    /// nil: the debug information contradicts the standard.
    init?(_ function: SourceFunction, _ machine: UInt16, _ code: UnsafeRawBufferPointer) throws(PrototypeRefusal) {
        guard var standard = CallingStandard(machine: machine) else { return nil }
        (self.function, isArm) = (function, standard.isArm)
        switch function.language {
        case .c, .cPlusPlus: entry = nil
        case .rust, .swift:
            let mayBeCleared = function.language == .swift && !function.isOptimized
            entry =
                function.parameters.contains { $0.home != nil }
                ? EntryCode(code, machine: machine, mayBeCleared: mayBeCleared, keeping: function.parameters.compactMap(\.home)) : nil
            all = function.parameters.map { followed($0) }
            // LLVM changes what local functions return, and not what others do. A number, a pointer or a boolean is in the same register
            // in C, Rust and Swift.
            hasResult = !function.isOptimized || !function.isLocal
            if function.language == .swift, !SwiftName.returnsAlways(function.name) { hasResult = false }
            return
        case .other: throw .language
        }
        let isStandard = function.convention == .standard
        // A float is passed as a double where the callers do not know its type (C17 6.5.2.2).
        if !function.isPrototyped,
            function.parameters.contains(where: { $0.type.kind == .floatingPoint(isExtended: false) && $0.type.byteCount < 8 })
        {
            throw .unprototyped
        }
        standard.returns(function.result)
        var expected: [CallingStandard.Place] = []
        for parameter in function.parameters {
            expected.append(isStandard ? Self.expected(parameter, function, &standard) : .unknown)
        }
        let found = function.parameters.map { located($0) }
        // Registers that are not the standard's are another convention's, or parameters before were removed: what has a location is there,
        // and what has none is nowhere.
        var agrees = isStandard
        for n in expected.indices {
            if let found = found[n], case .one(let wanted) = expected[n], found != wanted { agrees = false }
            if case .pair(let a, let b) = expected[n], let found = pair(function.parameters[n]), found != (a, b) { agrees = false }
            if contradicts(function.parameters[n], expected[n]) { return nil }
        }
        let areHomesKnown = agrees && (!function.isOptimized || function.compiler == .gcc || !function.isLocal)
        // LLVM takes parameters and results from functions that no other module can call, and does not say so.
        hasResult = agrees && (!function.isOptimized || function.compiler == .gcc || !function.isLocal)
        for (n, parameter) in function.parameters.enumerated() {
            all.append(place(parameter, expected[n], found[n], areHomesKnown))
        }
    }

    private static func expected(
        _ parameter: SourceParameter, _ function: SourceFunction, _ standard: inout CallingStandard
    ) -> CallingStandard.Place {
        // gcc declares what one of the functions that a constructor becomes is given (Itanium C++ ABI, 2.6.2), and others are not.
        if parameter.isArtificial, parameter.name != "this", parameter.location == .none {
            if !function.isOptimized || parameter.name == "__in_chrg" { return .nothing }
            return standard.place(.unknown)
        }
        return standard.place(parameter.type)
    }

    private func place(_ parameter: SourceParameter, _ expected: CallingStandard.Place, _ found: ArgumentSource?, _ areHomesKnown: Bool)
        -> Place?
    {
        if expected == .nothing || parameter.isArtificial && parameter.name != "this" { return nil }
        if let text = parameter.type.text, !parameter.isArtificial {
            if case .aggregate = parameter.type.kind {
                return object(parameter, text, expected, found, areHomesKnown).map { .text($0) } ?? .unavailable
            }
            let source = pointer(parameter, expected, found, areHomesKnown)
            return source.map { .text(ValuePlace(behind: $0, text)) } ?? .unavailable
        }
        switch parameter.type.kind {
        case .aggregate: return structure(parameter, expected, found, areHomesKnown) ?? .opaque
        case .complex, .vector, .unknown, .void: return .opaque
        case .integer where parameter.type.byteCount > 8: return .opaque
        case .floatingPoint where parameter.type.byteCount != 4 && parameter.type.byteCount != 8: return .opaque
        default: break
        }
        return pointer(parameter, expected, found, areHomesKnown).map { .source($0) } ?? .unavailable
    }

    // MARK: - Rust and Swift

    /// The place of a parameter whose language promises none: where the debug information says that it is at the first instruction, or what the
    /// code has put where it says that it is later.
    private func followed(_ parameter: SourceParameter) -> Place? {
        let type = parameter.type
        if parameter.isArtificial || type.kind == .aggregate && type.byteCount == 0 { return nil }
        if let text = type.text {
            if case .aggregate = type.kind {
                if let place = object(parameter, text, .unknown, located(parameter), false) { return .text(place) }
                switch parameter.home {
                case .place(let register, let offset)?:
                    guard let first = entry?.argument(at: offset, from: register, bytes: 8),
                        let second = entry?.argument(at: offset + 8, from: register, bytes: 8),
                        let place = ValuePlace(first, second, text)
                    else { return .unavailable }
                    return .text(place)
                case .address, .held: return address(parameter.home).map { .text(ValuePlace(behind: $0, text)) } ?? .unavailable
                case nil: return .unavailable
                }
            }
            return word(parameter).map { .text(ValuePlace(behind: $0, text)) } ?? .unavailable
        }
        switch type.kind {
        case .aggregate: return (function.language == .rust ? scattered(parameter) : apart(parameter)) ?? .opaque
        case .complex, .vector, .unknown, .void: return .opaque
        case .integer where type.byteCount > 8: return .opaque
        case .floatingPoint where type.byteCount != 4 && type.byteCount != 8: return .opaque
        default: break
        }
        if function.language == .swift, let source = address(parameter) ?? address(parameter.home) {
            return type.isConstant ? .unavailable : .address(source) // inout
        }
        return word(parameter).map { .source($0) } ?? .unavailable
    }
    /// The place of a structure of Swift, each of whose parts has a register of its own, or which is in memory; nil: it is not known.
    private func apart(_ parameter: SourceParameter) -> Place? {
        let type = parameter.type, bytes = type.byteCount
        guard bytes <= SourceType.mostBytes, type.fields != nil, let leaves = type.leaves, !leaves.isEmpty else { return nil }
        if let address = address(parameter) ?? address(parameter.home) {
            return .structure(ValuePlace(behind: address, bytes: bytes), byteCount: bytes, isBehind: true)
        }
        let sources = leaves.map { piece(parameter, $0.offset..<$0.offset + $0.byteCount) }
        return sources.contains { $0 != nil } ? .parts(leaves, sources) : nil
    }
    /// The place of a structure whose members may have registers of their own, or share one; nil: it is not known.
    private func scattered(_ parameter: SourceParameter) -> Place? {
        let type = parameter.type, bytes = type.byteCount
        guard bytes <= SourceType.mostBytes else { return nil }
        if let address = address(parameter) ?? address(parameter.home) {
            return .structure(ValuePlace(behind: address, bytes: bytes), byteCount: bytes, isBehind: true)
        }
        guard let leaves = type.leaves else { return nil }
        for each in [8, 4, 2, 1] {
            let starts = stride(from: 0, to: bytes, by: each)
            let words = starts.compactMap { start in
                let used = leaves.filter { start..<start + each ~= $0.offset }.map { $0.offset + $0.byteCount }.max() ?? start
                return start..<start + each + 1 ~= used ? piece(parameter, start..<used) : nil
            }
            if words.count == (bytes + each - 1) / each {
                return .structure(ValuePlace(words: words, bytes: each), byteCount: words.count * each, isBehind: false)
            }
        }
        return nil
    }
    /// The place of some bytes of a structure, in the lowest ones of a register or a word; nil: they are not there, or there are none.
    private func piece(_ parameter: SourceParameter, _ bytes: Range<Int>) -> ArgumentSource? {
        if bytes.isEmpty { return nil }
        if let piece = pieces(parameter)?.first(where: { $0.offset == bytes.lowerBound && $0.byteCount >= bytes.count }) {
            return source(ofRegister: piece.register)
        }
        if case .register(let number, let isList) = parameter.location, isList || function.compiler != .gcc, bytes.lowerBound == 0 {
            return source(ofRegister: number)
        }
        guard case .place(let register, let offset)? = parameter.home else { return nil }
        return entry?.argument(at: offset + bytes.lowerBound, from: register, bytes: bytes.count, isBoolean: bytes.count == 1)
    }
    private func word(_ parameter: SourceParameter) -> ArgumentSource? {
        if let found = located(parameter) { return fits(found, parameter.type) ? found : nil }
        guard case .place(let register, let offset)? = parameter.home,
            let source = entry?.argument(
                at: offset, from: register, bytes: parameter.type.byteCount, isBoolean: isOneBit(parameter.type))
        else { return nil }
        return fits(source, parameter.type) ? source : nil
    }
    /// rustc passes an enumeration of two cases as it does a bool, with zeros above the bit.
    private func isOneBit(_ type: SourceType) -> Bool {
        if case .enumeration(let source) = type.kind, function.language == .rust { return source.values.allSatisfy { 0...1 ~= $0.number } }
        return type.kind == .boolean
    }
    private func address(_ home: ParameterHome?) -> ArgumentSource? {
        switch home {
        case .address(let register, let offset)?: entry?.argument(at: offset, from: register, bytes: 8)
        case .held(let register, let before)?: entry?.argument(in: register, before: before)
        case .place?, nil: nil
        }
    }

    // MARK: - Places

    /// What a parameter of one word is in; nil: it is not known.
    private func pointer(
        _ parameter: SourceParameter, _ expected: CallingStandard.Place, _ found: ArgumentSource?, _ areHomesKnown: Bool
    ) -> ArgumentSource? {
        if let found { return fits(found, parameter.type) ? found : nil }
        guard isHome(parameter.location), areHomesKnown, case .one(let source) = expected, fits(source, parameter.type) else { return nil }
        return source
    }
    /// The location is the parameter's place in the function's frame, which the first instructions fill.
    private func isHome(_ location: EntryLocation) -> Bool {
        switch location {
        case .stack, .register, .indirect, .memory(_, _, isList: false): true
        case .registers(let pieces, let isList): !isList && pieces.areTwoWords && function.compiler == .gcc
        case .memory, .none, .other: false
        }
    }

    /// The place of a string that is passed by value: memory that a register points to, or its words; nil: it is not known.
    private func object(
        _ parameter: SourceParameter, _ text: SourceText, _ expected: CallingStandard.Place, _ found: ArgumentSource?, _ areHomesKnown: Bool
    ) -> ValuePlace? {
        if let (first, second) = pair(parameter) { return ValuePlace(first, second, text) }
        if let address = address(parameter) { return ValuePlace(behind: address, text) }
        if !parameter.type.isByReference, case .stack(let word)? = found { return ValuePlace(.stack(word), .stack(word + 1), text) }
        guard areHomesKnown, isHome(parameter.location) else { return nil }
        switch expected {
        case .one(let source): return parameter.type.isByReference ? ValuePlace(behind: source, text) : nil
        case .pair(let first, let second): return ValuePlace(first, second, text)
        case .memory(let word): return ValuePlace(.stack(word), .stack(word + 1), text)
        case .registers, .nothing, .unknown: return nil
        }
    }
    /// The place of a structure; nil: it is not known, or it is passed by the address of a copy that is no plain memory yet.
    private func structure(
        _ parameter: SourceParameter, _ expected: CallingStandard.Place, _ found: ArgumentSource?, _ areHomesKnown: Bool
    ) -> Place? {
        let type = parameter.type, bytes = type.byteCount
        if parameter.isArtificial || type.isByReference || bytes == 0 || bytes > SourceType.mostBytes { return nil }
        func words(_ sources: [ArgumentSource], _ each: Int = 8) -> Place {
            .structure(ValuePlace(words: sources, bytes: each), byteCount: sources.count * each, isBehind: false)
        }
        func memory(_ word: Int) -> Place { words((word..<word + (bytes + 7) / 8).map { .stack($0) }) }
        if let (first, second) = pair(parameter) { return words([first, second]) }
        switch found {
        case .stack(let word): return memory(word)
        case let source?: if bytes <= 8 { return words([source]) }
        case nil: break
        }
        // gcc says in pieces, or not at all, what the function needs of it: all of it is passed nevertheless, unless the function is a copy.
        let isPassed =
            switch parameter.location {
            case .other, .registers: function.compiler == .gcc
            case .none: function.compiler == .gcc && !function.isLocal
            default: false
            }
        guard areHomesKnown, isPassed || isHome(parameter.location) else { return nil }
        switch expected {
        case .one(let source):
            if isArm, bytes > 16 {
                return .structure(ValuePlace(behind: source, bytes: bytes), byteCount: bytes, isBehind: true)
            }
            return words([source])
        case .pair(let first, let second): return words([first, second])
        case .registers(let sources, let each): return each <= 8 ? words(sources, each) : nil
        case .memory(let word): return memory(word)
        case .nothing, .unknown: return nil
        }
    }
    /// The registers that a location says a parameter is in at the first instruction.
    private func pair(_ parameter: SourceParameter) -> (ArgumentSource, ArgumentSource)? {
        guard let pieces = pieces(parameter), pieces.areTwoWords,
            let a = source(ofRegister: pieces[0].register), let b = source(ofRegister: pieces[1].register)
        else { return nil }
        return (a, b)
    }
    private func pieces(_ parameter: SourceParameter) -> [EntryPiece]? {
        guard case .registers(let pieces, let isList) = parameter.location, isList || function.compiler != .gcc else { return nil }
        return pieces
    }
    /// The register that points to it, as a location says.
    private func address(_ parameter: SourceParameter) -> ArgumentSource? {
        guard case .memory(let number, 0, let isList) = parameter.location, isList || function.compiler != .gcc else { return nil }
        return source(ofRegister: number)
    }

    private func fits(_ source: ArgumentSource, _ type: SourceType) -> Bool {
        var isFloatingPoint = false
        if case .floatingPoint = type.kind { isFloatingPoint = true }
        return switch source {
        case .register, .result: !isFloatingPoint
        case .vector: isFloatingPoint
        case .stack: true
        }
    }

    /// What a location says of the first instruction; nil: nothing.
    private func located(_ parameter: SourceParameter) -> ArgumentSource? {
        switch parameter.location {
        // Without variable tracking, gcc says where a function has a parameter most of the time.
        case .register(let number, let isList): return isList || function.compiler != .gcc ? source(ofRegister: number) : nil
        case .stack(let offset?, isList: true): return offset >= 0 && offset % 8 == 0 ? .stack(offset / 8) : nil
        case .memory: return parameter.type.isByReference ? address(parameter) : nil
        case .stack, .registers, .indirect, .none, .other: return nil
        }
    }

    /// True if the parameter lies in the caller's frame at another place than the standard's: gcc's ms_abi, of which nothing else is said.
    private func contradicts(_ parameter: SourceParameter, _ expected: CallingStandard.Place) -> Bool {
        guard case .stack(let offset?, isList: false) = parameter.location, offset >= 0 else { return false }
        switch expected {
        case .one(.stack(let word)), .memory(let word): return offset != word * 8
        case .one, .pair, .registers: return true
        case .nothing, .unknown: return false
        }
    }

    /// DWARF numbers registers as psABI figure 3.36 and the ABI of DWARF for aarch64 say.
    private func source(ofRegister number: Int) -> ArgumentSource? {
        if isArm {
            return number < 8 ? .register(number) : (64..<72).contains(number) ? .vector(number - 64) : nil
        }
        if (17..<25).contains(number) { return .vector(number - 17) }
        return [5, 4, 1, 2, 8, 9].firstIndex(of: number).map { .register($0) }
    }
}

extension [EntryPiece] {
    fileprivate var areTwoWords: Bool { map(\.offset) == [0, 8] && allSatisfy { $0.byteCount == 8 } }
}
