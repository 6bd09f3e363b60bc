// When the program was ready. Nobody can know that but its author, who can say so with --ready, tracer_ready() or
// sd_notify. For the rest the calls that usually mean it are taken, the ones that say most first.
import CTraceLayout
import Dispatch
import Glibc
import Synchronization
import TraceFormat

package struct ReadyMoment: Sendable, Equatable {
    package enum Reason: Sendable, Equatable {
        /// A call of the function that the user named.
        case symbol(String)
        case mark
        case notify
        /// The first call of this function, which takes connections.
        case listening(String)
        /// The first call of this function, which shows a picture.
        case frame(String)
        /// To standard output or a terminal; the function, when it is known by its name alone.
        case output(String?)
        case mainReturned
        /// The program ended itself from within main.
        case exited
    }
    /// A process that the program has started.
    package struct Process: Sendable, Equatable {
        package var pid: UInt32
        package var program: String
    }
    package var reason: Reason
    package var ticks: Ticks
    /// Who became ready, where it was not the process itself.
    package var process: Process?

    package init(reason: Reason, ticks: Ticks) {
        self.reason = reason
        self.ticks = ticks
    }

    /// As in "main → ready (first listen)".
    package var text: String { what + (process.map { ", in process \($0.pid), \(basename($0.program))" } ?? "") }

    private var what: String {
        switch reason {
        case .symbol(let name): "call of \(name)"
        case .mark: "the program's mark"
        case .notify: "sd_notify READY=1"
        case .listening(let name), .frame(let name): "first \(name)"
        case .output(nil): "first output"
        case .output(let name?): "first output, \(name)"
        case .mainReturned: "main returned"
        case .exited: "exit"
        }
    }

    /// The lower, the more it says.
    fileprivate var rank: Int {
        switch reason {
        case .symbol: 0
        case .mark: 1
        case .notify: 2
        case .listening: 3
        case .frame: 4
        case .output: 5
        case .mainReturned, .exited: 6
        }
    }
    /// It says that a program serves or shows something, whoever has started it. Output and an end say that of the process alone.
    fileprivate var countsForParents: Bool { rank < 5 }

    /// For programs that read it: stable, without the function's name.
    package var key: String {
        switch reason {
        case .symbol: "symbol"
        case .mark: "mark"
        case .notify: "notify"
        case .listening: "listen"
        case .frame: "frame"
        case .output: "output"
        case .mainReturned: "main_returned"
        case .exited: "exit"
        }
    }

    static var all: Set<String> { listeners.union(frames).union(writers).union(exits) }
    static let exits: Set<String> = ["exit", "_exit", "_Exit", "quick_exit"]
    static let listeners: Set<String> = ["listen", "accept", "accept4"]
    /// They write to standard output and nowhere else. libc's own writes below them cross no slot.
    static let writers: Set<String> = [
        "puts", "printf", "vprintf", "putchar", "__printf_chk", "__vprintf_chk", "puts_unlocked", "putchar_unlocked", "wprintf", "putwchar",
    ]
    static let frames: Set<String> = [
        "eglSwapBuffers", "eglSwapBuffersWithDamageKHR", "eglSwapBuffersWithDamageEXT", "glXSwapBuffers", "vkQueuePresentKHR",
        "SDL_GL_SwapWindow", "XShmPutImage", "XPutImage", "xcb_put_image", "xcb_shm_put_image", "xcb_present_pixmap",
    ]
}

extension TraceFile {
    /// Returns true if the program that is writing this trace is ready; for a process that the program has started, if it makes the program
    /// ready. Output alone counts only when it is a second old: a server may greet before it listens.
    package static func isReady(path: String, symbol: String?, isProgram: Bool = true) -> Bool {
        guard let trace = try? TraceFile(path: path) else { return false }
        // Its threads must not take the recorder's signals: none is begun.
        let moments = ReadyMoments(trace, symbol: symbol, firsts: FirstCalls(trace, symbol: symbol, workers: 1))
        return moments.candidates.contains {
            guard isProgram else { return $0.countsForParents }
            return $0.key != "output" || trace.timeScale.nanoseconds(from: $0.ticks, to: Ticks(trace.now)).count >= 1_000_000_000
        }
    }

    /// When the program was ready, nil when it never was; and why the function that the user named does not say it.
    package func readyMoment(symbol: String?) -> (moment: ReadyMoment?, complaint: String?) {
        let moments = ReadyMoments(self, symbol: symbol, firsts: FirstCalls(self, symbol: symbol))
        return (moments.candidates.first, moments.complaint)
    }

    /// The recording clock at this moment, by CLOCK_MONOTONIC.
    private var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return ticks(monotonic: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)).raw
    }
}

