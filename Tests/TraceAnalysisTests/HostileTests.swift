import CTraceLayout
import Presentation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// Reads everything that every command would read. Must return, whatever the bytes are.
@discardableResult
private func readAll(_ file: TemporaryFile) -> Bool {
    guard let trace = try? TraceFile(path: file.path) else { return false }
    let run = RunSummary([trace], path: trace.path, workers: 2)
    _ = run.table(by: .total, top: 5, style: plain)
    _ = ReportOutput(run, nil).json.text()
    _ = run.info.text()
    let table = FunctionNames(trace.metadata)
    for thread in trace.threads {
        try? trace.replay(thread: thread.index, until: TraceEnd(trace), deepest: 0, limit: 0, window: 16, table) { _ in true }
    }
    try? trace.dump(table) { _ in }
    _ = WaitOutput(WaitReport([trace], workers: 2), limit: 0).json.text()
    _ = StallReport([trace], threads: ThreadPattern("*"), least: Nanoseconds(0), limit: 5, workers: 2).json.text()
    _ = FileOutput(FileReport([trace], workers: 2), order: .time, limit: 5) { _ in true }.json.text()
    _ = ThreadReport([trace], workers: 2).lines(width: nil, style: plain)
    return true
}

@Suite struct HostileTests {
    private static let small: TraceBuilder = {
        var builder = program(seed: 7, events: 60, wordsPerChunk: 25)
        builder.text(TRACE_TEXT_ARGUMENTS, bytes: Array("demo\0-v\0\0".utf8))
        builder.threadEnd(0, at: start + 5)
        builder.kernel(until: start + 10_000, period: 1000)
        builder.switches([(start + 10, 4711, TRACE_SWITCH_WAITS), (start + 500, 4711, TRACE_SWITCH_IN)])
        builder.task(TRACE_TASK_BEGAN, 4712, at: start + 20, by: 4711)
        builder.pageFault(4711, at: start + 501, "/usr/lib/a.so")
        builder.foundWaiting(4711, at: start + 300, systemCall: 0, kernelFunction: "pipe_read", object: "pipe:[1]")
        builder.samples([(start + 600, 4711, 0, [1, 2])])
        return builder
    }()

    @Test func anEmptyFileSaysSo() {
        let file = TemporaryFile([])
        #expect(throws: TraceError.empty(file.path)) { try TraceFile(path: file.path) }
        file.write([UInt8](repeating: 0, count: 8192))
        #expect(throws: TraceError.empty(file.path)) { try TraceFile(path: file.path) }
    }

    @Test func aFileOfSomethingElseSaysSo() {
        let file = TemporaryFile(Array("#!/bin/sh\necho not a trace at all\n".utf8))
        #expect(throws: TraceError.notATrace(file.path)) { try TraceFile(path: file.path) }
    }

    @Test func aNewerVersionSaysWhich() {
        var builder = Self.small
        builder.header.version = 9
        let file = TemporaryFile(builder.bytes())
        #expect(throws: TraceError.newerVersion(file.path, found: 9, known: 2)) { try TraceFile(path: file.path) }
    }

    @Test func theOtherByteOrderSaysSo() {
        var builder = Self.small
        builder.header.version = UInt32(TRACE_VERSION).byteSwapped
        let file = TemporaryFile(builder.bytes())
        #expect(throws: TraceError.otherByteOrder(file.path)) { try TraceFile(path: file.path) }
    }

