// The plans that a recording of functions needs, made before the program is started, or attached to (docs/guide/functions.md).
import ELF
import EntryPlan
import Foundation
import Glibc
import LaunchLab
import Presentation
import Recorder
import TraceFormat
import Unwinding

struct FunctionPlans {
    /// Values of `record --functions`: FUNCTION of the program, or MODULE!FUNCTION.
    let patterns: [String]
    /// Value of `record --cache`; nil: as the environment says.
    let mayKeep: Bool?

    /// Makes the plans, or finds them in the cache. A line says which are missing; the program is recorded without them.
    func prepare(for program: String, arguments: [String]) {
        guard let executable = Self.executable(ExecTarget.programOfLoader(program, arguments) ?? program) else { return }
        prepare(executable, called: program) { Self.linkedLibraries(executable) }
    }
    /// The same for a process that runs.
    func prepare(for pid: pid_t) {
        guard let executable = ProcessView.program(of: pid) else { return } // attaching says why
        prepare(executable, called: executable) { Self.libraries(of: pid, besides: executable) }
    }
    /// Files whose code a process has, without its program's.
    static func libraries(of pid: pid_t, besides executable: String) -> [String] {
        var known: Set<String> = [executable]
        return ProcessMaps(pid: pid).compactMap {
            $0.isExecutable && $0.path.hasPrefix("/") && known.insert($0.path).inserted ? $0.path : nil
        }
        .filter { !$0.hasSuffix(" (deleted)") && !$0.hasPrefix("/memfd:") }
    }

    private func prepare(_ executable: String, called program: String, _ findLibraries: () -> [String]) {
        // The agent reads plans from there alone.
        guard let cache = PlanCache(isWanted: mayKeep) else {
            return complain(
                "no plans are made, and functions without a plan are not recorded: plans are kept in the cache, but \(Self.whyNoCache(mayKeep))"
            )
        }
        let libraries = patterns.contains { $0.contains("!") } ? findLibraries() : []
        var plans: [String: ModulePlan?] = [:]
        for pattern in patterns {
            let bang = pattern.firstIndex(of: "!")
            let module = bang.map { String(pattern[..<$0]) }, name = bang.map { String(pattern[pattern.index(after: $0)...]) } ?? pattern
            let paths = ([executable] + libraries).filter { path in
                module.map { glob in Self.names(of: path).contains { fnmatch(glob, $0, 0) == 0 } } ?? (path == executable)
            }
            if paths.isEmpty {
                complain(
                    "\(program) is not linked with a library \(module ?? ""): if it opens one later, first make its plan (tracer plan FILE)"
                )
            }
            for path in paths where plans[path] == nil { plans[path] = .some(Self.plan(path, cache)) }
            let found = paths.compactMap { plans[$0] ?? nil }
            if !name.contains(where: { "*?".contains($0) }), found.contains(where: { Self.has(name + ResolverNames.ending, $0) }) {
                let all = "\(module.map { $0 + "!" } ?? "")*\(name)*"
                complain(
                    "\(name) is an IFUNC: the loader chooses one of several functions with other names; --functions '\(all)' records them")
            } else if !found.isEmpty, !found.contains(where: { Self.has(name, $0) }) {
                let all = "tracer plan \(paths.count == 1 ? paths[0] : "FILE") --all lists them"
                if Self.address(name) == nil, !name.isEmpty, found.contains(where: { Self.has("*\(name)*", $0) }) {
                    let wider = "\(module.map { $0 + "!" } ?? "")*\(name)*"
                    complain(
                        "no function has the name \(pattern) in the symbol table, where names of C++ and Rust are mangled: try --functions '\(wider)'"
                    )
                } else if Self.address(name) == nil {
                    complain("no function has the name \(pattern): \(all)")
                } else {
                    complain("no function begins at \(pattern): \(all)")
                }
            }
        }
    }

    private static func whyNoCache(_ mayKeep: Bool?) -> String {
        if mayKeep == false { return "--no-cache turns it off" }
        if mayKeep == nil, let text = getenv("\(Variables.cache.name)"), Variables.cache.read(String(cString: text)) == false {
            return "\(Variables.cache.name)=\(String(cString: text)) turns it off"
        }
        return "neither XDG_CACHE_HOME nor HOME says where it is"
    }

    private static func plan(_ path: String, _ cache: PlanCache) -> ModulePlan? {
        do throws(PlanProblem) {
            return try ModulePlan(path: path, cache: cache)
        } catch {
            complain("\(error.message); its functions are not recorded")
            return nil
        }
    }

    /// Compares as the agent does: by the names of the symbol table, or by the address as linked.
    private static func has(_ glob: String, _ plan: ModulePlan) -> Bool {
        let address = address(glob)
        return plan.file.withFunctions { all in
            all.contains { function in
                plan.file.address(of: function) == address || plan.file.names(of: function).contains { fnmatch(glob, $0, 0) == 0 }
            }
        }
    }
    private static func address(_ text: String) -> UInt64? { text.hasPrefix("0x") ? UInt64(text.dropFirst(2), radix: 16) : nil }

    /// Returns the file that the kernel will execute in the end: for a script its interpreter. nil: it cannot be read or found.
    static func executable(_ program: String) -> String? {
        var path = program
        for _ in 0..<5 {
            guard let file = FileHandle(forReadingAtPath: path), let start = try? file.read(upToCount: 256) else { return nil }
            guard start.starts(with: [0x23, 0x21]) else { return path } // #!
            let line = String(decoding: start.dropFirst(2).prefix { $0 != 10 }, as: UTF8.self)
            let words = line.split(separator: " ").map(String.init)
            guard let interpreter = words.first else { return nil }
            path = interpreter
            if interpreter.hasSuffix("/env"), let name = words.dropFirst().first(where: { !$0.hasPrefix("-") && !$0.contains("=") }),
                let found = try? ProgramLookup.path(of: name, searchPath: ProcessInfo.processInfo.environment["PATH"])
            {
                path = found
            }
        }
        return nil
    }

    /// Asks the loader itself, which knows all of its rules (ld.so(8), LD_TRACE_LOADED_OBJECTS): the program does not run.
    static func linkedLibraries(_ executable: String) -> [String] {
        guard let text = Subprocess.output("LD_TRACE_LOADED_OBJECTS=1", executable) else { return [] }
        var paths: [String] = []
        for word in text.split(whereSeparator: \.isWhitespace) where word.hasPrefix("/") { paths.append(String(word)) }
        return paths
    }

    /// Names of the module as the agent knows it: the last part of the path that it is loaded by, and that of the file. Libraries need
    /// others by their DT_SONAME.
    private static func names(of path: String) -> [String] {
        func last(_ path: String) -> String { String(path.split(separator: "/").last ?? "") }
        return [last(path)] + (resolvedPath(path).map { [last($0)] } ?? []) + (SharedLibrary(path: path)?.soname.map { [last($0)] } ?? [])
    }
}
