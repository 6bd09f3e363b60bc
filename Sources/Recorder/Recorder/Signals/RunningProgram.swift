// The program as a child of the tool: started with the signals the tool inherited, waited for, its end reported.
import CRecorder
import Glibc
import TraceFormat

package struct RunningProgram {
    package let pid: pid_t

    /// A child of ours that is already there.
    init(pid: pid_t) { self.pid = pid }

    package enum Change: Equatable, Sendable {
        case stopped(signal: Int32)
        case continued
        case ended(ProcessExit)
    }

    /// A directory that is named by the process id, and by a variable of the program's environment.
    struct NumberedDirectory {
        /// Path up to the number.
        var start: String
        /// NAME=VALUE up to the number, and from there on.
        var variable: String, ending: String
    }

    package init(_ path: String, _ arguments: [[CChar]], environment: ProgramEnvironment) throws(Refusal) {
        var number = ""
        try self.init(path, arguments, environment: environment, directory: nil, number: &number)
    }

    /// Throws a `Refusal` with the shell's statuses when exec fails. `number` is what the directory's name ends in. `prepare` is called
    /// with the process, which has not called exec yet.
    init(
        _ path: String, _ arguments: [[CChar]], environment: ProgramEnvironment, directory: NumberedDirectory?, number: inout String,
        prepare: (pid_t) -> Void = { _ in }
    ) throws(Refusal) {
        var pid: pid_t = -1, attempt: Int32 = 0
        let error = withCStrings(arguments) { arguments in
            withCStrings(environment.entries) { variables in
                // Changed by the child, in memory of its own.
                let variables = UnsafeMutablePointer(mutating: variables)
                guard let directory else {
                    return Self.spawn(path, arguments, variables, nil, prepare, &pid)
                }
                return withCStrings([directory.start, directory.variable, directory.ending].map { Array($0.utf8CString) }) { texts in
                    var wanted = recorder_directory(start: texts[0], variable: texts[1], ending: texts[2], attempt: 0)
                    defer { attempt = wanted.attempt }
                    return Self.spawn(path, arguments, variables, &wanted, prepare, &pid)
                }
            }
        }
        if let directory, attempt < 0 {
            throw .cannotRun(
                "cannot create the directory \(directory.start)PID: \(String(cString: strerror(error))); choose another with -o")
        }
        number = attempt > 0 ? "\(pid).\(attempt + 1)" : "\(pid)"
        switch error {
        case 0: self.pid = pid
        case ENOENT: throw .notFound("\(path): \(String(cString: strerror(error)))")
        case ENOEXEC: throw .cannotRun("\(path) is not a program that this system can run")
        default: throw .cannotRun("\(path) cannot be started: \(String(cString: strerror(error)))")
        }
    }

    private static func spawn(
        _ path: String, _ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>,
        _ variables: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, _ directory: UnsafeMutablePointer<recorder_directory>?,
        _ prepare: (pid_t) -> Void, _ pid: inout pid_t
    ) -> Int32 {
        withoutActuallyEscaping(prepare) { prepare in
            var prepare = prepare // called before recorder_spawn returns
            return withUnsafeMutablePointer(to: &prepare) {
                recorder_spawn(
                    path, arguments, variables, Variables.exec.name.description, directory,
                    { $1!.assumingMemoryBound(to: ((pid_t) -> Void).self).pointee($0) }, $0, &pid)
            }
        }
    }

    /// Returns the next change of the program; nil when there is none. Never waits.
    package func nextChange() -> Change? {
        var status: Int32 = 0
        var result: pid_t
        repeat { result = waitpid(pid, &status, WNOHANG | WUNTRACED | WCONTINUED) } while result < 0 && errno == EINTR
        return result == pid ? Change(waitStatus: status) : nil
    }

    /// Ends the zombies of what the agent started beside the program, as children of ours, so that the program has no part in it
    /// (FileJob.swift).
    func reapSiblings() {
        while true {
            var info = siginfo_t()
            guard waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 else { return }
            let ended = info._sifields._sigchld.si_pid
            // The program's own end is reported by `nextChange` first.
            guard ended != 0, ended != pid, waitpid(ended, nil, WNOHANG) == ended else { return }
        }
    }

    /// True if `nextChange` has something to report.
    package var hasChanged: Bool {
        var info = siginfo_t() // waitid(2): si_pid stays 0 when nothing has happened
        var result: Int32
        repeat {
            result = waitid(P_PID, id_t(pid), &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT)
        } while result < 0 && errno == EINTR
        return result == 0 && info._sifields._sigchld.si_pid == pid
    }
}

extension RunningProgram.Change {
    /// wait(2)'s status word, which C takes apart with macros.
    package init?(waitStatus status: Int32) {
        let low = status & 0x7f
        if status == 0xffff {
            self = .continued
        } else if status & 0xff == 0x7f {
            self = .stopped(signal: status >> 8 & 0xff)
        } else if low == 0 {
            self = .ended(.exited(status: status >> 8 & 0xff))
        } else {
            self = .ended(.killed(signal: low))
        }
    }
}

/// Calls `body` with a NULL-terminated array of the strings, each already ended by a NUL.
package func withCStrings<R>(_ strings: [[CChar]], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R) -> R {
    var bytes = strings.flatMap { $0 }
    if bytes.isEmpty { bytes = [0] }
    return bytes.withUnsafeMutableBufferPointer { buffer in
        var pointers: [UnsafeMutablePointer<CChar>?] = []
        var offset = 0
        for string in strings {
            pointers.append(buffer.baseAddress! + offset) // within the buffer: it holds all strings one after another
            offset += string.count
        }
        pointers.append(nil)
        return body(pointers)
    }
}
