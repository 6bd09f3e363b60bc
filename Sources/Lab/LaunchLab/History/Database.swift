// SQLite, as far as the history needs it: statements with values, rows by the names of their columns, transactions.
import CSQLite

struct DatabaseProblem: Error, CustomStringConvertible {
    let description: String
}

package enum DatabaseValue: Equatable {
    case null, integer(Int64), real(Double), text(String)
}

package struct DatabaseRow {
    fileprivate var values: [String: DatabaseValue] = [:]

    func integer(_ column: String) throws -> Int64 {
        guard case .integer(let value) = try self[column] else { throw DatabaseProblem(description: "\(column) is not an integer") }
        return value
    }
    func real(_ column: String) throws -> Double {
        switch try self[column] {
        case .real(let value): return value
        case .integer(let value): return Double(value)
        case .null, .text: throw DatabaseProblem(description: "\(column) is not a number")
        }
    }
    package func text(_ column: String) throws -> String {
        guard case .text(let value) = try self[column] else { throw DatabaseProblem(description: "\(column) is not a text") }
        return value
    }
    /// nil: the column is null, or there is none of that name.
    func optionalText(_ column: String) throws -> String? { values[column] == nil || values[column] == .null ? nil : try text(column) }
    package func isNull(_ column: String) throws -> Bool { try self[column] == .null }

    private subscript(column: String) -> DatabaseValue {
        get throws {
            guard let value = values[column] else { throw DatabaseProblem(description: "there is no column \(column)") }
            return value
        }
    }
}

/// A connection to a database file, which is made when it is not there. Of one thread.
package struct Database: ~Copyable {
    private let connection: OpaquePointer

    /// - Parameter patience: seconds to wait for other processes that write.
    package init(path: String, patience: Int32) throws {
        var opened: OpaquePointer?
        let status = sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nil)
        guard status == SQLITE_OK, let opened else {
            sqlite3_close(opened) // there is one of a file that cannot be opened, too
            throw DatabaseProblem(description: String(cString: sqlite3_errstr(status)))
        }
        connection = opened
        sqlite3_busy_timeout(connection, patience * 1000)
    }

    deinit { sqlite3_close(connection) }

    /// One statement. - Parameter values: of its question marks.
    @discardableResult
    package func run(_ statement: String, _ values: [DatabaseValue] = []) throws -> [DatabaseRow] {
        var prepared: OpaquePointer?
        try check(sqlite3_prepare_v2(connection, statement, -1, &prepared, nil))
        defer { sqlite3_finalize(prepared) }
        for (number, value) in zip(Int32(1)..., values) {
            switch value {
            case .null: try check(sqlite3_bind_null(prepared, number))
            case .integer(let value): try check(sqlite3_bind_int64(prepared, number, value))
            case .real(let value): try check(sqlite3_bind_double(prepared, number, value))
            case .text(let value): try check(sqlite3_bind_text(prepared, number, value, -1, sqlite_copies))
            }
        }
        var rows: [DatabaseRow] = []
        while true {
            let status = sqlite3_step(prepared)
            if status == SQLITE_DONE { return rows }
            guard status == SQLITE_ROW else { throw problem }
            var row = DatabaseRow()
            for column in 0..<sqlite3_column_count(prepared) {
                row.values[String(cString: sqlite3_column_name(prepared, column))] =
                    switch sqlite3_column_type(prepared, column) {
                    case SQLITE_NULL: .null
                    case SQLITE_INTEGER: .integer(sqlite3_column_int64(prepared, column))
                    case SQLITE_FLOAT: .real(sqlite3_column_double(prepared, column))
                    default: .text(sqlite3_column_text(prepared, column).map { String(cString: $0) } ?? "") // no pointer: an empty BLOB
                    }
            }
            rows.append(row)
        }
    }

    /// - Returns: the number of the new row.
    @discardableResult
    func insert(into table: String, _ row: KeyValuePairs<String, DatabaseValue>) throws -> Int64 {
        let columns = row.map { "\"\($0.key)\"" }.joined(separator: ", ")
        let marks = row.map { _ in "?" }.joined(separator: ", ")
        try run("INSERT INTO \"\(table)\" (\(columns)) VALUES (\(marks))", row.map(\.value))
        return sqlite3_last_insert_rowid(connection)
    }

    /// For statements that read: all of them see the same state.
    func reading<Result>(_ body: () throws -> Result) throws -> Result { try transaction("BEGIN", body) }

    /// For statements that write: all of them or none.
    func writing<Result>(_ body: () throws -> Result) throws -> Result { try transaction("BEGIN IMMEDIATE", body) }

    private func transaction<Result>(_ begin: String, _ body: () throws -> Result) throws -> Result {
        try run(begin)
        do {
            let result = try body()
            try run("COMMIT")
            return result
        } catch {
            _ = try? run("ROLLBACK") // SQLite has done so itself when the disk was full
            throw error
        }
    }

    private var problem: DatabaseProblem { DatabaseProblem(description: String(cString: sqlite3_errmsg(connection))) }
    private func check(_ status: Int32) throws {
        guard status == SQLITE_OK else { throw problem }
    }
}
