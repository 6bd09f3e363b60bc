import CTraceLayout
import Glibc
import Recorder
import Testing

@Suite struct PreparationPlanTests {
    static let megabyte: UInt64 = 1 << 20
    let plenty: () -> UInt64 = { 1 << 40 }

    /// Prepares all that one look asks for.
    func look(_ plan: inout PreparationPlan, used: UInt64, free: () -> UInt64) -> [Range<UInt64>] {
        var ranges: [Range<UInt64>] = []
        while let range = plan.nextRange(used: used, freeBytes: free) {
            ranges.append(range)
            plan.didPrepare(upTo: range.upperBound)
            if ranges.count > 1000 { break }
        }
        return ranges
    }

    @Test func beginsWithTwoMegabytes() {
        var plan = PreparationPlan(used: 5000, prepared: 0, sizeLimit: 0)
        let ranges = look(&plan, used: 5000, free: plenty)
        #expect(ranges.first?.lowerBound == 8192)
        #expect(ranges.last?.upperBound == 8192 + 2 * Self.megabyte)
        #expect(look(&plan, used: 5000, free: plenty).isEmpty)
    }

    @Test func rangesFollowOneAnotherWithoutGapOrOverlap() {
        var plan = PreparationPlan(used: 4096, prepared: 0, sizeLimit: 0)
        var used: UInt64 = 4096, last: UInt64?
        for _ in 0..<200 {
            for range in look(&plan, used: used, free: plenty) {
                if let last { #expect(range.lowerBound >= last) }
                #expect(range.count > 0 && UInt64(range.count) <= PreparationPlan.step)
                #expect(range.lowerBound % 4096 == 0 && range.upperBound % 4096 == 0)
                last = range.upperBound
            }
            #expect(plan.prepared >= used + PreparationPlan.smallestLead * 3 / 4)
            used += Self.megabyte / 2 * 3
        }
    }

    @Test func leadGrowsWithAFastProgramUpToALimit() {
        var plan = PreparationPlan(used: 4096, prepared: 0, sizeLimit: 0)
        var used: UInt64 = 4096
        for _ in 0..<100 {
            _ = look(&plan, used: used, free: plenty)
            used = plan.prepared
        }
        #expect(plan.lead == PreparationPlan.largestLead)
    }

    @Test func slowProgramKeepsTheSmallLead() {
        var plan = PreparationPlan(used: 4096, prepared: 0, sizeLimit: 0)
        for step in 0..<100 as Range<UInt64> { _ = look(&plan, used: 4096 + step * 65536, free: plenty) }
        #expect(plan.lead == PreparationPlan.smallestLead)
    }

    @Test func sizeLimitIsNeverPassed() {
        var plan = PreparationPlan(used: 4096, prepared: 0, sizeLimit: 3_000_000)
        _ = look(&plan, used: 4096, free: plenty)
        _ = look(&plan, used: 2_900_000, free: plenty)
        #expect(plan.prepared == 3_000_000 / 4096 * 4096)
        #expect(look(&plan, used: 3_500_000, free: plenty).isEmpty)
    }

    @Test func nearlyFullDiskIsLeftToTheProgram() {
        var plan = PreparationPlan(used: 4096, prepared: 0, sizeLimit: 0)
        _ = look(&plan, used: 4096, free: { 1 << 20 })
        #expect(plan.prepared == 4096 + Self.megabyte / 8)
        var none = PreparationPlan(used: 4096, prepared: 0, sizeLimit: 0)
        #expect(look(&none, used: 4096, free: { 0 }).isEmpty)
    }

    @Test func looksBecomeRareWhileNothingIsRecorded() {
        var plan = PreparationPlan(used: 4096, prepared: 0, sizeLimit: 0)
        _ = look(&plan, used: 4096, free: plenty)
        for _ in 0..<20 { plan.rest() }
        #expect(plan.interval == PreparationPlan.idleNanoseconds)
        _ = look(&plan, used: 8192, free: plenty)
        #expect(plan.interval == PreparationPlan.busyNanoseconds)
    }
}

@Suite struct TraceFileTests {
    let scratch = Scratch()

    func header(session: UInt64 = 7, pid: UInt32 = 11, nextOffset: UInt64 = 4096, version: UInt32 = UInt32(TRACE_VERSION)) -> [UInt8] {
        emptyTrace { ($0.session, $0.pid, $0.next_offset, $0.version) = (session, pid, nextOffset, version) }
    }

    func chunk(bytes: Int, used: UInt64 = 0, body: [UInt8] = []) -> [UInt8] {
        var header = trace_chunk_header()
        header.magic = UInt32(TRACE_CHUNK_MAGIC)
        header.byte_count = UInt32(bytes)
        header.used_bytes = used
        let start = withUnsafeBytes(of: header) { Array($0) } + body
        return start + [UInt8](repeating: 0, count: bytes - start.count)
    }

