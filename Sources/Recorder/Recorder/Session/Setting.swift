// What a user can set: the agent's variables (TraceFormat/Variables.swift), without their types.
import TraceFormat

package struct Setting {
    package let name: String
    /// Empty: there is none.
    package let option: String
    /// Completes "give …".
    package let form: String
    /// The value in force when it is not set, as it is written; nil: it is no word and no number.
    package let standard: String?
    /// Returns how the variable's value is written, of a value as the user wrote it. nil: it is no such value.
    package let value: (String) -> String?

    private init<Grammar>(_ variable: Variable<Grammar>) {
        self.init(variable, standard: nil) { $1 }
    }
    private init<Grammar>(_ variable: Variable<Grammar>, as written: @escaping (Grammar.Value) -> String) {
        self.init(variable, standard: written(variable.standard)) { value, _ in written(value) }
    }
    private init<Grammar>(
        _ variable: Variable<Grammar>, standard: String?, _ written: @escaping (Grammar.Value, String) -> String
    ) {
        name = variable.name.description
        option = variable.option.description
        form = variable.form.description
        self.standard = standard
        value = { text in variable.read(text).map { written($0, text) } }
    }

    /// All of them, in the order of the manual (docs/reference/settings.md).
    package static var all: [Setting] {
        [
            Setting(Variables.output), Setting(Variables.maximumDepth, as: number), Setting(Variables.minimumTime),
            Setting(Variables.functions), Setting(Variables.minimumSize, as: number), Setting(Variables.keepsHot, as: word),
            Setting(Variables.callSites, as: word), Setting(Variables.arguments), Setting(Variables.include), Setting(Variables.exclude),
            Setting(Variables.maximumSize),
            Setting(Variables.mode) { Variables.ModeName.word($0).description }, Setting(Variables.keep), Setting(Variables.triggers),
            Setting(Variables.children, as: word),
            Setting(Variables.keepsAgent, as: word),
            Setting(Variables.cache, as: word), Setting(Variables.ready), Setting(Variables.start, as: word),
            Setting(Variables.quiet, as: word), Setting(Variables.clock),
        ]
    }
    private static func number(_ value: UInt32) -> String { String(value) }
    static func word(_ isOn: Bool) -> String { Variables.Switch.word(isOn).description }
}
