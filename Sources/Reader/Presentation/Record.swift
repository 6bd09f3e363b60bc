// Rows and objects that declare once what they show: their JSON, its schema, CSV and the table all follow from it.

/// A value with named members, each declared once: key, meaning, value, and how a table shows it.
package protocol Record: JSONValue {
    static var members: [Member<Self>] { get }
}

extension Record {
    package static var form: JSONForm { .object(members.compactMap(\.described)) }
    package var json: JSON {
        let members = Self.members
        var values: [(String, JSON)] = []
        values.reserveCapacity(members.count)
        for member in members {
            if let value = member.json?(self) { values.append((member.key, value)) }
        }
        return .object(values)
    }

    /// Puts the members in a list; for `static let members`.
    package static func declare(@MemberList<Self> _ members: () -> [Member<Self>]) -> [Member<Self>] { members() }

    /// Columns of tables, by the members' keys.
    package static func columns(_ keys: [String]) -> [Column<Self>] {
        keys.map { key in
            guard let column = members.first(where: { $0.key == key })?.column else {
                preconditionFailure("\(key) is no column of \(Self.self)")
            }
            return column
        }
    }
}

/// One member of a record. A class, since a list of them is gone through for each row.
package final class Member<Row>: Sendable {
    package let key: String
    fileprivate let described: JSONMember?
    /// nil: it is shown in tables alone. Returns nil where the object lacks it.
    fileprivate let json: (@Sendable (Row) -> JSON?)?
    let column: Column<Row>?

    private init(key: String, _ described: JSONMember?, _ json: (@Sendable (Row) -> JSON?)?, _ column: Column<Row>? = nil) {
        self.key = key
        self.described = described
        self.json = json
        self.column = column
    }

    /// - Parameters:
    ///   - key: in JSON and CSV
    ///   - meaning: for the schema
    package convenience init<Value: JSONValue>(_ key: String, _ meaning: String, _ value: @escaping @Sendable (Row) -> Value) {
        self.init(key: key, JSONMember(key: key, meaning: meaning, form: Value.form, isOptional: false)) { value($0).json }
    }

    /// A member whose key says what it means.
    package convenience init<Value: JSONValue>(_ key: String, _ value: @escaping @Sendable (Row) -> Value) { self.init(key, "", value) }

    /// A member whose form its values' type does not say.
    package convenience init(_ key: String, _ meaning: String, _ form: JSONForm, _ value: @escaping @Sendable (Row) -> JSON) {
        self.init(key: key, JSONMember(key: key, meaning: meaning, form: form, isOptional: false)) { value($0) }
    }

    /// A member that an object lacks where `value` is nil.
    package static func optional<Value: JSONValue>(
        _ key: String, _ meaning: String = "", _ value: @escaping @Sendable (Row) -> Value?
    ) -> Member {
        Member(key: key, JSONMember(key: key, meaning: meaning, form: Value.form, isOptional: true)) { value($0)?.json }
    }

    /// A column that only tables have.
    package static func shown(
        _ key: String, _ title: String, _ kind: ColumnKind = .figure, _ cell: @escaping @Sendable (Row) -> String
    ) -> Member {
        Member(key: key, nil, nil, Column(title: title, kind: kind, cell: cell))
    }

    /// The same member, which tables show, too.
    package func column(_ title: String, _ kind: ColumnKind = .figure, _ cell: @escaping @Sendable (Row) -> String) -> Member {
        Member(key: key, described, json, Column(title: title, kind: kind, cell: cell))
    }
}

package enum ColumnKind: Sendable {
    /// Right-aligned.
    case figure
    /// Left-aligned, shortened at its end.
    case text
    /// A function's name: left-aligned, shortened in its middle.
    case name
}

package struct Column<Row>: Sendable {
    package var title: String
    package var kind: ColumnKind
    package var cell: @Sendable (Row) -> String
}

/// Members one after the other, and lists of members that several records share.
@resultBuilder package enum MemberList<Row> {
    package static func buildExpression(_ member: Member<Row>) -> [Member<Row>] { [member] }
    package static func buildExpression(_ members: [Member<Row>]) -> [Member<Row>] { members }
    package static func buildBlock(_ parts: [Member<Row>]...) -> [Member<Row>] { parts.flatMap { $0 } }
}

extension TextTable {
    package init<Row>(_ rows: [Row], _ columns: [Column<Row>]) {
        self.init(
            columns.map(\.title), leftAligned: Set(columns.indices.filter { columns[$0].kind != .figure }),
            names: Set(columns.indices.filter { columns[$0].kind == .name }))
        for row in rows { add(columns.map { $0.cell(row) }) }
    }
}

extension Column {
    /// A column that is no member's.
    package init(_ title: String, _ kind: ColumnKind = .figure, _ cell: @escaping @Sendable (Row) -> String) {
        self.init(title: title, kind: kind, cell: cell)
    }
}
