import EveryReading
import Foundation
import Testing

/// Runs the inputs that fuzzing has found, and changed ones, with the existing build. scripts/fuzz finds more, with an instrumented
/// build of its own that reports what an input reaches.
@Suite struct MutatedTraceTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// File with the current input: it is left there if the input ends the process.
    private static let input = root.appending(path: ".build/mutated.trace")

    private func corpus() throws -> [[UInt8]] {
        let folder = Self.root.appending(path: "Fuzz/corpus/reader")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        return try names.map { Array(try Data(contentsOf: folder.appending(path: $0))) }
    }

    private func read(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: Self.input)
        readAsEveryCommand(path: Self.input.path, number: bytes.reduce(0) { $0 &+ Int($1) })
    }

    @Test func changedInputsOfTheCorpusEndInNoCrash() throws {
        let corpus = try corpus()
        try #require(!corpus.isEmpty)
        for bytes in corpus { try read(bytes) }
        var mutation = Mutation(seed: 1, corpus: corpus)
        for _ in 0..<1_500 { try read(mutation.next()) }
        try FileManager.default.removeItem(at: Self.input)
    }

    @Test func aSeedGivesTheSameChanges() throws {
        let corpus = try corpus()
        var first = Mutation(seed: 7, corpus: corpus), second = Mutation(seed: 7, corpus: corpus)
        for _ in 0..<100 { #expect(first.next() == second.next()) }
    }
}
