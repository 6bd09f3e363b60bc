// The folder in which launches leave their traces for a moment.
import CLaunch
import Foundation
import Glibc

/// A folder for this user alone. Whatever ends the tool, Ctrl-C or SIGKILL, a process of its own removes the folder then, and ends the
/// program that is being launched.
package struct LaunchScratch {
    package let path: String

    package init() throws(LaunchProblem) {
        let directory = FileManager.default.temporaryDirectory.path
        var template = Array("\(directory)/tracer-launch-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw LaunchProblem(
                "cannot create a folder in \(directory): \(String(cString: strerror(errno))); set TMPDIR to another directory")
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let error = launch_guard(path)
        guard error == 0 else {
            rmdir(path)
            throw LaunchProblem("cannot start a process: \(String(cString: strerror(error)))")
        }
    }

    package func remove() { try? FileManager.default.removeItem(atPath: path) }
}
