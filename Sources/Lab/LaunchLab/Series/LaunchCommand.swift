// The command that is launched.
import Presentation

package struct LaunchCommand: Sendable {
    /// As the user typed it.
    package var words: [String]
    package init(words: [String]) { self.words = words }

    /// A shell's idea of words, for a command that was given as one argument: blanks separate, quotes and backslashes
    /// keep together. No variables, no globs. nil when a quote is left open.
    package init?(text: String) {
        var words: [String] = [], word: String?, quote: Character?, escaped = false
        for character in text {
            if escaped {
                word = (word ?? "") + String(character)
                escaped = false
            } else if character == "\\", quote != "'" {
                escaped = true
            } else if let open = quote {
                if character == open { quote = nil } else { word = (word ?? "") + String(character) }
            } else if character == "'" || character == "\"" {
                quote = character
                word = word ?? ""
            } else if character.isWhitespace {
                if let done = word { words.append(done) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        if quote != nil || escaped { return nil }
        if let done = word { words.append(done) }
        self.words = words
    }

    package var text: String { shellCommand(words) }
}