    @Test func aMissingFileAndADirectorySaySo() {
        #expect(throws: TraceError.unreadable("/nonexistent.trace", "No such file or directory")) {
            try TraceFile(path: "/nonexistent.trace")
        }
        #expect(throws: TraceError.unreadable("/tmp", "it is a directory")) { try TraceFile(path: "/tmp") }
    }

    @Test func aFileCutAtAnyByteGivesTheGoodPartAndAWarning() throws {
        let bytes = Self.small.bytes()
        let used = 8 * (bytes.lastIndex { $0 != 0 }! / 8 + 1)
        let file = TemporaryFile([])
        let whole = try Loaded(bytes).summary.calls
        var callsBefore: UInt64 = 0
        // Every byte of the header, of the last events and of what lies around each chunk's beginning; else one in 97.
        var lengths = Set(0..<300).union(used - 100...used).union(stride(from: 0, to: bytes.count, by: 97))
        for page in stride(from: 4096, to: bytes.count, by: 4096) { lengths.formUnion(page..<page + 160) }
        for length in lengths.sorted() {
            file.write(bytes[..<length])
            guard readAll(file) else {
                #expect(length < MemoryLayout<trace_file_header>.size)
                continue
            }
            let trace = try TraceFile(path: file.path)
            let summary = Summary(trace, workers: 1)
            #expect(length >= used || !trace.warnings.isEmpty, "cut at \(length)")
            // A longer piece never has fewer calls.
            #expect(summary.calls >= callsBefore, "cut at \(length)")
            callsBefore = summary.calls
        }
        #expect(callsBefore <= whole)
        #expect(callsBefore >= whole - 2)
    }

    @Test func spaceThatAKilledThreadTookIsNotMissedAndALongerFileIs() throws {
        var builder = Self.small
        let bytes = builder.bytes()
        func warnings(next: Int, extended: Int) throws -> Int {
            builder.header.next_offset = UInt64(next)
            builder.header.extended_offset = UInt64(extended)
            return try Loaded(TraceBuilder.page(builder.header) + bytes[Int(TRACE_HEADER_BYTES)...]).trace.warnings.count
        }
        #expect(try warnings(next: bytes.count + 65536, extended: bytes.count) == 0)
        #expect(try warnings(next: bytes.count + 65536, extended: bytes.count + 65536) == 1)
    }

    @Test func aCutFileKeepsTheCallsBeforeTheCut() throws {
        let bytes = Self.small.bytes()
        let loaded = try Loaded(Array(bytes[..<(bytes.count - 4096 + 64)]))
        #expect(loaded.summary.calls > 10)
        #expect(loaded.trace.warnings.count == 1)
    }

    @Test func aDamagedChunkIsPassedOverWithAWarning() throws {
        var bytes = Self.small.bytes()
        let whole = try Loaded(bytes)
        bytes[2 * 4096] ^= 0xff // the magic of the first event chunk
        let loaded = try Loaded(bytes)
        #expect(loaded.trace.warnings.count == 1)
        #expect(loaded.summary.calls > 0)
        #expect(loaded.summary.calls < whole.summary.calls)
    }

    @Test(
        arguments: [
            (2, UInt32(0)), (2, 100), (2, .max), (3, 0), (3, 12), (3, .max), (28, .max), (16, .max), (17, 0xffff_0000),
        ] as [(Int, UInt32)])
    func chunkHeadersThatContradictThemselvesAreNotFollowed(word: Int, value: UInt32) throws {
        var bytes = Self.small.bytes()
        withUnsafeBytes(of: value) { bytes.replaceSubrange(2 * 4096 + 4 * word..<2 * 4096 + 4 * word + 4, with: $0) }
        readAll(TemporaryFile(bytes))
    }

    @Test func metadataThatLiesAboutItsSizeIsPassedOver() throws {
        func metadata(_ change: (inout [UInt8]) -> Void) throws -> Metadata {
            var builder = demo { builder, thread in builder.complete(thread, 1, from: start, to: start + 1) }
            builder.function(6, "after")
            var bytes = builder.bytes()
            change(&bytes)
            return try Loaded(bytes).trace.metadata
        }
        let first = 4096 + 128
        let programBytes = (16 + "/usr/bin/demo".utf8.count + 7) / 8 * 8
        let moduleStart = first + programBytes
        #expect(try metadata { _ in }.functions[6] != nil)
        for (offset, value) in [
            (first + 4, UInt32(7)), (first + 4, 0), (first + 4, .max), (first + 8, .max),
            (moduleStart + 12, .max), (moduleStart + 48, 21),
        ] {
            let damaged = try metadata { bytes in
                withUnsafeBytes(of: value) { bytes.replaceSubrange(offset..<offset + 4, with: $0) }
            }
            #expect(damaged.damagedRecords == 1, "\(offset) \(value)")
            #expect(damaged.functions[6] == nil) // nothing says where the next record begins
        }
    }

    @Test func recordsOfAnUnknownTypeAreSkipped() throws {
        var builder = demo { builder, thread in builder.complete(thread, 6, from: start, to: start + 1) }
        builder.record(77, trace_thread_record(), [1, 2, 3])
        builder.function(6, "after")
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.trace.metadata.unknownRecords == 1)
        #expect(loaded["after"]?.calls == 1)
        #expect(loaded.trace.warnings == [])
    }

    @Test func controlCharactersOfNamesDoNotReachTheTerminal() throws {
        var builder = demo { builder, thread in builder.complete(thread, 6, from: start, to: start + 1) }
        builder.function(6, "evil\u{1b}[2J")
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.summary.functions.map { $0.name } == ["evil\u{fffd}[2J"])
    }

    /// A mangled name is ASCII, and may stand for one that is not: U+009B begins a control sequence, U+202E turns what follows around.
    @Test func controlCharactersOfDemangledNamesDoNotReachTheTerminal() {
        #expect(demangled("$s1a005x_ubayyF") == "a.x\u{fffd}() -> ()")
    }

    /// Each level of these names doubles what it stands for: 40 of them would take longer than anybody waits.
    @Test func namesThatDoubleStayMangled() {
        for name in [cxxName, packName, rustName, swiftName] {
            #expect(demangled(name(40)) == name(40))
            #expect(demangled(name(2)) != name(2), "it is a name")
            for levels in 3..<40 { #expect(demangled(name(levels)).utf8.count <= 1024 + 64 * name(levels).utf8.count) }
        }
    }

    @Test func longNamesOfOrdinaryProgramsAreReadable() {
        // A name in LLVM 19: 18 substitutions, and an expansion of a parameter pack.
        let name =
            "_ZN4llvm3orc6shared6detail38serializeViaSPSToWrapperFunctionResultINS1_10SPSArgListIJNS1_15SPSExecutorAddrEmNS1_11SPSSequence"
            + "INS1_8SPSTupleIJNS6_IcEEbEEEEEEEEJNS0_12ExecutorAddrEmNS0_15SymbolLookupSetEEEENS1_21WrapperFunctionResultEDpRKT0_"
        #expect(demangled(name).hasPrefix("llvm::orc::shared::WrapperFunctionResult llvm::orc::shared::detail::serializeVia"))
        #expect(demangled("_ZN8dispatch9transportEv") == "dispatch::transport()")
    }

    @Test func aStoredFrameOfAnImpossibleFunctionKeepsItsPosition() throws {
        let loaded = try Loaded([.inherit(.max, 0), .call(1, 10, 20)])
        #expect(loaded["?#0"]?.selfTime == 10)
        #expect(try loaded.lines() == ["?#0 20 open inherited", " main 10"])
    }

    @Test func aPileDeeperThanTheReaderKeepsIsCountedAndClosed() throws {
        let loaded = try Loaded(demo { _, _ in }.bytes())
        var stack = CallStack(Accumulator(FunctionNames(loaded.trace.metadata), ThreadSpans(loaded.trace)), rowCount: 0, deepest: 10)
        for time in 0..<15 as Range<UInt64> { stack.enter(1, at: time, exactly: time) }
        stack.exit(1, at: 20)
        stack.unwound(5, at: 21) // four beyond what is kept, one within
        #expect(stack.frames.count == 9)
        for time in 30..<39 as Range<UInt64> { stack.exit(1, at: time) }
        #expect(stack.frames.count == 0)
        #expect(stack.sink.calls == 15)
        #expect(stack.tooDeep == 5)
        #expect(stack.sink.orphans == 0)
    }

    /// The same mutations in every run, so that a failure can be repeated: the seed is in its message.
    @Test func mutatedFilesNeverStopTheReader() {
        let original = Self.small.bytes()
        var random = Xorshift(seed: 0x9e37_79b9_7f4a_7c15)
        func next(_ bound: Int) -> Int { random.below(bound) }
        let interesting = original.indices.filter { original[$0] != 0 }
        let file = TemporaryFile([])
        for _ in 0..<200 {
            var bytes = original
            for _ in 0...next(6) {
                let offset = next(3) == 0 ? next(bytes.count - 8) : min(interesting[next(interesting.count)], bytes.count - 8)
                if offset < 16 { continue } // magic and version have tests of their own
                switch next(4) {
                case 0: bytes[offset] ^= 1 << UInt8(next(8))
                case 1: bytes[offset] = UInt8(next(256))
                case 2: for index in 0..<8 { bytes[offset + index] = 0xff }
                default: for index in 0..<8 { bytes[offset + index] = UInt8(next(256)) }
                }
            }
            if next(8) == 0 { bytes.removeLast(next(bytes.count / 2)) }
            file.write(bytes)
            readAll(file)
        }
    }
}

