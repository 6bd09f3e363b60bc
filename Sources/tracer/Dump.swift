import ArgumentParser

struct Dump: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Not written yet.")

    func run() throws { throw CommandFailure(message: "dump is not written yet") }
}
