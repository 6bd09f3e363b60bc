// The page of `tracer view --serve`, and what it asks for while it is looked at.
import Synchronization
import TracePage

final class PageServer: Sendable {
    private let page: ViewPage
    private let html: [UInt8]
    private let path: String
    /// One answer at a time: each takes the memory of what it reads, and all CPUs are not the page's.
    private let turn = Mutex(())

    /// - Parameter path: of the page, which ends in a slash
    init(_ page: ViewPage, at path: String) {
        self.page = page
        self.path = path
        html = Array(page.html.utf8)
    }

    /// - Parameter target: PATH, or PATHcalls?from=NS&to=NS&lanes=0,1
    func answer(_ target: String) -> LocalServer.Answer {
        guard target.hasPrefix(path) else { return .notFound }
        let parts = target.dropFirst(path.count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        if parts[0].isEmpty { return LocalServer.Answer(type: "text/html; charset=utf-8", body: html) }
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
