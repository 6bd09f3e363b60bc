import Testing

import TraceAnalysis

struct ThreadPatternTests {
    @Test(arguments: [
        ("main", 7, true), ("main", 8, false), ("8", 8, true), ("8", 7, false), ("pool-[1]", 8, true), ("pool*", 8, true),
        ("pool", 8, false),
    ])
    func threadsAreNamedByIdNameOrGlob(text: String, tid: UInt32, matches: Bool) {
        #expect(ThreadPattern(text).matches(tid: tid, pid: 7, name: "pool-[1]") == matches)
    }

    @Test func theMainThreadIsNoThreadWithThatName() {
        #expect(!ThreadPattern("main").matches(tid: 8, pid: 7, name: "main"))
        #expect(!ThreadPattern("main").matches(tid: nil, pid: 7, name: "main"))
    }
}
