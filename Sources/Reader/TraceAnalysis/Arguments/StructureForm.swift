// Structures that are passed by value. What is recorded of one is the words that it is passed in, whatever its members are: nobody has to take
// them apart while the program runs.
import CTraceLayout
import ELF

package struct StructureForm: Equatable, Sendable {
    package struct Field: Equatable, Sendable {
        package var name: String
        package var typeName: String
        package var type: ArgumentType
        /// In bytes.
        package var offset: Int
        /// The bits of a bit-field, counted from the lowest one of the byte at the offset.
        package var bits: Bits?
    }
    package struct Bits: Equatable, Sendable {
        package var shift: Int
        package var count: Int
    }
    package var fields: [Field]
    /// As recorded: those behind the last member of a word are whatever the register has there.
    package var byteCount: Int
    /// Its bytes lie in memory, where the parameter points to (AAPCS64 6.8.2, rule B.4): they are recorded as a string is.
    package var isBehind: Bool

    static let mostFields = 32, mostElements = 16, deepest = 4

    /// As a prototype has it: `{x: int @0, isLast: bool @4:3:1}[8]`, where @ is before the offset, and behind that the first bit and the number of bits.
    var text: String { (isBehind ? "*" : "") + members + "[\(byteCount)]" }
    private var members: String {
        let texts = fields.map { field in
            "\(field.name): \(field.nested?.members ?? field.typeName) @\(field.offset)"
                + (field.bits.map { ":\($0.shift):\($0.count)" } ?? "")
        }
        return "{" + texts.joined(separator: ", ") + "}"
    }

    /// Some member, or one of a member's, is so.
    func contains(_ isMeant: (Field) -> Bool) -> Bool { fields.contains { isMeant($0) || $0.nested?.contains(isMeant) == true } }

    /// The member that a path such as `origin.x` leads to.
    func field(_ path: Substring) -> Field? {
        for field in fields {
            if path == field.name { return field }
            if path.hasPrefix(field.name + "."), let found = field.nested?.field(path.dropFirst(field.name.count + 1)) { return found }
        }
        return nil
    }
}

extension StructureForm.Field {
    /// nil: it is no structure.
    fileprivate var nested: StructureForm? { if case .structure(let form) = type { form } else { nil } }
}

extension Prototype {
    /// The parameter of this name, or a member of one that is a structure: `p.x`.
    func named(_ name: String) -> (typeName: String, type: ArgumentType)? {
        if let own = parameters.first(where: { $0.name == name }) { return (own.typeName, own.type) }
        for parameter in parameters {
            guard case .structure(let form) = parameter.type, name.hasPrefix(parameter.name + ".") else { continue }
            if let field = form.field(name.dropFirst(parameter.name.count + 1)) { return (field.typeName, field.type) }
        }
        return nil
    }
}

extension [(name: String, value: ArgumentValue)] {
    /// The value of the argument of this name, or of a member of one that is a structure; nil: there is none, or it could not be read.
    package func value(_ name: String) -> ArgumentValue? {
        if let own = first(where: { $0.name == name }) { return own.value }
        for each in self where name.hasPrefix(each.name + ".") {
            if let found = each.value.member(name.dropFirst(each.name.count + 1)) { return found }
        }
        return nil
    }
}

extension ArgumentValue {
    fileprivate func member(_ path: Substring) -> ArgumentValue? {
        guard case .structure(let fields) = self else { return nil }
        for field in fields {
            if path == field.name { return field.value }
            if path.hasPrefix(field.name + "."), let found = field.value.member(path.dropFirst(field.name.count + 1)) { return found }
        }
        return nil
    }
}