    func usedEnd(_ bytes: [UInt8], nextOffset: UInt64? = nil) -> UInt64 {
        let file = open(scratch.write("t", bytes), O_RDONLY)
        defer { close(file) }
        return UsedEnd.find(file: file, size: UInt64(bytes.count), nextOffset: nextOffset ?? UInt64(bytes.count)).end
    }

    @Test func closedChunkEndsWhereItSays() {
        let file = header() + chunk(bytes: 65536, used: 5000) + [UInt8](repeating: 0, count: 1 << 20)
        #expect(usedEnd(file, nextOffset: 4096 + 65536) == 4096 + 8192)
    }

    @Test func openChunkEndsAtItsLastByte() {
        let body = [UInt8](repeating: 1, count: 100_000)
        #expect(usedEnd(header() + chunk(bytes: 1 << 18, body: body)) == 4096 + 102_400)
        #expect(usedEnd(header() + chunk(bytes: 1 << 18)) == 8192) // nothing but its header
    }

    @Test func metadataEndsWithItsLastRecord() {
        func record(_ type: Int, bytes: Int, _ words: [UInt8] = []) -> [UInt8] {
            let record = trace_record(type: UInt16(type), key: 0, byte_count: UInt32(bytes))
            let start = withUnsafeBytes(of: record) { Array($0) } + words
            return start + [UInt8](repeating: 0, count: bytes - start.count)
        }
        func metadata(bytes: Int, _ body: [UInt8]) -> [UInt8] {
            var all = chunk(bytes: bytes, body: body)
            all.withUnsafeMutableBytes {
                $0.bindMemory(to: trace_chunk_header.self)[0].kind = UInt16(TRACE_CHUNK_METADATA)
                $0.bindMemory(to: trace_chunk_header.self)[0].body_offset = 128
            }
            return all
        }
        // Counters, most of which nobody has used.
        let passed = record(TRACE_RECORD_PASSED, bytes: Int(TRACE_PASSED_BYTES) - 128, [1, 0, 0, 0, 250, 3, 0, 0, 7])
        #expect(usedEnd(header() + metadata(bytes: Int(TRACE_PASSED_BYTES), passed)) == UInt64(4096 + TRACE_PASSED_BYTES))
        // Offsets of functions, none of which was found.
        let records = record(TRACE_RECORD_TEXT, bytes: 64, [3]) + record(TRACE_RECORD_FUNCTIONS, bytes: 9000, [1])
        #expect(usedEnd(header() + metadata(bytes: 1 << 18, records)) == 4096 + 12288)
        // One that was being written, one that is damaged.
        #expect(usedEnd(header() + metadata(bytes: 1 << 18, record(0, bytes: 9000, [1]))) == 8192)
        #expect(usedEnd(header() + metadata(bytes: 8192, record(TRACE_RECORD_TEXT, bytes: 16384, [1]).prefix(4000) + [])) == 8192)
    }

    @Test func lastUsedChunkCountsWhateverTheOrder() {
        let file = header() + chunk(bytes: 8192) + chunk(bytes: 8192, used: 8192) + chunk(bytes: 8192)
        #expect(usedEnd(file) == 4096 + 2 * 8192 + 4096)
    }

    @Test func chunkThatWasNeverOpenedIsPassedOver() {
        let file = header() + [UInt8](repeating: 0, count: 8192) + chunk(bytes: 8192, used: 200) + [UInt8](repeating: 0, count: 8192)
        #expect(usedEnd(file) == 4096 + 8192 + 4096)
        #expect(usedEnd(header() + [UInt8](repeating: 0, count: 65536)) == 4096)
    }

    @Test func chunkThatIsCutSaysItsNewSize() {
        let path = scratch.write(
            "t", header() + chunk(bytes: 65536, body: [UInt8](repeating: 1, count: 5000)) + [UInt8](repeating: 0, count: 4096))
        let file = open(path, O_RDWR)
        defer { close(file) }
        #expect(UsedEnd.cut(file: file, size: 4096 + 65536 + 4096, nextOffset: 4096 + 65536) == 4096 + 8192)
        var after = trace_chunk_header()
        #expect(pread(file, &after, 128, 4096) == 128)
        #expect(after.byte_count == 8192 && after.used_bytes == 0 && after.magic == UInt32(TRACE_CHUNK_MAGIC))
        #expect(byteCount(file) == 4096 + 8192)
        #expect(UsedEnd.cut(file: file, size: 4096 + 8192, nextOffset: 4096 + 65536) == 4096 + 8192) // and stays
    }

    @Test func damagedChunksNeverLeadOutsideTheFile() {
        var bytes = header() + chunk(bytes: 8192, used: 200)
        for value: UInt8 in [0, 1, 0x7f, 0xff] {
            for offset in 4096..<4096 + 128 {
                let kept = bytes[offset]
                bytes[offset] = value
                let end = usedEnd(bytes)
                #expect(end >= 4096 && end <= UInt64(bytes.count))
                bytes[offset] = kept
            }
        }
    }

