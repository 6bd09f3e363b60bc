import ArgumentParser

struct Replay: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Not written yet.")

    func run() throws { throw CommandFailure(message: "replay is not written yet") }
}
