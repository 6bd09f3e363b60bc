import CUnwindingTests
import Glibc
import Recorder
import Testing
import Unwinding

@Suite struct WaitStackTests {
    @Test func aLineOfProcIsReadAsTheKernelWritesIt() {
        let call = WaitStack.Place("230 0x0 0x0 0x7ffe726757b0 0x7ffe726757f0 0x0 0x0 0x7ffe72675798 0x7f67bf0c9503")
        #expect(call?.stackPointer == 0x7ffe_7267_5798 && call?.programCounter == 0x7f67_bf0c_9503 && call?.isInSystemCall == true)
        let page = WaitStack.Place("-1 0x7ffe72675798 0x7f67bf0c9503")
        #expect(page?.stackPointer == 0x7ffe_7267_5798 && page?.programCounter == 0x7f67_bf0c_9503 && page?.isInSystemCall == false)
        for line in [
            "running", "", "230", "-1", "-1 0x0 0x0", "230 0x7ffe72675798 0x7f67bf0c9503", "-1 7ffe72675798 7f67bf0c9503", "x 0x1 0x2",
            "0 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x10000000000000000",
        ] { #expect(WaitStack.Place(line) == nil, "\(line)") }
    }

    @Test func aWaitingThreadHasTheStackThatItNoted() throws {
        var waiter = waiting()
        try #require(waiting_begin(&waiter) != 0)
        let known = withUnsafeBytes(of: waiter.frames) { Array($0.bindMemory(to: UInt64.self)[1..<Int(waiter.frame_count)]) }
        for hasSamples in [false, true] {
            let unwinder = SampleUnwinder(hasSamples: hasSamples)
            // It may not have begun to read.
            var found: WaitStack?
            while found == nil { found = WaitStack(pid: getpid(), tid: waiter.tid, unwinder) }
            let stack = try #require(found)
            #expect(stack.isWhole && stack.tid == waiter.tid)
            // The first of all was in the function that reads, before it did.
            #expect(known.count > 7 && Array(stack.frames.suffix(known.count)) == known, "\(stack.frames), not \(known)")
        }
        waiting_end(&waiter)
        #expect(WaitStack(pid: getpid(), tid: waiter.tid, SampleUnwinder(hasSamples: false)) == nil) // it is gone
    }
}
