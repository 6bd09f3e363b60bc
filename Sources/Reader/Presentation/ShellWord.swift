/// As it can be pasted into a POSIX shell (Shell Command Language, 2.2.2): in single quotes, unless nothing in it is special.
package func shellWord(_ text: String) -> String {
    let isPlain = !text.isEmpty && text.allSatisfy { $0.isLetter || $0.isNumber || "_-./=:,+@%".contains($0) }
    // A quote with an accent is one Character, and is a quote to the shell.
    return isPlain ? text : "'" + text.unicodeScalars.map { $0 == "'" ? "'\\''" : String($0) }.joined() + "'"
}

package func shellCommand(_ words: [String]) -> String { words.map(shellWord).joined(separator: " ") }
