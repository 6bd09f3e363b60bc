import Testing
import TracerAPI

/// Without the agent; Tests/EndToEnd/subjects/spans.c has it.
@Suite struct TracerAPITests {
    private struct Wrong: Error, Equatable {}

    @Test func aSpanReturnsWhatItsBodyReturns() {
        #expect(withSpan("outer") { withSpan("inner") { 41 } + 1 } == 42)
    }
    @Test func aSpanThrowsWhatItsBodyThrows() {
        #expect(throws: Wrong()) { () throws(Wrong) in try withSpan("fails") { () throws(Wrong) -> Int in throw Wrong() } }
    }
    @Test func withoutTheAgentNothingHappens() {
        Tracer.start()
        Tracer.mark("point")
        Tracer.begin("never ended")
        Tracer.end("never begun")
        Tracer.ready()
        Tracer.flush()
        Tracer.stop()
    }
}
