// What is launched, and under which conditions every launch is the same.
import CLaunch
import Glibc
import Recorder

public struct LaunchCommand: Sendable {
    /// As the user typed it.
    public var words: [String]
    public init(words: [String]) { self.words = words }

    /// A shell's idea of words, for a command that was given as one argument: blanks separate, quotes and backslashes
    /// keep together. No variables, no globs. nil when a quote is left open.
    public init?(text: String) {
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

    public var text: String {
        words.map { word in
            word.isEmpty || word.contains { !($0.isLetter || $0.isNumber || "-_./=:,+@%".contains($0)) }
                ? "'" + word.replacing("'", with: "'\\''") + "'" : word
        }.joined(separator: " ")
    }
}

public struct LaunchControls: Sendable {
    /// The only processor that the program may use; nil any.
    public var processor: Int?
    public var hasFixedAddresses = false
    public var keepsOutput = false
    /// Only PATH, HOME, LANG, TERM, USER and what the user names, so that two shells give the same launches.
    public var hasFixedEnvironment = false
    public var timeout: Double = 30
    /// Whether a launch lasts until the program ends by itself.
    public var runsToExit = false
    public init() {}

    static let fixedVariables = ["PATH", "HOME", "LANG", "LC_ALL", "TERM", "USER", "LD_LIBRARY_PATH", "DISPLAY", "XDG_RUNTIME_DIR"]
}

/// The call that ends a launch, as the kernel sees it.
public enum EndPoint: String, Codable, Sendable {
    case listen, output, exit
    /// Only the agent can see it: a mark, a symbol, a frame drawn.
    case insideOnly = "inside"

    var calls: UInt32 {
        switch self {
        case .listen: UInt32(LAUNCH_LISTEN)
        case .output: UInt32(LAUNCH_OUTPUT)
        case .exit: UInt32(LAUNCH_EXIT)
        case .insideOnly: 0
        }
    }
}
