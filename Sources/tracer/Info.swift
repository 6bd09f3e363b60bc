import ArgumentParser

struct Info: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Not written yet.")

    func run() throws { throw CommandFailure(message: "info is not written yet") }
}
