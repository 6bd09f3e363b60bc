// Argument plans: which arguments `tracer record --arguments` records, in a file of the cache, from which the agent reads it.
import CTraceLayout
import ELF
import Glibc
import Presentation
import Recorder
import TraceAnalysis
import TraceFormat

struct ArgumentPlans {
    /// Values of --arguments, --prototypes, and --hide.
    let lists: [String], prototypes: [String], hidden: [String]
    /// What calls of certain functions must be: to be recorded, or to ask for a snapshot.
    var conditions: [CallCondition] = []
    var purpose = ArgumentChoice.Purpose.keep
    /// Functions that `tracer files` needs.
    let files: Files
    enum Files { case none, cheap, all }
    /// Value of --cache; nil: as the environment says.
    let mayKeep: Bool?
    let program: Program
    /// Functions of the program, and of its libraries, may be meant.
    enum Program {
        /// As it was given, with its arguments.
        case command([String])
        /// It runs.
        case process(pid_t)
        case any
    }
    let isQuiet: Bool

    /// Older plans go when there are more.
    private static let most = 64

    /// Functions that the user names.
    private var named: [String] { lists + conditions.compactMap(\.function) }
    private var added: [String] {
        switch files {
        case .none: []
        case .cheap: [ArgumentChoice.files]
        case .all: [ArgumentChoice.files, ArgumentChoice.lookUps]
        }
    }

    /// Path of the plan for calls that use files, where nobody has asked for another; nil: there is none, as without a cache.
    static var ofFiles: String? {
        guard isFreeByDefault else { return nil }
        let plans = ArgumentPlans(lists: [], prototypes: [], hidden: [], files: .cheap, mayKeep: nil, program: .any, isQuiet: true)
        return plans.hasFolder ? (try? plans.make())?.path : nil
    }

    /// False where the environment has a plan, or has the agent record these calls by its slow path: it does so only if it is asked to.
    static var isFreeByDefault: Bool {
        ![Variables.arguments.name, Variables.minimumTime.name, Variables.callSites.name, Variables.mode.name].contains { name in
            getenv("\(name)").map { !["", "0"].contains(String(cString: $0)) } ?? false
        }
    }

    /// There is somewhere to put the plan.
    var hasFolder: Bool { Self.folder(mayKeep) != nil }

    struct Plan {
        /// Absolute.
        var path: String
        /// Functions with conditions that are not the C library's, by their symbols.
        var functions: [String] = []
        /// Symbols of all functions that conditions speak of, by the functions that they name.
        var meant: [String: [String]] = [:]
    }

