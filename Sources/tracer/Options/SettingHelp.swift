// Help of an option that sets a variable of the agent's.
import ArgumentParser
import TraceFormat

extension ArgumentHelp {
    /// As the table of variables has it, and the variable's name.
    static func setting<Grammar>(_ variable: Variable<Grammar>, default standard: String? = nil) -> ArgumentHelp {
        ArgumentHelp(
            "\(variable.help) \(variable.name)\(standard.map { ", default \($0)" } ?? "").",
            valueName: variable.valueName.utf8CodeUnitCount == 0 ? nil : variable.valueName.description)
    }
}