private func base(_ number: Int, of digits: String) -> String {
    let digits = Array(digits)
    var rest = number, text = ""
    repeat {
        text = String(digits[rest % digits.count]) + text
        rest /= digits.count
    } while rest > 0
    return text
}

/// A<A<A<int, int>, A<int, int>>, …>: Itanium C++ ABI, 5.1.10.
private func nestedTemplate(_ levels: Int) -> String {
    func substitution(_ index: Int) -> String {
        index == 0 ? "S_" : "S" + base(index - 1, of: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") + "_"
    }
    return "1AI" + String(repeating: "S_I", count: levels - 1) + "iiE" + (1..<levels).map { substitution($0) + "E" }.joined()
}

private func cxxName(_ levels: Int) -> String { "_Z1f" + nestedTemplate(levels) }

/// The printer looks for a pack in what it expands, before it writes any of it (d_find_pack of libiberty's cp-demangle.c).
private func packName(_ levels: Int) -> String { "_Z1fDp" + nestedTemplate(levels) }

/// Tuples of two: https://doc.rust-lang.org/rustc/symbol-mangling/v0.html, "Backref".
private func rustName(_ levels: Int) -> String {
    func reference(_ position: Int) -> String {
        "B" + (position == 0 ? "" : base(position - 1, of: "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) + "_"
    }
    let start = "INvC1a1f"
    return "_R" + start + String(repeating: "T", count: levels) + "TmmE"
        + (1...levels).map { reference(start.utf8.count + levels - $0 + 1) + "E" }.joined() + "E"
}

/// Generic structures of two: swift, docs/ABI/Mangling.rst, "Substitutions".
private func swiftName(_ levels: Int) -> String {
    func substitution(_ index: Int) -> String {
        index < 26 ? "A" + base(index, of: "ABCDEFGHIJKLMNOPQRSTUVWXYZ") : "A\(index == 26 ? "" : String(index - 27))_"
    }
    return "$s1a1fyyAA1PVy" + String(repeating: "ADy", count: levels - 1) + "S2iG"
        + (1..<levels).map { substitution(3 + $0) + "G" }.joined() + "F"
}
