// Hint for a trace of an interpreter: the functions of the program that it interprets call each other within the interpreter, through no
// slot of a module; the hint says what the trace shows instead, and what would show them.
import Presentation

extension TraceFile {
    private struct Interpreter {
        let language: String
        /// File names, without version, that identify it.
        let names: [String]
    }
    private static let interpreters = [
        Interpreter(language: "Python", names: ["python", "pypy"]), Interpreter(language: "JavaScript", names: ["node", "nodejs"]),
        Interpreter(language: "Java", names: ["java"]), Interpreter(language: "Ruby", names: ["ruby"]),
    ]

    /// One line; nil of other programs.
    package var interpreterHint: String? {
        let file = basename(program)
        let name = String(file.prefix { $0.isLetter }), version = file.dropFirst(name.count).split(separator: ".").map { Int($0) }
        guard !version.contains(nil), let interpreter = Self.interpreters.first(where: { $0.names.contains(name) }) else { return nil }
        return
            "\(file): these are calls between its libraries, not functions written in \(interpreter.language); "
            + "to see those, use: \(command(interpreter, file, version.compactMap { $0 }))"
    }

    /// With what the program was started with, where that is known.
    private func command(_ interpreter: Interpreter, _ file: String, _ version: [Int]) -> String {
        /// - Parameter isForScripts: and for nothing else, so that other arguments are left to the reader
        func words(_ options: String, isForScripts: Bool = false) -> String {
            let isKnown = !isForScripts || arguments.count > 1 && !arguments[1].hasPrefix("-")
            let given = isKnown ? arguments.dropFirst().map { shellWord($0) } : []
            let program = arguments.first.map { $0.isEmpty ? file : shellWord($0) } ?? file
            return ([program, options] + (given.isEmpty ? ["…"] : given)).joined(separator: " ")
        }
        switch interpreter.language {
        case "Python" where file.hasPrefix("python") && (version.count < 2 || version[0] > 3 || version[0] == 3 && version[1] >= 12):
            return "perf record -g \(words("-X perf"))" // trampolines that perf can name, of Python 3.12
        case "Python": return words("-m cProfile -s cumulative", isForScripts: true)
        case "JavaScript": return "perf record -g \(words("--perf-basic-prof"))"
        case "Java": return words("-XX:StartFlightRecording=filename=app.jfr") + ", then jfr print app.jfr"
        // Its own profilers are gems; YJIT, of 3.3 and later, names what it compiles.
        default: return "perf record -g \(words("--yjit --yjit-perf"))"
        }
    }
}
