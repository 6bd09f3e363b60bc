import CTraceLayout
import Foundation
import Recorder
import Testing

private let me = getpid()
#if arch(x86_64) // Glibc does not have their names here
private let ppoll: Int32 = 271, pselect: Int32 = 270, epoll_pwait: Int32 = 281, readCall: Int32 = 0
#else
private let ppoll: Int32 = 73, pselect: Int32 = 72, epoll_pwait: Int32 = 22, readCall: Int32 = 63
#endif
private let read = TRACE_ACCESS_READ, write = TRACE_ACCESS_WRITE

/// Reads the sets from the system calls' arguments, in this process's memory.
@Suite(.serialized) struct PolledSetTests {
    private func address(_ pointer: UnsafeRawPointer) -> UInt64 { UInt64(UInt(bitPattern: pointer)) }

    private func withPipes(_ body: ([Int32], [String]) throws -> Void) throws {
        var ends: [Int32] = [-1, -1, -1, -1]
        try ends.withUnsafeMutableBufferPointer {
            try #require(pipe($0.baseAddress!) == 0 && pipe($0.baseAddress! + 2) == 0)
        }
        defer { for end in ends { close(end) } }
        try body(ends, try ends.map { try #require(OpenPeer.object($0, of: me)) })
    }

    @Test func descriptorsAreReadFromWhatIsPolled() throws {
        try withPipes { ends, objects in
            let entries = [
                pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0), pollfd(fd: -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: ends[3], events: Int16(POLLOUT), revents: 0), pollfd(fd: ends[2], events: 0, revents: 0),
            ]
            entries.withUnsafeBytes { bytes in
                let set = PolledSet(systemCall: ppoll, arguments: [address(bytes.baseAddress!), 4], of: me)
                #expect(
                    set?.members == [
                        .init(descriptor: ends[0], access: read, object: objects[0]),
                        .init(descriptor: ends[3], access: write, object: objects[3]),
                        .init(descriptor: ends[2], access: read, object: objects[2]),
                    ])
            }
        }
    }

    @Test func descriptorsAreReadFromSetsOfBits() throws {
        try withPipes { ends, objects in
            var readers = [UInt64](repeating: 0, count: 16), writers = readers
            readers[Int(ends[0]) / 64] |= 1 << UInt64(ends[0] % 64)
            writers[Int(ends[1]) / 64] |= 1 << UInt64(ends[1] % 64)
            let count = UInt64(max(ends[0], ends[1]) + 1)
            readers.withUnsafeBytes { readers in
                writers.withUnsafeBytes { writers in
                    let arguments = [count, address(readers.baseAddress!), address(writers.baseAddress!)]
                    let set = PolledSet(systemCall: pselect, arguments: arguments, of: me)
                    #expect(
                        set?.members == [
                            .init(descriptor: ends[0], access: read, object: objects[0]),
                            .init(descriptor: ends[1], access: write, object: objects[1]),
                        ])
                }
                let alone = PolledSet(systemCall: pselect, arguments: [count, address(readers.baseAddress!), 0], of: me)
                #expect(alone?.members.map { $0.descriptor } == [ends[0]])
            }
        }
    }

    @Test func descriptorsAreReadFromWhatTheKernelReportsOfAnEpoll() {
        let text = """
            pos:\t0
            flags:\t02000002
            tfd:        5 events:       19 data:        500000005  pos:0 ino:61af sdev:7
            tfd:       12 events: 80000004 data:                c  pos:0 ino:61af sdev:7
            tfd: nothing events: 1
            """
        let members = PolledSet.members(ofInfo: text)
        #expect(members.map { $0.0 } == [5, 12] && members.map { $0.1 } == [read, write])
    }

    @Test func whatCannotBeReadIsNoSet() {
        #expect(PolledSet(systemCall: ppoll, arguments: [16, 4], of: me) == nil)
        #expect(PolledSet(systemCall: ppoll, arguments: [16, 1 << 40], of: me) == nil)
        #expect(PolledSet(systemCall: ppoll, arguments: [], of: me) == nil)
        #expect(PolledSet(systemCall: pselect, arguments: [.max, 0, 0], of: me) == nil)
        #expect(PolledSet(systemCall: epoll_pwait, arguments: [0], of: me) == nil)
        #expect(PolledSet(systemCall: readCall, arguments: [0, 0, 0], of: me) == nil)
    }
}
