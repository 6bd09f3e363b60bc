// Lists of functions that were given while a process was recorded (`tracer control PID filter`): of the functions that could be recorded, those that
// they admit were.
import Presentation

package struct ChosenLists: Equatable, Sendable {
    package var functions: [String], include: [String], exclude: [String]

    package init(functions: [String], include: [String], exclude: [String]) {
        self.functions = functions
        self.include = include
        self.exclude = exclude
    }

    package var isEmpty: Bool { functions.isEmpty && include.isEmpty && exclude.isEmpty }
    /// As options of the command.
    package var text: String {
        [("--functions", functions), ("--include", include), ("--exclude", exclude)]
            .flatMap { option, globs in globs.map { "\(option) \(shellWord($0))" } }.joined(separator: " ")
    }
}