/// Moments at which the program may have become ready, as found in its trace.
struct ReadyMoments {
    /// Candidates, the strongest evidence first; the first is taken.
    private(set) var candidates: [ReadyMoment] = []
    /// Why the one that the user asked for is not among them.
    private(set) var complaint: String?

    init(_ trace: TraceFile, symbol: String?, firsts: FirstCalls) {
        let records = trace.metadata.start
        if let symbol {
            if let first = firsts.first(where: { $0.isSymbol }) {
                candidates.append(ReadyMoment(reason: .symbol(symbol), ticks: first.ticks))
            } else {
                complaint = firsts.knows(symbol) ? "\(symbol) was not called" : "there is no function \(symbol) in this trace"
            }
            return
        }
        func recorded(_ kind: Ready.Reason) -> Ticks? { records.ready.filter { $0.reason == kind }.map { $0.ticks }.min() }
        // A function was named when it was recorded: that is what the user meant.
        if let ready = records.ready.filter({ $0.reason == .symbol }).min(by: { $0.ticks < $1.ticks }) {
            let name = ready.function.flatMap { trace.metadata.functions[$0] }.map { demangled($0.rawName) } ?? "\(Variables.ready.name)"
            candidates.append(ReadyMoment(reason: .symbol(name), ticks: ready.ticks))
        }
        if let ticks = recorded(.mark) { candidates.append(ReadyMoment(reason: .mark, ticks: ticks)) }
        if let ticks = recorded(.notify) { candidates.append(ReadyMoment(reason: .notify, ticks: ticks)) }
        if let first = firsts.first(where: { ReadyMoment.listeners.contains($0.name) }) {
            candidates.append(ReadyMoment(reason: .listening(first.name), ticks: first.ticks))
        }
        let shown = firsts.first { ReadyMoment.frames.contains($0.name) }, committed = recorded(.frame)
        if let committed, committed <= shown?.ticks ?? committed {
            candidates.append(ReadyMoment(reason: .frame("wl_surface_commit"), ticks: committed))
        } else if let shown {
            candidates.append(ReadyMoment(reason: .frame(shown.name), ticks: shown.ticks))
        }
        let written = recorded(.output), printed = firsts.first(where: { ReadyMoment.writers.contains($0.name) })
        if let printed, printed.ticks < written ?? Ticks(.max) {
            candidates.append(ReadyMoment(reason: .output(printed.name), ticks: printed.ticks))
        } else if let written {
            candidates.append(ReadyMoment(reason: .output(nil), ticks: written))
        }
        if let main = records.phase(.mainReturned) { candidates.append(ReadyMoment(reason: .mainReturned, ticks: main.usage.ticks)) }
        if let main = records.phase(.main), records.phase(.mainReturned) == nil {
            let called = firsts.first(where: { ReadyMoment.exits.contains($0.name) })?.ticks ?? records.phase(.exit)?.usage.ticks
            if let called, called >= main.usage.ticks { candidates.append(ReadyMoment(reason: .exited, ticks: called)) }
        }
    }
}

extension ReadyMoments {
    /// Adds moments at which processes that the program has started became ready. What says most comes first, of that the program's own,
    /// and then the earliest.
    mutating func add(_ processes: [TraceFile], symbol: String?) {
        for process in processes {
            let others = ReadyMoments(process, symbol: symbol, firsts: FirstCalls(process, symbol: symbol)).candidates
            candidates += others.filter(\.countsForParents).map {
                var moment = $0
                moment.process = .init(pid: process.header.pid, program: process.program)
                return moment
            }
        }
        func key(_ moment: ReadyMoment) -> (Int, Int, UInt64) { (moment.rank, moment.process == nil ? 0 : 1, moment.ticks.raw) }
        candidates.sort { key($0) < key($1) }
        if case .symbol = candidates.first?.reason { complaint = nil }
    }
}

/// The first calls of the functions that show when a program is ready, and the program's marks.
struct FirstCalls {
    struct First {
        var name: String
        var isSymbol: Bool
        var ticks: Ticks
    }
    private var wanted: [UInt32: (name: String, isSymbol: Bool)] = [:]
    private(set) var firsts: [First] = []
    private(set) var marks: [(name: String, ticks: Ticks)] = []
    private let names: Set<String>

    static let mostMarks = 10_000

