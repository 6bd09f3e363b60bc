// Programs that are executed: one whose address space is limited is not given the agent, and where the user wants it (--keep-agent), one that is
// executed with another environment gets the agent and its settings back (CSupport/executions.c).
import CSupport

enum Executions {
    /// `isKept`: programs that it executes get back what its environment has of ours.
    static func begin(_ environment: UnsafeMutablePointer<CText?>, isKept: Bool) {
        let entries = UnsafeRawPointer(environment).assumingMemoryBound(to: UnsafeMutablePointer<CChar>?.self)
        if isKept { _ = tracer_keep_environment(entries, { Memory.pages($0) }) } else { _ = tracer_keep_environment(entries, nil) }
    }

    private static func number(_ name: Name) -> Int32 {
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
