import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// Open calls that no chunk stores: of a stack deeper than a chunk's list, when a ring has overwritten where they began.
@Suite struct HiddenCallTests {
    private func ring(frames: Int, _ steps: [Step]) -> TraceBuilder {
        demo { builder, thread in
            builder.header.mode = UInt32(TRACE_MODE_RING)
            builder.limit(thread, frames: frames)
            builder.steps(thread, steps)
        }
    }

    @Test func theReturnOfACallThatNobodyKnowsEndsNoOther() throws {
        // main calls itself; its calls but the innermost are hidden, and their returns look like its own.
        let loaded = try Loaded(
            ring(
                frames: 1,
                [
                    .enter(2, 0), .enter(1, 10), .enter(1, 20), .enter(1, 30), .lose, .call(3, 50, 60), .exit(1, 70),
                    .enter(1, 80), .exit(1, 90), .exit(1, 100), .exit(1, 110), .exit(2, 120),
                ]
            ).bytes())
        #expect(loaded.rows == ["b 1 10 10", "main 2 50 20"]) // one from 30, of which only what follows 50 is seen, and one from 80
        #expect(loaded.summary.orphans == 3)
        #expect(
            try loaded.lines() == ["missing 1", "main 40 inherited", " b 10", "main 10", "main orphan", "main orphan", "a orphan"])
    }

    @Test func aCallIsKnownFromTheFirstChunkThatStoresItOn() throws {
        let loaded = try Loaded(
            ring(
                frames: 1,
                [
                    .enter(1, 0), .enter(2, 10), .enter(3, 20), .lose, .call(4, 50, 60), .exit(3, 70), .split,
                    .call(4, 80, 90), .exit(2, 100), .split, .call(4, 110, 120), .exit(1, 130),
                ]
            ).bytes())
        // Each of its own from when it is the innermost of those that are known; b from 50, a from 80, main from 110.
        #expect(loaded.rows == ["a 1 90 10", "b 1 50 10", "c 3 30 30", "main 1 130 10"])
        #expect(loaded.summary.orphans == 0)
        #expect(
            try loaded.lines().filter { !$0.hasPrefix(" ") } == ["missing 1", "b 50 inherited", "a 90 inherited", "main 130 inherited"])
    }

    @Test func anUnwindingPassesHiddenCalls() throws {
        let loaded = try Loaded(
            ring(
                frames: 1,
                [
                    .enter(1, 0), .enter(2, 10), .enter(3, 20), .enter(4, 30), .lose, .call(4, 50, 60), .unwind(3, 70), .split,
                    .call(3, 80, 90), .exit(1, 100),
                ]
            ).bytes())
        #expect(loaded.rows == ["b 1 10 10", "c 2 40 20", "main 1 100 10"])
        #expect(loaded.summary.unwound == 1)
    }

    /// Whatever a ring has kept: no time of its own is below zero, and all together are no longer than what it has kept.
    @Test(arguments: 1...40 as ClosedRange<UInt64>, [1, 3, .max])
    func whatIsLeftOfARingIsNoLongerThanItIs(seed: UInt64, frames: Int) throws {
        var builder = program(seed: seed, events: 1500, wordsPerChunk: 20, framesPerChunk: frames, hasResumes: false)
        builder.header.mode = UInt32(TRACE_MODE_RING)
        var bytes = builder.bytes()
        let chunks = bytes.count / 4096 - 2, lost = 1 + Int(seed) % (chunks - 2)
        for offset in 4096 * 2..<4096 * (2 + lost) { bytes[offset] = 0 }
        if seed % 4 == 0 { for offset in 4096 * (4 + lost)..<min(4096 * (5 + lost), bytes.count) { bytes[offset] = 0 } } // and a gap
        let loaded = try Loaded(bytes, workers: 2), summary = loaded.summary
        let opened = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 4096 * (2 + lost) + 32, as: UInt64.self) }
        let own = summary.functions.map(\.selfTime)
        #expect(own.allSatisfy { $0 >= 0 })
        #expect(own.reduce(0, +) <= Int64(summary.end.raw - opened))
        let tree = CallTree(loaded.trace)
        for function in summary.functions {
            let nodes = tree.nodes.filter { $0.function >= 0 && tree.functions[$0.function].name == function.name }
            #expect(nodes.reduce(0) { $0 + $1.selfTime } == function.selfTime)
            #expect(nodes.reduce(0) { $0 + $1.calls } == function.calls)
        }
    }
}