    /// Makes the plan, or finds the same one.
    func make() throws -> Plan {
        if !lists.isEmpty && lists.allSatisfy({ ArgumentChoice.items($0).isEmpty }) {
            throw CommandFailure("--arguments: name at least one function", status: 2)
        }
        guard let folder = Self.folder(mayKeep) else {
            throw CommandFailure(
                "--\(!conditions.isEmpty ? "when" : lists.isEmpty ? "files" : "arguments") needs the cache, where the agent reads what to record: set HOME, and leave out --no-cache",
                status: 2)
        }
        // The tool's own prototypes take milliseconds to read: a plan that nothing else goes into has a name of its own.
        let usual = isUsual ? "\(folder)/\(prefix)\(ArgumentChoice.version)" : nil
        if let usual, Self.isWhole(usual) { return Plan(path: usual) }
        var choice: ArgumentChoice
        let modules = modules
        var debugged: String?
        do throws(ArgumentChoice.Problem) {
            let globs = hidden.flatMap { $0.split(separator: ",").map(String.init) }, texts = try texts()
            // Reading debug information may take seconds: a plan that it goes into has a name of what it was made of.
            if !modules.isEmpty, conditions.isEmpty {
                let parts =
                    [ArgumentChoice.version, Self.toolStamp] + lists + added + globs + texts.flatMap { [$0.path, $0.text] }
                    + modules.map(\.stamp)
                let path = "\(folder)/modules-\(ArgumentChoice.hash(of: Array(parts.joined(separator: "\0").utf8)))"
                if Self.isWhole(path) {
                    say(Self.notes(path))
                    return Plan(path: path)
                }
                debugged = path
            }
            // What the user says of a function goes first.
            choice = try ArgumentChoice(lists: named + added, files: texts, hidden: globs, modules: modules)
            try choice.set(conditions, for: purpose)
        } catch {
            switch error {
            case .malformed(let text): throw CommandFailure(text, status: 2)
            case .prototype(let text): throw CommandFailure("--arguments \(text)", status: 2)
            case .condition(let text): throw CommandFailure("--when \(text)", status: 2)
            case .unknown(let item, let reason, let nearest):
                let known = nearest.map { "; there is \($0)" } ?? ""
                if let condition = conditions.first(where: { $0.function == item }) {
                    throw CommandFailure(
                        "--when '\(condition.text)': no prototype of \(item) is known\(known): give one, such as --arguments '\(item)(\(condition.subject.example)'",
                        status: 2)
                }
                let example = item.contains("*") ? "f" : item
                throw CommandFailure(
                    "--arguments '\(item)': no prototype is known by this name\(reason.map { " (\($0))" } ?? "")\(known): give one, such as '\(example)(path: string, count: int) -> int'",
                    status: 2)
            }
        }
        guard let content = choice.plan else {
            throw CommandFailure("--arguments: \(grouped(choice.functions.count)) functions are too many: choose fewer", status: 2)
        }
        say(choice.notes)
        let path = usual ?? debugged ?? "\(folder)/\(prefix)\(ArgumentChoice.hash(of: content))"
        if !write(content, to: path) {
            throw CommandFailure("--arguments: \(path) cannot be written: \(String(cString: strerror(errno)))", status: 126)
        }
        Self.removeOldest(folder, besides: path)
        let named = Set(conditions.compactMap(\.function))
        return Plan(
            path: path, functions: choice.namesWithConditions,
            meant: Dictionary(uniqueKeysWithValues: named.map { ($0, choice.names(of: $0)) }))
    }

    /// Modules with functions of which arguments may be wanted: the program, and the libraries that it is linked with, or has.
    private var modules: [ModuleFunctions] {
        if ArgumentChoice.soughtInModules(named).isEmpty { return [] }
        let executable: String, libraries: [String]
        switch program {
        case .command(let words):
            guard let name = words.first,
                let path = try? ProgramLookup.path(of: name, searchPath: getenv("PATH").map { String(cString: $0) }),
                let found = FunctionPlans.executable(ExecTarget.programOfLoader(path, Array(words.dropFirst())) ?? path)
            else { return [] }
            (executable, libraries) = (found, FunctionPlans.linkedLibraries(found))
        case .process(let pid):
            guard let found = ProcessView.program(of: pid) else { return [] } // attaching says why
            (executable, libraries) = (found, FunctionPlans.libraries(of: pid, besides: found))
        case .any: return []
        }
        guard let program = ModuleFunctions(path: executable) else { return [] }
        return [program] + libraries.compactMap { ModuleFunctions(path: $0) }.filter { !$0.isLibc }
    }

