import CTraceLayout
import Glibc
import Recorder
import Testing

private let me = getpid()

/// In this process.
private func ends(of object: String) -> [OpenPeer] {
    OpenPeer.all(of: [object: OpenPeer.peer(of: object, of: me)], in: [me], until: .max)
}

@Suite(.serialized) struct OpenPeerTests {
    @Test func aPipeHasItsReadersAndItsWriters() throws {
        var pair: [Int32] = [-1, -1]
        #expect(pipe(&pair) == 0)
        defer { for one in pair { close(one) } }
        let object = try #require(OpenPeer.object(pair[0], of: me))
        #expect(object.hasPrefix("pipe:["))
        let found = ends(of: object).sorted { $0.access < $1.access }
        #expect(found.map { $0.descriptor } == pair && found.map { $0.access } == [TRACE_ACCESS_READ, TRACE_ACCESS_WRITE])
        #expect(found.allSatisfy { $0.object == object && $0.peer == "" && $0.pid == me })
    }

    @Test func aUnixSocketHasTheOneItIsConnectedTo() throws {
        var pair: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        defer { for one in pair { close(one) } }
        let objects = try pair.map { try #require(OpenPeer.object($0, of: me)) }
        #expect(OpenPeer.peer(of: objects[0], of: me) == objects[1] && OpenPeer.peer(of: objects[1], of: me) == objects[0])
        let found = ends(of: objects[0]).sorted { $0.descriptor < $1.descriptor }
        #expect(found.map { $0.object } == objects && found.map { $0.peer } == objects.reversed())
        #expect(found.allSatisfy { $0.access == TRACE_ACCESS_READ | TRACE_ACCESS_WRITE })
    }

    @Test func aSocketOfNobodyElseHasNoPeer() throws {
        let alone = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(alone) }
        let object = try #require(OpenPeer.object(alone, of: me))
        #expect(
            OpenPeer.peer(of: object, of: me) == "" && OpenPeer.peer(of: "pipe:[1]", of: me) == ""
                && OpenPeer.peer(of: "socket:[x]", of: me) == "")
    }

    @Test func aConnectionOverTheNetworkHasItsPeer() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0), client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { for one in [listener, client] { close(one) } }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let server = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> Int32 in
                guard bind(listener, address, length) == 0, listen(listener, 1) == 0, getsockname(listener, address, &length) == 0,
                    connect(client, address, length) == 0
                else { return -1 }
                return accept(listener, nil, nil)
            }
        }
        #expect(server >= 0)
        defer { close(server) }
        let objects = try [client, server].map { try #require(OpenPeer.object($0, of: me)) }
        #expect(OpenPeer.peer(of: objects[0], of: me) == objects[1] && OpenPeer.peer(of: objects[1], of: me) == objects[0])
    }

    @Test func addressesThatAreMappedAreThoseOfTheOtherFamily() throws {
        let old = try #require(
            OpenPeer.connection("   0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 x"))
        let new = try #require(
            OpenPeer.connection(
                "  12: 0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:1F90 01 0:0 0:0 0 1000 0 4712 1 x"))
        #expect(old == OpenPeer.Connection(local: "0100007F:1F90", remote: "0100007F:C350", inode: 4711))
        #expect(new.local == old.remote && new.remote == old.local && new.inode == 4712)
        #expect(OpenPeer.connection("  sl  local_address") == nil && OpenPeer.connection("") == nil)
    }

    @Test func nothingIsFoundOfAProcessThatIsGone() {
        #expect(OpenPeer.all(of: ["pipe:[1]": ""], in: [pid_t.max], until: .max) == [] && OpenPeer.object(0, of: pid_t.max) == nil)
        #expect(ThreadPriority.all(of: pid_t.max) == [:])
    }

    @Test func aThreadHasItsPolicyAndItsValue() throws {
        let head = "7 (a) b (c) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 ", tail = " 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 "
        let normal = try #require(ThreadPriority(stat: head + "30 10" + tail + "0 0 0 0 0\n"))
        #expect(normal.nice == 10 && normal.policy == 0 && normal.priority == 0)
        let realTime = try #require(ThreadPriority(stat: head + "-6 0" + tail + "5 1 0 0 0\n"))
        #expect(realTime.priority == 5 && realTime.policy == 1)
        #expect(ThreadPriority(stat: "7 (cut) S 1 7") == nil && ThreadPriority(stat: "") == nil)
        let own = try #require(ThreadPriority.all(of: me)[me])
        // Asked by its id: the thread that runs this test may have another value, which the dispatch library gives it.
        #expect(own.policy == sched_getscheduler(me) && own.nice == getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(me)))
    }
}
