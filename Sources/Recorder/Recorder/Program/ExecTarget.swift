// Decides, before anything is started, what exec will be called with and whether the agent can live in the result.
import CRecorder
import ELF
import Glibc

/// Path and first arguments that exec is called with.
package struct ExecTarget: Equatable, Sendable {
    package var path: String
    /// argv[0], and what precedes the user's own arguments.
    package var leadingArguments: [String]

    package init(path: String, leadingArguments: [String]) {
        self.path = path
        self.leadingArguments = leadingArguments
    }
}

extension ExecTarget {
    static let ownArchitecture = UInt16(RECORDER_ARCHITECTURE)
    package static let ownArchitectureName = RECORDER_ARCHITECTURE_NAME

    /// `program` is its name or path as the user typed it. Throws a `Refusal` when it cannot be started or not be
    /// traced.
    package init(program name: String, searchPath: String?, identity: Identity) throws(Refusal) {
        let path = try ProgramLookup.path(of: name, searchPath: searchPath)
        let file = try ProgramFile(path: path)
        if file.format == .text {
            // execvp(3): what the kernel does not know is given to the shell.
            self.init(path: "/bin/sh", leadingArguments: ["sh", path])
            try ExecTarget.check(try ProgramFile(path: "/bin/sh"), calledBy: path, identity, searchPath, scripts: 0)
        } else {
            self.init(path: path, leadingArguments: [name])
            try ExecTarget.check(file, calledBy: nil, identity, searchPath, scripts: 0)
        }
    }

    /// Finds a program to be launched without the agent, for the sake of its own text. Throws a `Refusal` for a script.
    package init(withText name: String, searchPath: String?) throws(Refusal) {
        let file = try ProgramFile(path: try ProgramLookup.path(of: name, searchPath: searchPath))
        switch file.format {
        case .elf(ExecTarget.ownArchitecture, _): self.init(path: file.path, leadingArguments: [name])
        case .elf(let elfMachine, _):
            throw .cannotRun(
                "\(file.path) is for another CPU architecture (\(ExecTarget.architectureName(elfMachine))), not \(ExecTarget.ownArchitectureName)"
            )
        case .damaged(let reason): throw .cannotRun("\(file.path) cannot be executed: \(reason)")
        case .script, .text: throw .cannotRun("\(file.path) is a script: name its interpreter, and give it the script as an argument")
        case .elf32, .elfOtherByteOrder, .unknown:
            throw .cannotRun("\(file.path) is not a 64-bit ELF program for \(ExecTarget.ownArchitectureName)")
        }
    }

    /// Linux follows four #! lines from one exec (fs/exec.c, exec_binprm: depth > 5 is ELOOP).
    private static let maximumScripts = 4

    private static func check(
        _ file: ProgramFile, calledBy script: String?, _ identity: Identity, _ searchPath: String?,
        scripts: Int
    ) throws(Refusal) {
        let subject = script.map { "\(file.path), the interpreter of \($0)," } ?? file.path
        switch file.format {
        case .script(let interpreter, let argument):
            guard scripts < maximumScripts else {
                throw .cannotRun("\(file.path): a chain of more than \(maximumScripts) scripts, each the interpreter of the one before")
            }
            let next: ProgramFile
            do {
                next = try ProgramFile(path: interpreter)
            } catch {
                throw .cannotRun("the interpreter in the #! line of \(file.path) cannot be used: \(error.message)")
            }
            try check(next, calledBy: file.path, identity, searchPath, scripts: scripts + 1)
            // `#!/usr/bin/env NAME`: env goes on to exec NAME, which is what the user means to trace.
            if interpreter.hasSuffix("/env"),
                let name = argument?.split(separator: " ").first(where: {
                    !$0.hasPrefix("-") && !$0.contains("=")
                }), let path = try? ProgramLookup.path(of: String(name), searchPath: searchPath),
                let target = try? ProgramFile(path: path)
            {
                try check(target, calledBy: file.path, identity, searchPath, scripts: scripts + 1)
            }
        case .elf(let elfMachine, let loader):
            guard elfMachine == ownArchitecture else {
                throw .cannotRun(
                    "\(subject) is for another CPU architecture (\(architectureName(elfMachine))); this tracer traces \(ownArchitectureName) programs"
                )
            }
            guard let loader else {
                guard !isLoader(file.path) else { return }
                throw .cannotRun("\(subject) is statically linked: nothing can be preloaded into it; link it dynamically to trace it")
            }
            if loader.contains("musl") {
                throw .cannotRun("\(subject) uses musl (\(loader)): the agent needs the GNU C library; build it against glibc to trace it")
            }
            guard access(loader, X_OK) == 0 else {
                throw .cannotRun("\(subject) needs the loader \(loader), which was not found: install the C library it was built for")
            }
            if let reason = file.privileges.secureReason(for: identity) {
                throw .cannotRun(
                    "\(subject) \(reason), so the loader ignores preloaded libraries: trace it as that user, or a copy without the privilege"
                )
            }
        case .elf32:
            throw .cannotRun("\(subject) is a 32-bit program; this tracer traces 64-bit programs: build it for \(ownArchitectureName)")
        case .elfOtherByteOrder:
            throw .cannotRun("\(subject) is a big-endian program; this tracer traces \(ownArchitectureName) programs")
        case .damaged(let reason):
            throw .cannotRun("\(subject) cannot be executed: \(reason)")
        case .text, .unknown:
            // As an interpreter, or with a binary format that the kernel was taught (binfmt_misc): exec will show.
            return
        }
    }

    /// The loader itself can be called as a program, and honours LD_PRELOAD; it has no PT_INTERP.
    static func isLoader(_ path: String) -> Bool {
        let name = resolvedPath(path)?.split(separator: "/").last ?? ""
        return name.hasPrefix("ld-linux") || name.hasPrefix("ld-2.") || name == "ld.so"
    }

    /// Options of the loader that take a value (glibc elf/rtld.c, dl_main; ld.so(8)).
    private static let loaderOptions: Set<String> = [
        "--library-path", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask", "--inhibit-rpath", "--audit", "--preload", "--argv0",
    ]

    /// The program that the loader will start with these arguments; nil: `path` is not the loader, or it starts none.
    package static func programOfLoader(_ path: String, _ arguments: [String]) -> String? {
        guard isLoader(path) else { return nil }
        var rest = arguments[...]
        while let first = rest.first, first.hasPrefix("--") { rest = rest.dropFirst(loaderOptions.contains(first) ? 2 : 1) }
        return rest.first
    }

    private static func architectureName(_ elfMachine: UInt16) -> String {
        switch elfMachine {
        case 62: "x86_64"
        case 183: "aarch64"
        case 243: "RISC-V"
        case 21: "PowerPC 64"
        case 22: "s390x"
        case 258: "LoongArch"
        default: "ELF machine \(elfMachine)"
        }
    }
}