    @Test func headerOfAnotherVersionOrNoneIsNotOurs() {
        #expect(TraceHeader(path: scratch.write("a", header())) != nil)
        #expect(TraceHeader(path: scratch.write("b", header(version: 99))) == nil)
        #expect(TraceHeader(path: scratch.write("c", Array(header()[..<4095]))) == nil)
        #expect(TraceHeader(path: scratch.write("d", [UInt8](repeating: 0, count: 4096))) == nil)
        #expect(TraceHeader(path: scratch.path) == nil)
        #expect(TraceHeader(path: scratch.path + "/none") == nil)
    }

    @Test func preparingGrowsTheFilePublishesAndWritesNothing() throws {
        let events = chunk(bytes: 8192, body: [UInt8](repeating: 0xee, count: 8000))
        let path = scratch.write("t", header(nextOffset: 4096 + 8192) + events)
        let header = try #require(TraceHeader(path: path))
        let preparer = FilePreparer(header)
        _ = preparer.look()
        #expect(!preparer.hasGivenUp)
        let prepared = header.current.prepared_offset
        #expect(prepared == 4096 + 8192 + PreparationPlan.smallestLead)
        #expect(byteCount(header.file) == Int(prepared))
        var back = [UInt8](repeating: 1, count: Int(prepared) - 4096)
        #expect(pread(header.file, &back, back.count, 4096) == back.count)
        #expect(Array(back[..<8192]) == events)
        #expect(back[8192...].allSatisfy { $0 == 0 })
        // The program is there already: what it wrote stays.
        #expect(pwrite(header.file, [9, 9], 2, 4096 + 8192) == 2)
        _ = preparer.look()
        #expect(pread(header.file, &back, 2, 4096 + 8192) == 2)
        #expect(back[0] == 9)
    }

    @Test func whoCutsAFileThatIsBeingPreparedHurtsNobody() throws {
        let path = scratch.write("t", header(nextOffset: 4096))
        let header = try #require(TraceHeader(path: path))
        let preparer = FilePreparer(header)
        truncate(path, 0)
        #expect(header.nextOffset == nil)
        header.publish(preparedOffset: 1 << 20)
        #expect(header.reserve(4096, isGone: false) == nil)
        _ = preparer.look()
        #expect(preparer.hasGivenUp)
        header.set(.exited(status: 3))
        #expect(byteCount(header.file) == 0)
        #expect(header.current.session == 0)
    }

    @Test(arguments: [UInt64.max, 1 << 63, 1 << 47]) func offsetsThatNoFileHasArePreparedByNobody(offset: UInt64) throws {
        let header = try #require(TraceHeader(path: scratch.write("t", header(nextOffset: offset))))
        let preparer = FilePreparer(header)
        _ = preparer.look()
        #expect(preparer.hasGivenUp)
        #expect(header.reserve(4096, isGone: false) == nil && header.reserve(4096, isGone: true) == nil)
    }

    @Test(.enabled(if: geteuid() == 0)) func aFileOfAnotherUserIsReadAndNotPrepared() throws {
        let path = scratch.write("t", header(nextOffset: 4096))
        chown(path, 65534, 65534)
        let header = try #require(TraceHeader(path: path))
        #expect(header.current.next_offset == 4096)
        let preparer = FilePreparer(header)
        _ = preparer.look()
        #expect(preparer.hasGivenUp)
        header.set(.exited(status: 3))
        #expect(header.current.exit_status == UInt64(TRACE_EXIT_KNOWN) | 3)
        header.set(.killed(signal: 9))
        #expect(header.current.exit_status == UInt64(TRACE_EXIT_KNOWN) | UInt64(TRACE_EXIT_SIGNAL) | 137)
    }

    @Test func filesOfTheSessionAreFoundByTheirHeaders() throws {
        let template = try OutputTemplate("run.%p", currentDirectory: scratch.path)
        scratch.write("run.1", header(session: 5, pid: 1))
        scratch.write("run.2", header(session: 6, pid: 2))
        scratch.write("other", header(session: 5, pid: 3))
        scratch.write("run.txt", "hello")
        #expect(SessionFiles.all(template, session: 5).map(\.path) == [scratch.path + "/run.1"])
    }

    @Test func watchFindsEachFileOfTheRunOnceAndThatOfAnImageAfterExecToo() throws {
        let template = try OutputTemplate("run.%e.%p", currentDirectory: scratch.path)
        scratch.write("run.old.11", header(session: 4, pid: 11))
        let watch = FileWatch(template: template, session: 7)
        #expect(watch.next() == nil && !watch.isExpecting)
        scratch.write("run.sh.11", [])
        #expect(watch.next() == nil && watch.isExpecting) // made, but empty so far
        scratch.write("run.sh.11", header())
        scratch.write("run.child.12", header(pid: 12))
        scratch.write("run.of_another.13", header(session: 4, pid: 13))
        #expect(Set([watch.next()?.path, watch.next()?.path]) == [scratch.path + "/run.sh.11", scratch.path + "/run.child.12"])
        #expect(watch.next() == nil)
        scratch.write("run.ls.11", header())
        #expect(watch.next()?.path == scratch.path + "/run.ls.11")
        #expect(watch.next() == nil && !watch.isExpecting)
    }
}
