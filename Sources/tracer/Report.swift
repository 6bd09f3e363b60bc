import ArgumentParser

struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Not written yet.")

    func run() throws { throw CommandFailure(message: "report is not written yet") }
}
