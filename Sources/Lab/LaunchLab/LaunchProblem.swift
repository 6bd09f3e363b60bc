/// Something that a command of the lab cannot go on with: one line.
package struct LaunchProblem: Error, Equatable, Sendable {
    package var message: String
    package init(_ message: String) { self.message = message }
}
