// The page of `tracer view --serve`, and what it asks for while it is looked at.
import Glibc
import Synchronization
import TraceAnalysis
import TracePage

final class PageServer: Sendable {
    private struct Served: Sendable {
        var page: ViewPage
        var html: [UInt8]
    }
    /// nil while it is being made.
    private let served = Mutex<Served?>(nil)
    private let progress: ReadingProgress
    private let path: String
    /// One answer at a time: each takes the memory of what it reads, and all CPUs are not the page's.
    private let turn = Mutex(())

    /// - Parameter path: of the page, which ends in a slash
    init(at path: String, _ progress: ReadingProgress) {
        self.path = path
        self.progress = progress
    }

    func finish(_ page: ViewPage) {
        let made = Served(page: page, html: Array(page.html.utf8))
        served.withLock { $0 = made }
    }

    private static let progressName = "progress", longestWait = 20, step: UInt32 = 50_000

    /// How much of the work for the page is done, as soon as it is a hundredth more than the reader knows, or after a second: 1 is a
    /// page that can be asked for.
    private func progress(after known: Double) -> LocalServer.Answer {
        func share() -> Double { served.withLock { $0 != nil } ? 1 : min(progress.share, 0.999) }
        for _ in 0..<Self.longestWait where share() < 1 && share() < known + 0.01 { usleep(Self.step) }
        return LocalServer.Answer(type: "application/json", body: Array("\(share())".utf8))
    }

    /// - Parameter target: PATH; PATHprogress?known=SHARE; of the page that is made PATHcalls?from=NS&to=NS&lanes=0,1
    func answer(_ target: String) -> LocalServer.Answer {
        guard target.hasPrefix(path) else { return .notFound }
        let parts = target.dropFirst(path.count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        if parts[0] == Self.progressName {
            let known = parts.count > 1 ? parts[1].split(separator: "=").last.flatMap { Double(String($0)) } : nil
            return progress(after: known ?? -1)
        }
        let served = served.withLock { $0 }
        if parts[0].isEmpty {
            return LocalServer.Answer(type: "text/html; charset=utf-8", body: served?.html ?? Array(ViewPage.unfinished.utf8))
        }
        guard let page = served?.page else { return .notFound }
        guard let question = ViewPage.Question(rawValue: String(parts[0])) else { return .notFound }
        var values: [Substring: Substring] = [:]
        for pair in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard sides.count == 2, values.updateValue(sides[1], forKey: sides[0]) == nil else { return .badRequest }
        }
        guard values.count == 3, let from = values["from"].flatMap({ UInt64($0) }), let to = values["to"].flatMap({ UInt64($0) }),
            from < to,
            let lanes = values["lanes"]?.split(separator: ",").map({ Int($0) }), !lanes.contains(nil)
        else { return .badRequest }
        let text = turn.withLock { _ in page.answer(question, from..<to, lanes: lanes.compactMap { $0 }) }
        return LocalServer.Answer(type: "application/json", body: Array(text.utf8))
    }
}
