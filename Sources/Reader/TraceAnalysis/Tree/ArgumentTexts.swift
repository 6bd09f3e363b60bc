// Texts of calls' arguments, for trees that distinguish calls of a function by them.
import Synchronization
import TraceFormat

/// What a tree distinguishes calls by.
protocol PathDetail {
    static var hasArguments: Bool { get }
}
enum FunctionDetail: PathDetail { static var hasArguments: Bool { false } }
/// Each text of arguments is a path of its own below the same caller.
enum ArgumentDetail: PathDetail { static var hasArguments: Bool { true } }

/// Numbers the different arguments of each function, as ids that no function of the trace has.
final class ArgumentTexts: Sendable {
    /// Different texts of one function; calls with others share one more, `others`.
    static let mostTexts = 1 << 14
    static let others = "other arguments"
    /// Ids of functions have EVENT_FUNCTION_BITS, and those of `LoadedFiles` begin above these.
    private static let firstID: UInt32 = 1 << 30

    private struct Key: Hashable {
        /// In the function table.
        var row: UInt32
        var text: String
    }
    /// Many calls of a function pass the same.
    private struct Recorded: Hashable {
        var row: UInt32
        var program: UInt32
        var bytes: [UInt8]
    }
    private struct State {
        var entries: [Key] = []
        var ids: [Key: UInt32] = [:]
        var textCounts: [UInt32: Int] = [:]
        var recorded: [Recorded: UInt32] = [:]
    }
    private let metadata: Metadata
    private let mostTexts: Int
    private let state = Mutex(State())
    private static let mostRecorded = 1 << 16

    init(_ metadata: Metadata, mostTexts: Int = ArgumentTexts.mostTexts) {
        self.metadata = metadata
        self.mostTexts = mostTexts
    }

    /// The id by which calls of a row with these arguments are counted; nil: what they are is not in the file.
    func id(_ row: UInt32, _ values: RecordedValues) -> UInt32? {
        let recorded = Recorded(row: row, program: values.program, bytes: values.bytes)
        return state.withLock { state in
            if let id = state.recorded[recorded] { return id }
            guard let prototype = metadata.prototype(values) else { return nil }
            var key = Key(row: row, text: prototype.summedText(values))
            if state.ids[key] == nil, state.textCounts[row, default: 0] >= mostTexts { key.text = Self.others }
            var id = state.ids[key]
            if id == nil {
                id = Self.firstID | UInt32(state.entries.count)
                state.entries.append(key)
                state.ids[key] = id
                state.textCounts[row, default: 0] += 1
            }
            if state.recorded.count < Self.mostRecorded { state.recorded[recorded] = id }
            return id
        }
    }

    /// The function's row and the text of an id; nil: it is not such an id.
    func entry(of id: UInt32) -> (row: UInt32, text: String)? {
        guard id >= Self.firstID else { return nil }
        return state.withLock { state in
            let index = Int(id - Self.firstID)
            return index < state.entries.count ? (state.entries[index].row, state.entries[index].text) : nil
        }
    }
}

extension RecordedPrototype {
    /// Arguments as between the parentheses of a call, but for addresses: those differ from call to call and from process to process, and
    /// a path of its own for each would say nothing. NULL stays.
    func summedText(_ values: RecordedValues) -> String {
        arguments(values).map { name, value in
            if case .integer? = prototype.parameters.first(where: { $0.name == name })?.type { return value.text }
            return value.withoutAddresses.text
        }.joined(separator: ", ")
    }
}

extension ArgumentValue {
    fileprivate var withoutAddresses: ArgumentValue {
        switch self {
        case .address(let address): address == 0 ? self : .name("…")
        case .unreadable, .beyond: .name("?")
        case .list(let values, let ending): .list(values.map(\.withoutAddresses), ending)
        case .structure(let fields): .structure(fields.map { ArgumentField(name: $0.name, value: $0.value.withoutAddresses) })
        default: self
        }
    }
}
