// Programs that are executed with another environment: where the user wants it (--keep-agent), they get the agent and its settings back
// (CSupport/executions.c).
import CSupport

enum Executions {
    nonisolated(unsafe) private(set) static var areKept = false

    /// Keeps what this process's environment has of ours.
    static func begin(_ environment: UnsafeMutablePointer<CText?>) {
        let entries = UnsafeRawPointer(environment).assumingMemoryBound(to: UnsafeMutablePointer<CChar>?.self)
        areKept = tracer_keep_environment(entries, { Memory.pages($0) }) != 0
    }

    /// Returns true if the name is that of a function that executes a program, and those are to keep the agent.
    @inline(__always) static func isOne(_ name: Name) -> Bool { areKept && number(name) >= 0 }
    @inline(never) private static func number(_ name: Name) -> Int32 {
        tracer_execution(UnsafeRawPointer(name.text).assumingMemoryBound(to: CChar.self))
    }

    /// Returns the agent's function that calls the one at `target` with the whole environment; `target` where there is none.
    @inline(never) static func target(_ target: UInt64, _ name: Name, in owner: UnsafePointer<Image>) -> UInt64 {
        guard let execve = Image.function("execve", of: owner), let execvpe = Image.function("execvpe", of: owner) else { return target }
        return tracer_replace_execution(number(name), target, execve, execvpe)
    }

    /// The variable in which the program has its environment: its own if it refers to it (a copy relocation), else libc's. In the global
    /// scope the first one.
    static var environmentName: StaticString { "environ" }
}
