// What the descriptors and streams of one process refer to, call by call.

struct FileTable {
    enum Target: Sendable, Equatable {
        case file(String)
        /// A pipe, a socket, and so on.
        case other
    }
    struct Change: Sendable {
        /// Nanoseconds of the run.
        var at: Int64
        var descriptor: Int32
        /// nil: it was closed.
        var target: Target?
        var isClosedOnExec = false
    }

    private(set) var descriptors: [Int32: Target] = [:]
    /// Numbers that have been seen open: what they refer to later is known from calls alone.
    private(set) var seen: Set<Int32> = []
    private var streams: [UInt64: (target: Target, descriptor: Int32?)] = [:]
    /// The working directory; nil unknown.
    var folder: String?
    /// In the order of time, for children.
    private(set) var changes: [Change] = []
    private(set) var folders: [(at: Int64, path: String?)] = []

    /// A process of whose parent nothing is known.
    init(folder: String?) {
        self.folder = folder
        folders = [(.min, folder)]
    }

    /// A child, or another program in the same process, that begins at this moment.
    /// - Parameter isOther: it is another process, which has been executed, and what it did before that was not recorded: its standard
    ///   descriptors may be others
    init(of parent: FileTable, at moment: Int64, isExecuted: Bool, isOther: Bool, folder: String?) {
        self.init(folder: parent.folders.last { $0.at <= moment }?.path ?? folder)
        var open: [Int32: Change] = [:]
        for change in parent.changes where change.at <= moment { open[change.descriptor] = change }
        for (number, change) in open.sorted(by: { $0.key < $1.key }) {
            guard let target = change.target, !isExecuted || !change.isClosedOnExec && (number > 2 || !isOther) else { continue }
            set(number, target, isClosedOnExec: change.isClosedOnExec, at: .min)
        }
    }

    mutating func set(_ descriptor: Int32, _ target: Target?, isClosedOnExec: Bool = false, at moment: Int64) {
        descriptors[descriptor] = target
        seen.insert(descriptor)
        changes.append(Change(at: moment, descriptor: descriptor, target: target, isClosedOnExec: isClosedOnExec))
    }
    mutating func set(stream: UInt64, _ target: Target, descriptor: Int32?) { streams[stream] = (target, descriptor) }
    func target(ofStream stream: UInt64) -> Target? { streams[stream]?.target }
    mutating func close(stream: UInt64, at moment: Int64) {
        guard let found = streams.removeValue(forKey: stream), let number = found.descriptor, descriptors[number] == found.target else {
            return
        }
        set(number, nil, at: moment)
    }
    mutating func enter(_ path: String?, at moment: Int64) {
        folder = path
        folders.append((moment, path))
    }

    /// An absolute path, if the folder is known that it is relative to; otherwise the path as it is. Symbolic links, and "..", stay.
    func path(_ path: String, in folder: Int32) -> String {
        if path.hasPrefix("/") { return Self.plain(path) }
        if folder == FileCall.currentFolder { return self.folder.map { Self.plain($0 + "/" + path) } ?? path }
        guard case .file(let base) = descriptors[folder] else { return path }
        return Self.plain(base + "/" + path)
    }
    static func plain(_ path: String) -> String {
        if !path.contains("//") && !path.contains("/.") && !path.hasSuffix("/") { return path }
        return "/" + path.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
    }
}
