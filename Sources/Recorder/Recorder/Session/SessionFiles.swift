// The trace files of one run: found by what their headers say, wherever the template puts them.
import CTraceLayout
import Glibc

/// Watches the output directory for the files of the run's processes. A process that calls exec begins another one.
package final class FileWatch {
    private let template: OutputTemplate
    private let session: UInt64
    /// Readable when a file has appeared; -1 where there is no such watch.
    let notifications: Int32
    /// Seen, but not yet with a header that can be read; with the number of looks left.
    private var candidates: [String: Int] = [:]
    private var found: Set<String> = []
    private var looksUntilScan = 1

    /// A file may be seen before its header is complete: at the run loop's longest interval these are ten seconds.
    private static let looksForHeader = 100

    /// To be made before the process starts, so that it cannot make its file unseen.
    package init(template: OutputTemplate, session: UInt64) {
        self.template = template
        self.session = session
        var notifications = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        if notifications >= 0,
            inotify_add_watch(notifications, template.directory, UInt32(IN_CREATE | IN_MOVED_TO | IN_ONLYDIR)) < 0
        {
            close(notifications)
            notifications = -1
        }
        self.notifications = notifications
    }

    deinit { if notifications >= 0 { close(notifications) } }

    /// Some file appeared a moment ago and has no header yet.
    package var isExpecting: Bool { candidates.values.contains { $0 > FileWatch.looksForHeader - 10 } }
    static let expectingNanoseconds: UInt64 = 200_000

    /// Takes up the files that were there before the watch.
    func scan() {
        for name in SessionFiles.names(template) { candidates[name] = FileWatch.looksForHeader }
    }

    /// The header of a file that was not found before.
    package func next() -> TraceHeader? {
        readNotifications()
        for (name, looks) in candidates {
            let path = template.directory + "/" + name
            if let header = TraceHeader(path: path) {
                candidates[name] = nil
                if header.current.session == session, found.insert(name).inserted { return header }
            } else if looks <= 1 {
                candidates[name] = nil
            } else {
                candidates[name] = looks - 1
            }
        }
        return nil
    }

    /// inotify(7): records of 16 bytes, each followed by a name padded with NULs.
    private func readNotifications() {
        guard notifications >= 0 else {
            // No watch to be had (fs.inotify.max_user_instances): look into the directory, less and less often.
            looksUntilScan -= 1
            if looksUntilScan == 0 {
                scan()
                looksUntilScan = 16
            }
            return
        }
        var bytes = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let got = read(notifications, &bytes, bytes.count)
            guard got > 0 else { return }
            var offset = 0
            while offset + 16 <= got {
                let mask = bytes[offset + 4..<offset + 8].reversed().reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
                let nameBytes = Int(bytes[offset + 12..<offset + 16].reversed().reduce(0 as UInt32) { $0 << 8 | UInt32($1) })
                guard nameBytes <= got - offset - 16 else { return }
                if mask & UInt32(IN_Q_OVERFLOW) != 0 { scan() }
                let name = String(decoding: bytes[(offset + 16)..<(offset + 16 + nameBytes)].prefix { $0 != 0 }, as: UTF8.self)
                if !name.isEmpty, template.mayName(name) {
                    found.remove(name) // made anew
                    candidates[name] = FileWatch.looksForHeader
                }
                offset += 16 + nameBytes
            }
        }
    }
}

package enum SessionFiles {
    /// Fields of a file's header. The file itself is closed: a run may have more files than a process may have open.
    package struct Entry {
        package var path: String
        package var pid: UInt32
        /// In which `pid` counts (`trace_file_header`).
        package var namespace: UInt64
        package var begun: UInt64

        package init(path: String, pid: UInt32, namespace: UInt64, begun: UInt64) {
            (self.path, self.pid, self.namespace, self.begun) = (path, pid, namespace, begun)
        }
    }

    /// Names in the output directory that the template may have given.
    static func names(_ template: OutputTemplate) -> [String] {
        (RunDirectory.names(in: template.directory) ?? []).filter { template.mayName($0) }
    }

    /// Every file of the session, the oldest first.
    package static func all(_ template: OutputTemplate, session: UInt64) -> [Entry] {
        names(template).compactMap { name -> Entry? in
            guard let header = TraceHeader(path: template.directory + "/" + name) else { return nil }
            let state = header.current
            guard state.session == session else { return nil }
            return Entry(path: header.path, pid: state.pid, namespace: state.pid_namespace, begun: state.first.monotonic_ns)
        }.sorted { ($0.begun, $0.path) < ($1.begun, $1.path) }
    }
}
