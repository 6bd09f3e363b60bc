// What the kernel tells of all processes of a run, sorted to the images that it is about.
import CRecorder
import CTraceLayout
import Glibc

struct KernelHistory {
    private struct Process {
        var images: [ImageHistory]
        var files = MappedFiles()
        var threads: Set<pid_t> = []
    }
    /// A thread that is off the processor, and since when.
    private struct Waiting {
        var pid: pid_t
        var since: UInt64
    }

    private let room: KernelRoom
    /// Those that live, by process id; and those of whose ids others may have become.
    private var processes: [pid_t: Process] = [:]
    private var over: [pid_t: [ImageHistory]] = [:]
    private var waiting: [pid_t: Waiting] = [:]
    private(set) var lost: UInt64 = 0

    /// A wait is looked at when it has lasted so long, and so many at one time.
    private static let longWait: UInt64 = 10_000_000, mostLooks = 16

    init(root: pid_t, _ room: KernelRoom) {
        self.room = room
        processes[root] = Process(images: [ImageHistory(begun: 0)], threads: [root])
    }

    /// In the order of their times.
    mutating func add(_ record: KernelRecord, _ origin: KernelRecord.Origin) {
        let pid = origin.pid, tid = origin.tid, now = origin.nanoseconds
        switch record {
        case .switched(let kind):
            let change = trace_switch(ns: now, tid: UInt32(bitPattern: tid), processor: origin.processor, kind: kind)
            withImage(pid) { $0.add(change, $1) }
            waiting[tid] = Int(kind) == TRACE_SWITCH_WAITS ? Waiting(pid: pid, since: now) : nil
        case .began(let child, let parent, let by):
            if pid != parent { begin(process: pid, from: parent, at: now) }
            processes[pid]?.threads.insert(child)
            withImage(pid) { $0.add(task: TRACE_TASK_BEGAN, tid: child, by: by, at: now, $1) }
        case .ended:
            waiting[tid] = nil
            withImage(pid) { $0.add(task: TRACE_TASK_ENDED, tid: tid, at: now, $1) }
            processes[pid]?.threads.remove(tid)
            if processes[pid]?.threads.isEmpty == true { end(process: pid, at: now) }
        case .named(let name, let isExec):
            if isExec { exec(pid, tid, at: now) }
            withImage(pid) { $0.add(task: TRACE_TASK_NAMED, tid: tid, name: name, at: now, $1) }
        case .mapped(let mapping): processes[pid]?.files.add(mapping)
        case .fault(let address, let code):
            let place = processes[pid]?.files.place(of: address)
            withImage(pid) { $0.add(majorFault: address, code: code, place: place, origin, $1) }
        case .sample: break
        case .lost(let count): lost += count
        }
    }

    /// Threads that have waited for long by now are looked at, each once a wait.
    mutating func lookAtWaits(_ now: UInt64) {
        var looks = 0
        for (tid, wait) in waiting where wait.since + Self.longWait <= now && looks < Self.mostLooks {
            looks += 1
            waiting[tid] = nil
            guard let look = WaitLook(pid: wait.pid, tid: tid, at: now) else { continue }
            withImage(wait.pid) { $0.add(look, $1) }
        }
    }

    /// Somebody waits who is to be looked at soon.
    var isAnybodyWaiting: Bool { !waiting.isEmpty }

    /// No more comes. What there is of each process id, the oldest first.
    mutating func end() -> [pid_t: [ImageHistory]] {
        for pid in processes.keys { end(process: pid, at: nil) }
        return over
    }

    // MARK: - Processes

    private mutating func withImage(_ pid: pid_t, _ body: (inout ImageHistory, KernelRoom) -> Void) {
        guard let process = processes.index(forKey: pid) else { return }
        body(&processes.values[process].images[processes.values[process].images.count - 1], room)
    }

    private mutating func begin(process pid: pid_t, from parent: pid_t, at now: UInt64) {
        end(process: pid, at: now) // its end was lost
        processes[pid] = Process(images: [ImageHistory(begun: now)], files: processes[parent]?.files ?? MappedFiles())
    }

    /// Of its threads the one that has called exec is left, under the process's id.
    private mutating func exec(_ pid: pid_t, _ tid: pid_t, at now: UInt64) {
        guard processes[pid] != nil else { return }
        processes[pid]?.files = MappedFiles()
        processes[pid]?.threads = [pid]
        withImage(pid) {
            $0.ended = now
            $0.end($1)
        }
        processes[pid]?.images.append(ImageHistory(begun: now))
    }

    private mutating func end(process pid: pid_t, at now: UInt64?) {
        guard var process = processes.removeValue(forKey: pid) else { return }
        process.images[process.images.count - 1].ended = now
        process.images[process.images.count - 1].end(room)
        over[pid, default: []] += process.images
    }
}
