// The form of a JSON value, from which its JSON Schema (draft 2020-12) follows.

package indirect enum JSONForm: Sendable {
    /// A whole number that is not negative.
    case unsigned
    /// A whole number.
    case signed
    case number
    case string
    case flag
    /// One of these texts.
    case choice([String])
    case array(JSONForm)
    case object([JSONMember])
    /// This, or null where it is unknown or does not apply.
    case nullable(JSONForm)
    /// A value of any type.
    case any
    /// An object with any members.
    case values
    /// Another output's schema, in a file of this name.
    case file(String)
}

/// A member of an object.
package struct JSONMember: Sendable {
    package var key: String
    /// What it means, for readers of the schema; empty where the key says it.
    package var meaning: String
    package var form: JSONForm
    /// True if an object may lack it.
    package var isOptional: Bool
}

extension JSONForm {
    /// Returns the schema of a whole output.
    package func schema(title: String) -> JSON {
        .object(
            [("$schema", .string("https://json-schema.org/draft/2020-12/schema")), ("title", .string(title))] + keywords(isNullable: false))
    }

    private func schema(_ meaning: String) -> JSON {
        .object((meaning.isEmpty ? [] : [("description", .string(meaning))]) + keywords(isNullable: false))
    }

    private func keywords(isNullable: Bool) -> [(String, JSON)] {
        func type(_ name: String) -> (String, JSON) {
            ("type", isNullable ? .array([.string(name), .string("null")]) : .string(name))
        }
        switch self {
        case .unsigned: return [type("integer"), ("minimum", .unsigned(0))]
        case .signed: return [type("integer")]
        case .number: return [type("number")]
        case .string: return [type("string")]
        case .flag: return [type("boolean")]
        case .choice(let texts): return [("enum", .array(texts.map { .string($0) } + (isNullable ? [.null] : [])))]
        case .array(let element): return [type("array"), ("items", element.schema(""))]
        case .object(let members):
            return [
                type("object"), ("properties", .object(members.map { ($0.key, $0.form.schema($0.meaning)) })),
                ("required", .array(members.filter { !$0.isOptional }.map { .string($0.key) })), ("additionalProperties", .bool(false)),
            ]
        case .any: return []
        case .values: return [type("object")]
        case .nullable(let form): return form.keywords(isNullable: true)
        case .file(let name): return [("$ref", .string(name))]
        }
    }
}

/// A value that JSON outputs have.
package protocol JSONValue {
    static var form: JSONForm { get }
    var json: JSON { get }
}

extension UInt64: JSONValue {
    package static var form: JSONForm { .unsigned }
    package var json: JSON { .unsigned(self) }
}
extension UInt32: JSONValue {
    package static var form: JSONForm { .unsigned }
    package var json: JSON { .unsigned(UInt64(self)) }
}
extension Int64: JSONValue {
    package static var form: JSONForm { .signed }
    package var json: JSON { .signed(self) }
}
extension Int32: JSONValue {
    package static var form: JSONForm { .signed }
    package var json: JSON { .signed(Int64(self)) }
}
/// A number of things: never negative.
extension Int: JSONValue {
    package static var form: JSONForm { .unsigned }
    package var json: JSON { .unsigned(UInt64(clamping: self)) }
}
extension Double: JSONValue {
    package static var form: JSONForm { .number }
    package var json: JSON { .number(self) }
}
extension Bool: JSONValue {
    package static var form: JSONForm { .flag }
    package var json: JSON { .bool(self) }
}
extension String: JSONValue {
    package static var form: JSONForm { .string }
    package var json: JSON { .string(self) }
}
extension Nanoseconds: JSONValue {
    package static var form: JSONForm { .unsigned }
    package var json: JSON { .unsigned(count) }
}
extension Optional: JSONValue where Wrapped: JSONValue {
    package static var form: JSONForm { .nullable(Wrapped.form) }
    package var json: JSON { if let self { self.json } else { .null } } // a key path here would be made anew for each value
}
extension Array: JSONValue where Element: JSONValue {
    package static var form: JSONForm { .array(Element.form) }
    package var json: JSON { .array(map { $0.json }) }
}

/// An enumeration whose cases are written by their names.
package protocol JSONChoice: JSONValue, CaseIterable, RawRepresentable<String> {}

extension JSONChoice {
    package static var form: JSONForm { .choice(allCases.map(\.rawValue)) }
    package var json: JSON { .string(rawValue) }
}

extension JSONMember {
    /// A member that an object may lack.
    package init(optional key: String, _ form: JSONForm) { self.init(key: key, meaning: "", form: form, isOptional: true) }
}
