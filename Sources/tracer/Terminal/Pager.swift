// $PAGER between standard output and the terminal, as git has it: less -FRX ends by itself when all fits the screen.
import Glibc

struct Pager {
    private let process: pid_t
    let descriptor: Int32

    /// nil when there is none to start: output then goes to the terminal as it is.
    init?() {
        let chosen = getenv("PAGER").map { String(cString: $0) } ?? "less"
        guard !chosen.isEmpty, chosen != "cat" else { return nil }
        let program = chosen.split(separator: " ").first.map(String.init) ?? ""
        guard Self.isFound(program) else { return nil }
        setenv("LESS", "FRX", 0)
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) } // dup2 below makes one that stays
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
        defer { posix_spawn_file_actions_destroy(&actions) }
        let arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sh"), strdup("-c"), strdup(chosen), nil]
        defer { for argument in arguments { free(argument) } }
        var child: pid_t = 0
        let status = posix_spawn(&child, "/bin/sh", &actions, nil, arguments, environ)
        close(ends[0])
        guard status == 0 else {
            close(ends[1])
            return nil
        }
        process = child
        descriptor = ends[1]
        // Ctrl-C is the pager's now: ending before it would leave the terminal in its mode.
        signal(SIGINT, SIG_IGN)
        // A pager that was left early is no error.
        signal(SIGPIPE, SIG_IGN)
    }

    private static func isFound(_ program: String) -> Bool {
        if program.contains("/") { return access(program, X_OK) == 0 }
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return path.split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
    }

    /// Waits until its reader has seen enough.
    func finish() {
        close(descriptor)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
    }
}