    /// Reads the events of the whole trace, if a function of interest is in it.
    init(_ trace: TraceFile, symbol: String?, workers: Int = TraceFile.cpuCount) {
        var markNames: [UInt32: String] = [:]
        var names: Set<String> = []
        for function in trace.metadata.functions.values {
            if function.isMark { markNames[function.id] = function.rawName }
            if function.isMark || function.isSpan { continue }
            if let symbol, Self.matches(function.rawName, symbol) {
                names.insert(symbol)
                wanted[function.id] = (function.rawName, true)
            } else if ReadyMoment.all.contains(function.rawName) {
                wanted[function.id] = (function.rawName, false)
            }
        }
        self.names = names
        guard !wanted.isEmpty || !markNames.isEmpty else { return }
        let size = Int((Array(wanted.keys) + Array(markNames.keys)).max()!) + 1
        var sink = FirstSink(size: size)
        for id in wanted.keys { sink.isWanted[Int(id)] = 1 }
        for id in markNames.keys { sink.isWanted[Int(id)] = 2 }
        // In the order of time: what was called first is soon found.
        let chunks = trace.chunksOfThread.joined().sorted { $0.opened.ticks < $1.opened.ticks }
        let most = markNames.isEmpty ? wanted.count : nil
        let readers = (0..<max(min(workers, chunks.count), 1)).map { _ in FirstReader(trace, sink, most: most) }, next = Atomic<Int>(0)
        if readers.count == 1 {
            readers[0].read(chunks, from: next)
        } else {
            DispatchQueue.concurrentPerform(iterations: readers.count) { readers[$0].read(chunks, from: next) }
        }
        var first: [UInt32: UInt64] = [:]
        for reader in readers { first.merge(reader.sink.first) { min($0, $1) } }
        for (id, ticks) in first {
            if let function = wanted[id] { firsts.append(First(name: function.name, isSymbol: function.isSymbol, ticks: Ticks(ticks))) }
        }
        marks = readers.flatMap { $0.sink.marks }.sorted { ($0.ticks, $0.id) < ($1.ticks, $1.id) }.prefix(Self.mostMarks)
            .map { (demangled(markNames[$0.id] ?? "?"), Ticks($0.ticks)) }
    }

    func first(where isMeant: (First) -> Bool) -> First? { firsts.filter(isMeant).min { $0.ticks < $1.ticks } }
    func knows(_ symbol: String) -> Bool { names.contains(symbol) }

    /// The linker's name, or the readable one with or without its parameters.
    static func matches(_ rawName: String, _ symbol: String) -> Bool {
        if rawName == symbol { return true }
        guard rawName.hasPrefix("_Z") || rawName.hasPrefix("$") else { return false }
        let name = demangled(rawName)
        return name == symbol || name.hasPrefix(symbol + "(")
    }
}

/// Used by one thread at a time.
private final class FirstReader: @unchecked Sendable {
    private var reader: ChunkReader
    var sink: FirstSink
    /// Number of functions of which the first call alone is wanted; nil: all calls of others are, too.
    private let most: Int?

    init(_ trace: TraceFile, _ sink: FirstSink, most: Int?) {
        reader = ChunkReader(trace)
        self.sink = sink
        self.most = most
    }

    /// Reads chunks until none is left. Each has the number of one that nobody has taken.
    func read(_ chunks: [Chunk], from next: borrowing Atomic<Int>) {
        while true {
            let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
            guard index < chunks.count else { return }
            read(chunks[index])
        }
    }

    private func read(_ listed: Chunk) {
        guard let chunk = reader.settled(listed) else { return }
        for frame in reader.storedFrames(chunk) { sink.note(frame.function, frame.enter_ticks) }
        // What a chunk records is later than its beginning, but for a thread's first event.
        if sink.first.count == most, chunk.sequence > 0, sink.first.values.allSatisfy({ $0 <= chunk.opened.ticks }) { return }
        _ = reader.read(chunk, into: &sink)
    }
}

private struct FirstSink: EventSink {
    /// Calls wanted, by function id: 0 none, 1 the first, 2 all.
    var isWanted: [UInt8]
    var first: [UInt32: UInt64] = [:]
    var marks: [(id: UInt32, ticks: UInt64)] = []

    init(size: Int) { isWanted = [UInt8](repeating: 0, count: size) }

    @inline(__always) mutating func note(_ function: UInt32, _ time: UInt64) {
        guard Int(function) < isWanted.count, isWanted[Int(function)] != 0 else { return }
        if isWanted[Int(function)] == 2 {
            if marks.count < FirstCalls.mostMarks { marks.append((function, time)) }
        } else if time < first[function, default: .max] {
            first[function] = time
        }
    }

    mutating func enter(_ function: UInt32, at time: UInt64, exactly enterTicks: UInt64) { note(function, enterTicks) }
    mutating func complete(_ function: UInt32, from start: UInt64, to end: UInt64) { note(function, start) }
}