    private func say(_ notes: [String]) {
        if !isQuiet { for note in notes { complain(note) } }
    }
    /// What was said when the plan was made.
    private static func notes(_ path: String) -> [String] {
        guard let text = content(path).map({ Array($0) }), text.count >= MemoryLayout<arguments_file>.size else { return [] }
        let header = text.withUnsafeBytes { $0.loadUnaligned(as: arguments_file.self) }
        guard header.notes <= text.count else { return [] }
        return String(decoding: text[Int(header.notes)...], as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// The agent says nothing of what it cannot record of a plan that nobody has asked for.
    private var prefix: String {
        let isAsked = !lists.isEmpty || !conditions.isEmpty
        return isAsked ? "" : files == .cheap ? "\(ArgumentPlanName.byDefault)" : "files-"
    }
    private var isUsual: Bool {
        lists.isEmpty && conditions.isEmpty && prototypes.isEmpty && hidden.isEmpty
            && Self.ownPrototypes.map { access($0, F_OK) != 0 } ?? true
    }
    /// Returns true if the file is the user's own and as long as it says.
    private static func isWhole(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var status = stat(), header = arguments_file()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(), status.st_mode & 0o022 == 0,
            read(descriptor, &header, MemoryLayout<arguments_file>.size) == MemoryLayout<arguments_file>.size
        else { return false }
        return header.magic == UInt64(ARGUMENTS_MAGIC) && header.version == UInt32(ARGUMENTS_VERSION)
            && Int(header.byte_count) == status.st_size
    }

    /// The user's own prototypes, and those of --prototypes.
    private func texts() throws(ArgumentChoice.Problem) -> [(path: String, text: String)] {
        var texts: [(path: String, text: String)] = []
        if let own = Self.ownPrototypes, let text = Self.content(own) { texts.append((own, String(decoding: text, as: UTF8.self))) }
        for path in prototypes {
            guard let text = Self.content(path) else { throw .malformed("--prototypes \(path): \(String(cString: strerror(errno)))") }
            texts.append((path, String(decoding: text, as: UTF8.self)))
        }
        return texts
    }
    /// $XDG_CONFIG_HOME/tracer/prototypes (XDG Base Directory Specification).
    private static var ownPrototypes: String? {
        if let folder = getenv("XDG_CONFIG_HOME"), folder.pointee == 0x2f { return String(cString: folder) + "/tracer/prototypes" }
        return getenv("HOME").map { String(cString: $0) + "/.config/tracer/prototypes" }
    }
    private static func content(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = [], buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        return ferror(file) == 0 ? bytes : nil
    }

    /// Another build of the tool may read debug information otherwise.
    private static var toolStamp: String {
        var status = stat()
        return stat("/proc/self/exe", &status) == 0 ? "\(status.st_size) \(status.st_mtim.tv_sec) \(status.st_mtim.tv_nsec)" : ""
    }

    /// As the agent finds the cache (CacheHome.swift).
    private static func folder(_ mayKeep: Bool?) -> String? {
        let isOn = mayKeep ?? getenv("\(Variables.cache.name)").flatMap { Variables.cache.read(String(cString: $0)) } ?? true
        guard isOn else { return nil }
        let base: String
        if let folder = getenv("XDG_CACHE_HOME"), folder.pointee == 0x2f {
            base = String(cString: folder)
        } else if let home = getenv("HOME"), home.pointee == 0x2f {
            base = String(cString: home) + "/.cache"
        } else {
            return nil
        }
        var path = base
        mkdir(path, 0o700)
        for part in ["tracer", "arguments"] {
            path += "/" + part
            mkdir(path, 0o700)
        }
        return path
    }

    /// A plan of this name has this content, unless somebody has damaged it.
    private func write(_ content: [UInt8], to path: String) -> Bool {
        let new = path + ".\(getpid())"
        let descriptor = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return false }
        let isWritten = content.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) == $0.count }
        if close(descriptor) == 0, isWritten, rename(new, path) == 0 { return true }
        unlink(new)
        return false
    }

    private static func removeOldest(_ folder: String, besides kept: String) {
        guard let entries = opendir(folder) else { return }
        defer { closedir(entries) }
        var plans: [(path: String, seconds: Int)] = []
        while let entry = readdir(entries) {
            let path =
                folder + "/"
                + withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
            var status = stat()
            guard path != kept, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
            plans.append((path, status.st_mtim.tv_sec))
        }
        for plan in plans.sorted(by: { $0.seconds > $1.seconds }).dropFirst(most - 1) { unlink(plan.path) }
    }
}

extension CallSubject {
    /// How it is written in a prototype.
    fileprivate var example: String {
        switch self {
        case .argument(let name): "\(name): int)"
        case .result: ") -> int"
        case .errno: ") -> int errno"
        }
    }
}
