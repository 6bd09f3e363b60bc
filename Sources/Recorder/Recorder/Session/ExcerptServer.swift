// What the kernel has reported of the processes of a run is in the memory of its recorder. Another tool that copies a trace of the run (`tracer
// control PID snapshot`) asks for it over a socket, whose name has the number of the run: that stands in each trace.
import CRecorder
import CTraceLayout
import Glibc
import Synchronization

/// A process, and since when. Sent as five words.
package struct ExcerptQuestion: Equatable {
    /// As its trace has it.
    var namespace: UInt64
    var pid: UInt32
    /// CLOCK_MONOTONIC, when its image had begun.
    var moment: UInt64
    /// CLOCK_MONOTONIC, as KernelExcerpt has it.
    var since: UInt64

    /// An answer is chunks, before each its size in bytes, and at the end a size of 0.
    private static let magic: UInt64 = 0x3130_5345_5453_5254 // "TRSTES01"
    package static let byteCount = 40
    private static let mostBytes = 1 << 30

    package init(namespace: UInt64, pid: UInt32, moment: UInt64, since: UInt64) {
        self.namespace = namespace
        self.pid = pid
        self.moment = moment
        self.since = since
    }
    /// nil: it is none.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        let words = bytes.withUnsafeBytes { bytes in (0..<5).map { bytes.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self) } }
        guard words[0] == Self.magic, let pid = UInt32(exactly: words[2]) else { return nil }
        self.init(namespace: words[1], pid: pid, moment: words[3], since: words[4])
    }
    package var bytes: [UInt8] {
        [Self.magic, namespace, UInt64(pid), moment, since].flatMap { word in withUnsafeBytes(of: word) { Array($0) } }
    }

    /// Asks whoever is at the other end. nil: the answer is not whole.
    package func ask(_ connection: Int32) -> [[UInt8]]? {
        guard Self.send(bytes, to: connection) else { return nil }
        var chunks: [[UInt8]] = [], total = 0
        while let size = Self.receive(8, from: connection)?.withUnsafeBytes({ $0.loadUnaligned(as: UInt64.self) }) {
            if size == 0 { return chunks }
            guard size <= UInt64(Self.mostBytes - total), let chunk = Self.receive(Int(size), from: connection) else { return nil }
            total += chunk.count
            chunks.append(chunk)
        }
        return nil
    }
    package static func answer(_ chunks: [[UInt8]], to connection: Int32) {
        for chunk in chunks where !chunk.isEmpty {
            guard send(size(chunk.count), to: connection), send(chunk, to: connection) else { return }
        }
        _ = send(size(0), to: connection)
    }
    private static func size(_ count: Int) -> [UInt8] { withUnsafeBytes(of: UInt64(count)) { Array($0) } }

    private static func send(_ bytes: [UInt8], to connection: Int32) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.send(connection, $0.baseAddress! + done, bytes.count - done, Int32(MSG_NOSIGNAL)) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
    package static func receive(_ byteCount: Int, from connection: Int32) -> [UInt8]? {
        let bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, filled in
            while filled < byteCount {
                let count = recv(connection, buffer.baseAddress! + filled, byteCount - filled, 0)
                if count < 0, errno == EINTR { continue }
                if count <= 0 { return }
                filled += count
            }
        }
        return bytes.count == byteCount ? bytes : nil
    }
}

/// Answers, on a thread of its own, for as long as the run is recorded.
final class ExcerptServer: Sendable {
    private let listener: Int32, wake: Int32, thread: pthread_t
    private let connection: Connection
    /// The one that is being answered; -1: none.
    private final class Connection: Sendable {
        let number = Mutex<Int32>(-1)
    }

    /// nil: the kernel reports nothing, or there is no socket to be had.
    init?(_ kernel: KernelWatch, session: UInt64) {
        guard kernel.isReporting else { return nil }
        let listener = recorder_listen(session), wake = recorder_make_wake(), connection = Connection()
        guard listener >= 0, wake >= 0, let thread = ToolThread.begin({ Self.serve(listener, wake, connection, kernel) }) else {
            for descriptor in [listener, wake] where descriptor >= 0 { close(descriptor) }
            return nil
        }
        self.listener = listener
        self.wake = wake
        self.thread = thread
        self.connection = connection
    }

    /// No more is answered: before the watch ends. Once.
    func end() {
        recorder_wake(wake)
        connection.number.withLock { if $0 >= 0 { shutdown($0, Int32(SHUT_RDWR)) } }
        pthread_join(thread, nil)
        close(listener)
        close(wake)
    }

    private static func serve(_ listener: Int32, _ wake: Int32, _ connection: Connection, _ kernel: KernelWatch) {
        while true {
            var waited = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0), pollfd(fd: wake, events: Int16(POLLIN), revents: 0)]
            poll(&waited, 2, -1)
            if waited[1].revents != 0 { return }
            let accepted = recorder_accept(listener)
            if accepted < 0 {
                usleep(10_000) // no descriptor is left, or somebody comes again and again who may not ask
                continue
            }
            connection.number.withLock { $0 = accepted }
            answer(accepted, kernel)
            connection.number.withLock {
                $0 = -1
                close(accepted)
            }
        }
    }
    private static func answer(_ connection: Int32, _ kernel: KernelWatch) {
        guard let question = ExcerptQuestion.receive(ExcerptQuestion.byteCount, from: connection).flatMap({ ExcerptQuestion($0) }) else {
            return
        }
        let isOurs = question.namespace != 0 && question.namespace == ProcessStatus.ownNamespace
        let excerpt = isOurs ? kernel.excerpt(of: pid_t(bitPattern: question.pid), at: question.moment, since: question.since) : nil
        ExcerptQuestion.answer(excerpt?.chunks ?? [], to: connection)
    }
}
