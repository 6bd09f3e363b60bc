// How a user names threads: the main one, one by its id, or some by their names.
import Glibc

package struct ThreadPattern: Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    /// - Parameters:
    ///   - tid: nil for several threads, which only a name can match.
    ///   - pid: the thread's process; nil unknown. Its main thread has the same number, whatever its name.
    package func matches(tid: UInt32?, pid: UInt32?, name: String) -> Bool {
        if text == "main" { return tid != nil && tid == pid }
        return tid.map { String($0) } == text || name == text || fnmatch(text, name, 0) == 0 // a name may have brackets
    }
}
