// What the threads of a process were doing when it ended, or when its trace was copied: the calls that were open, and the last ones before.
import CTraceLayout
import Presentation
import TraceFormat

package struct LastCalls {
    package struct Thread {
        package let thread: TraceFile.ThreadID
        /// The innermost last; of very deep stacks `hidden` outer ones are left out.
        package let open: [ReplayLine]
        package let hidden: Int
        /// In the order of their beginnings, open ones as well.
        package let last: [ReplayLine]
        fileprivate let latest: Ticks
    }

    package let trace: TraceFile
    /// Who recorded something last comes first.
    package private(set) var threads: [Thread] = []
    private let descriptors: DescriptorNames?

    package static let most = 100
    private static let mostOpen = 64

    /// - Parameter descriptors: what they are open on; nil: nothing is known of that
    package init(_ trace: TraceFile, _ table: FunctionNames, _ descriptors: DescriptorNames?) throws {
        (self.trace, self.descriptors) = (trace, descriptors)
        let end = TraceEnd(trace)
        // What is older than a thread's last full chunk and the one after it is in no row.
        var recent = trace
        recent.chunksOfThread = trace.chunksOfThread.map { Array($0.suffix(2)) }
        for thread in trace.threads {
            var open: [ReplayLine] = [], last: [ReplayLine] = [], next = 0, latest = thread.index == 0 ? trace.firstTicks : Ticks(0)
            try recent.replay(thread: thread.index, until: end, deepest: 0, limit: 0, table) { line in
                if case .missing = line.kind { return true }
                let isOpen = line.kind == .call && line.end?.how == .open
                if isOpen { open.append(line) }
                latest = max(latest, isOpen ? line.start : line.end?.time ?? line.start)
                if last.count < Self.most {
                    last.append(line)
                } else {
                    last[next] = line
                    next = (next + 1) % Self.most
                }
                return true
            }
            let hidden = max(open.count - Self.mostOpen, 0)
            threads.append(
                Thread(
                    thread: thread, open: Array(open.suffix(Self.mostOpen)), hidden: hidden, last: Array(last[next...] + last[..<next]),
                    latest: latest))
        }
        threads.sort { ($0.latest, $1.thread.index) > ($1.latest, $0.thread.index) }
    }

    /// - Parameter line: called with each line of the text
    package func write(names: NameStyle, _ style: TextStyle, _ line: ((inout [UInt8]) -> Void) throws -> Void) rethrows {
        var text = ReplayText(trace, FunctionNames(trace.metadata), until: TraceEnd(trace), names: names, descriptors, style)
        for one in threads {
            try line { $0 += Array(style.bold("thread \(one.thread.tid) \(one.thread.name)").utf8) }
            if one.open.isEmpty {
                try line { $0 += Array("  no recorded call was open".utf8) }
            } else {
                let outer = one.hidden > 0 ? ", after \(counted(UInt64(one.hidden), "outer one"))" : ""
                try line { $0 += Array("  open, the innermost last\(outer):".utf8) }
                for call in one.open { try line { text.write(call, of: one.thread, to: &$0) } }
            }
            try line { $0 += Array("  last \(counted(UInt64(one.last.count), "call")):".utf8) }
            for call in one.last { try line { text.write(call, of: one.thread, to: &$0) } }
        }
    }
}

extension LastCalls: Record {
    private struct ThreadRecord: Record {
        var thread: TraceFile.ThreadID
        var open: [ReplayedLine]
        var hidden: Int
        var last: [ReplayedLine]

        static let members = declare {
            Member("tid", \.thread.tid)
            Member("name", \.thread.name)
            Member("open", "calls that had not ended, the innermost last", \.open)
            Member("hidden", "more of them, outside of these", \.hidden)
            Member("last", "the last calls in the order of their beginnings, open ones as well", \.last)
        }
    }

    private var records: [ThreadRecord] {
        let text = ReplayText(
            trace, FunctionNames(trace.metadata), until: TraceEnd(trace), names: .full, descriptors, TextStyle(isColoured: false))
        return threads.map { one in
            ThreadRecord(
                thread: one.thread, open: one.open.map { text.record($0, of: one.thread) }, hidden: one.hidden,
                last: one.last.map { text.record($0, of: one.thread) })
        }
    }

    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("file", \.trace.path)
        Member("pid", \.trace.header.pid)
        Member("ended", "how the process ended, as far as it is known") { $0.trace.processEnd?.text }
        Member("threads", "the one that recorded something last comes first") { $0.records }
    }
}
