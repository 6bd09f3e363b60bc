// The place of a value when its function is called, and how it is read from there: what the tool knows of layouts becomes an operation of the agent
// (arguments_layout.h).
import CTraceLayout
import ELF

package struct ValuePlace: Equatable, Sendable {
    private enum Reading: Equatable {
        case value
        /// A number of bytes in memory.
        case bytes(Int)
        case counted(Length)
        case libcxx
        /// nil: both words are in memory.
        case swift(ArgumentSource?)
        /// In several places; the source is the first.
        case words([Word])
    }
    /// The lowest bytes of a register or a word of the stack.
    struct Word: Equatable {
        var source: ArgumentSource
        var bytes: Int
    }
    private enum Length: Equatable {
        case source(ArgumentSource, bytes: Int, isSigned: Bool)
        /// In the object that has the pointer, at this offset.
        case beside(Int)
    }

    private(set) var source: ArgumentSource
    /// Offsets: each but the last is that of a pointer which is followed; empty: the source is the value.
    private var steps: [Int] = []
    private var reading = Reading.value

    init(_ source: ArgumentSource) { self.source = source }

    /// A string that the source is the address of.
    init(behind source: ArgumentSource, _ text: SourceText) {
        self.source = source
        switch text {
        case .counted(let pointer, let length):
            steps = [pointer]
            reading = .counted(.beside(length))
        case .libcxx:
            steps = [0]
            reading = .libcxx
        case .swift:
            steps = [0]
            reading = .swift(nil)
        }
    }
    /// A string whose words these are; nil: one of this form has others.
    init?(_ first: ArgumentSource, _ second: ArgumentSource, _ text: SourceText) {
        switch text {
        case .counted(pointer: 0, length: 8): (source, reading) = (first, .counted(.source(second, bytes: 8, isSigned: false)))
        case .counted(pointer: 8, length: 0): (source, reading) = (second, .counted(.source(first, bytes: 8, isSigned: false)))
        case .swift: (source, reading) = (first, .swift(second))
        case .counted, .libcxx: return nil
        }
    }
    /// A string that a function returns in memory that its caller has made space for; nil: it is not known where. The address is a result itself on
    /// x86-64 (psABI 3.2.3), and not on aarch64.
    init?(returnedInMemory text: SourceText, on machine: UInt16) {
        guard machine == 62 else { return nil }
        self.init(behind: .result(0), text)
    }
    init(swift first: ArgumentSource, _ second: ArgumentSource) { (source, reading) = (first, .swift(second)) }

    /// A structure in registers or words of the stack: so many bytes of each, one after the other.
    init(words: [ArgumentSource], bytes: Int) { self.init(words: words.map { Word(source: $0, bytes: bytes) }) }
    /// The same, with a number of bytes for each.
    init(words: [Word]) { (source, reading) = (words[0].source, .words(words)) }

    /// Bytes that the source is the address of.
    init(behind source: ArgumentSource, bytes: Int) { (self.source, steps, reading) = (source, [0], .bytes(bytes)) }

    /// A member of what the source points to; nil: the agent does not read it from there.
    /// - Parameter type: that it is shown as
    init?(_ source: ArgumentSource, _ member: SourceMember, as type: ArgumentType) {
        self.source = source
        steps = member.steps
        let last = steps.count - 1
        switch (type, member.type.text, member.type.kind) {
        case (.string, _, .pointer): break
        case (.text, let text?, .pointer):
            let behind = ValuePlace(behind: source, text)
            steps += behind.steps
            reading = behind.reading
        case (.text, .counted(let pointer, let length)?, .aggregate):
            reading = .counted(.beside(steps[last] + length))
            steps[last] += pointer
        case (.text, .libcxx?, .aggregate): reading = .libcxx
        case (.string, _, _), (.text, _, _), (.opaque, _, _), (.secret, _, _), (.unavailable, _, _), (.strings, _, _), (.time, _, _),
            (.socketAddress, _, _), (.structure, _, _), (.array, _, _), (.characters, _, _):
            return nil
        default:
            guard type.byteCount == member.type.byteCount else { return nil }
            reading = .bytes(type.byteCount)
        }
    }
    /// Bytes that a member points to, and another one beside it counts; nil: they are not in one structure.
    init?(_ source: ArgumentSource, _ member: SourceMember, countedBy count: SourceMember) {
        guard case .pointer = member.type.kind, count.type.kind == .integer(isSigned: false), count.type.byteCount == 8,
            member.steps.dropLast() == count.steps.dropLast(), let at = member.steps.last, let other = count.steps.last,
            at != other, abs(at - other) % 8 == 0, abs(at - other) < Int(ARGUMENTS_WINDOW_BYTES)
        else { return nil }
        (self.source, steps, reading) = (source, member.steps, .counted(.beside(other)))
    }

    /// Bytes at an address; nil: the count has no number.
    init?(_ source: ArgumentSource, countedBy count: ArgumentSource, _ type: ArgumentType) {
        guard type.isCount else { return nil }
        var isSigned = false
        switch type {
        case .integer(_, let own, _), .named(_, _, let own): isSigned = own
        default: break
        }
        (self.source, reading) = (source, .counted(.source(count, bytes: type.byteCount, isSigned: isSigned)))
    }

    /// One, or several of what is in several places; none: the agent does not read what is there.
    func operations(_ type: ArgumentType) -> [arguments_operation] {
        guard case .words(let words) = reading else { return operation(type).map { [$0] } ?? [] }
        let all = words.compactMap { word -> arguments_operation? in
            guard let number = word.source.number else { return nil }
            var operation = arguments_operation()
            operation.kind = UInt8(ARGUMENTS_VALUE)
            operation.source = number
            operation.bytes = UInt8(word.bytes)
            return operation
        }
        return all.count == words.count ? all : []
    }
    /// nil: the agent does not read what is there.
    private func operation(_ type: ArgumentType) -> arguments_operation? {
        guard let number = source.number, steps.count <= Int(ARGUMENTS_MOST_STEPS), steps.allSatisfy({ UInt16(exactly: $0) != nil }) else {
            return nil
        }
        var operation = arguments_operation()
        operation.source = number
        operation.bytes = UInt8(min(type.byteCount, 8)) // in memory they are counted apart
        operation.step_count = UInt8(steps.count)
        withUnsafeMutableBytes(of: &operation.steps) { offsets in
            for (n, step) in steps.enumerated() { offsets.storeBytes(of: UInt16(step), toByteOffset: n * 2, as: UInt16.self) }
        }
        switch reading {
        case .value where type == .text(.filled):
            operation.kind = UInt8(ARGUMENTS_VALUE)
            operation.length = UInt8(ARGUMENTS_LENGTH_RESULT)
        case .value: operation.kind = UInt8(type == .string ? ARGUMENTS_STRING : type == .strings ? ARGUMENTS_STRINGS : ARGUMENTS_VALUE)
        case .bytes(let count):
            operation.kind = UInt8(ARGUMENTS_BYTES)
            operation.length_offset = UInt16(count)
        case .words: return nil
        case .libcxx: operation.kind = UInt8(ARGUMENTS_LIBCXX)
        case .swift(let second):
            operation.kind = UInt8(ARGUMENTS_SWIFT)
            guard let second else { break }
            guard let number = second.number else { return nil }
            operation.length_source = number
        case .counted(.source(let count, let bytes, let isSigned)):
            operation.kind = UInt8(ARGUMENTS_COUNTED)
            guard let number = count.number else { return nil }
            operation.length_source = number
            operation.length_bytes = UInt8(bytes)
            operation.length = UInt8(isSigned ? ARGUMENTS_LENGTH_SIGNED : ARGUMENTS_LENGTH_UNSIGNED)
        case .counted(.beside(let offset)):
            operation.kind = UInt8(ARGUMENTS_COUNTED)
            guard let offset = UInt16(exactly: offset) else { return nil }
            operation.length = UInt8(ARGUMENTS_LENGTH_BESIDE)
            operation.length_offset = offset
        }
        return operation
    }
}
