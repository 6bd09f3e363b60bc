// What another tool asks of a recorder, and how it is answered.
import Glibc
import Recorder
import Testing

@Suite struct ExcerptQuestionTests {
    private let question = ExcerptQuestion(namespace: 4_026_531_836, pid: 4711, moment: 12_345_678_901_234, since: .max)

    private func withConnection(_ body: (_ asker: Int32, _ other: Int32) throws -> Void) throws {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends where end >= 0 { close(end) } }
        try body(ends[0], ends[1])
    }
    private func word(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }

    @Test func aQuestionIsReadAsItWasAsked() {
        #expect(ExcerptQuestion(question.bytes) == question)
        #expect(question.bytes.count == ExcerptQuestion.byteCount)
    }

    @Test func whatIsNoQuestionIsNotTakenForOne() {
        #expect(ExcerptQuestion([]) == nil)
        #expect(ExcerptQuestion(Array(question.bytes.dropLast())) == nil)
        #expect(ExcerptQuestion(question.bytes + [0]) == nil)
        for (place, byte) in [(0, 0x00), (20, 0x01)] as [(Int, UInt8)] { // another kind; a process id of more than 32 bits
            var bytes = question.bytes
            bytes[place] = byte
            #expect(ExcerptQuestion(bytes) == nil)
        }
    }

    @Test func anAnswerHasAllItsChunks() throws {
        try withConnection { asker, other in
            ExcerptQuestion.answer([[1, 2, 3], [], [4]], to: other)
            #expect(question.ask(asker) == [[1, 2, 3], [4]])
            #expect(ExcerptQuestion.receive(ExcerptQuestion.byteCount, from: other) == question.bytes)
        }
    }

    @Test func anAnswerMayBeEmpty() throws {
        try withConnection { asker, other in
            ExcerptQuestion.answer([], to: other)
            #expect(question.ask(asker) == [])
        }
    }

    /// The end is missing, or a part of a chunk; or it says that it is larger than all may be.
    @Test func anAnswerThatIsCutIsNone() throws {
        for bytes in [[], word(3) + [1, 2, 3], word(3) + [1, 2], [1, 0, 0], word(1 << 31) + [1, 2, 3], word(.max)] {
            try withConnection { asker, other in
                try #require(bytes.isEmpty || send(other, bytes, bytes.count, 0) == bytes.count)
                shutdown(other, Int32(SHUT_WR))
                #expect(question.ask(asker) == nil)
            }
        }
    }
}
