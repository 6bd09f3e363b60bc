// A call tree as lines of text: what took a share of the time worth a line, the rest of each node in one line more, so
// that every number is the sum of those below it.

extension CallTree {
    public struct TextOptions: Sendable {
        /// Smallest share of its thread's total that gets a line of its own, 0 … 1.
        public var least = 0.01
        /// Levels to show, 0 all.
        public var deepest = 0

        public init(least: Double = 0.01, deepest: Int = 0) {
            self.least = least
            self.deepest = deepest
        }
    }

    /// Lines of one root, the title not included.
    public func lines(_ root: Root, _ options: TextOptions, _ style: TextStyle, _ body: (String) throws -> Void) rethrows {
        let whole = nodes[root.node].total
        // A stack of our own: a path may be a million functions long.
        var waiting = [Waiting(node: root.node, depth: -1)]
        while let next = waiting.popLast() {
            guard let node = next.node else {
                try body(line(share: next.total, of: whole, total: next.total, selfTime: nil, calls: next.calls, depth: next.depth,
                              style.dim("… \(counted(UInt64(next.count), "more path"))"), style))
                continue
            }
            var below = node
            if nodes[node].function >= 0 {
                below = endOfRecursion(from: node, whole, options)
                try body(line(node, to: below, of: whole, depth: next.depth, style))
            }
            let isDeepest = options.deepest > 0 && next.depth + 1 >= options.deepest
            var shown: [Waiting] = []
            var rest = Waiting(node: nil, depth: next.depth + 1)
            for (place, child) in children(of: below).enumerated() {
                // Of a thread at least some: thousands of calls that take 0.5% each are worth seeing too.
                if !isDeepest, isShown(child, whole, options) || next.depth < 0 && place < 10 {
                    shown.append(Waiting(node: child, depth: next.depth + 1))
                } else {
                    rest.count += nodes[child].end - child
                    rest.total &+= nodes[child].total
                    rest.calls &+= (child ..< nodes[child].end).reduce(0) { $0 &+ nodes[$1].calls }
                }
            }
            if rest.count > 0 { waiting.append(rest) }
            waiting += shown.reversed()
        }
    }

    private struct Waiting {
        /// nil for what is too little for lines of its own.
        var node: Int?
        var depth: Int
        var count = 0
        var total: UInt64 = 0
        var calls: UInt64 = 0
    }

    private func isShown(_ node: Int, _ whole: UInt64, _ options: TextOptions) -> Bool {
        options.least <= 0 || Double(nodes[node].total) >= options.least * Double(whole)
    }

    /// A function that calls itself and little else is one line, however deep it goes.
    private func endOfRecursion(from node: Int, _ whole: UInt64, _ options: TextOptions) -> Int {
        var last = node
        while let only = onlyShownChild(of: last, whole, options), nodes[only].function == nodes[node].function { last = only }
        return last
    }

    private func onlyShownChild(of node: Int, _ whole: UInt64, _ options: TextOptions) -> Int? {
        var children = children(of: node)
        guard let first = children.next(), isShown(first, whole, options), children.next() == nil else { return nil }
        return first
    }

    /// The line of a node, or of a recursion down to `last`.
    private func line(_ node: Int, to last: Int, of whole: UInt64, depth: Int, _ style: TextStyle) -> String {
        var calls: UInt64 = 0, selfTime: Int64 = 0, notes = Notes(), levels: UInt64 = 0
        var level = last
        while true {
            calls &+= nodes[level].calls
            selfTime &+= nodes[level].selfTime
            notes.add(nodes[level])
            levels += 1
            if level == node { break }
            level = nodes[level].parent
        }
        let function = functions[nodes[node].function]
        var text = function.name + style.dim(" [\(function.module)]")
        if levels > 1 { text += style.dim(" ×\(grouped(levels)) levels") }
        if let note = notes.text { text += "  " + style.alarm("(\(note))") }
        return line(share: nodes[node].total, of: whole, total: nodes[node].total, selfTime: selfTime, calls: calls,
                    depth: depth, text, style)
    }

    public static let columns = "  share        total         self        calls  function"

    private func line(share: UInt64, of whole: UInt64, total: UInt64, selfTime: Int64?, calls: UInt64, depth: Int,
                      _ text: String, _ style: TextStyle) -> String {
        leftFilled(percentText(share, of: whole), 7) + "  " + leftFilled(column(readable(Nanoseconds(total))), 11) + "  "
            + leftFilled(selfTime.map { column(readable(signed: $0)) } ?? "", 11) + "  " + leftFilled(grouped(calls), 11) + "  "
            + String(repeating: "  ", count: min(depth, 200)) + text
    }

    struct Notes {
        var open: UInt64 = 0, unwound: UInt64 = 0, cut: UInt64 = 0, migrated: UInt64 = 0

        mutating func add(_ node: Node) {
            open &+= node.open
            unwound &+= node.unwound
            cut &+= node.cut
            migrated &+= node.migrated
        }

        var text: String? {
            let parts = [(open, "still running"), (unwound, "left without returning"), (cut, "cut off by a missing stretch"),
                         (migrated, "begun on another thread")].filter { $0.0 > 0 }.map { "\(grouped($0.0)) \($0.1)" }
            return parts.isEmpty ? nil : parts.joined(separator: ", ")
        }
    }

    /// "thread 4711 main", "4 threads".
    public func title(_ root: Root) -> String {
        let thread = root.tid.map { "thread \($0)\(root.name.isEmpty ? "" : " " + root.name)" } ?? counted(UInt64(root.threadCount), "thread")
        var parts = [thread, counted(root.calls, "call"), "\(readable(Nanoseconds(nodes[root.node].total))) in calls"]
        if root.filtered > 0 { parts.append("\(grouped(root.filtered)) filtered") }
        if root.dropped > 0 { parts.append("\(grouped(root.dropped)) dropped") }
        if root.missingChunks > 0 { parts.append("\(counted(root.missingChunks, "chunk")) missing") }
        return parts.joined(separator: ", ")
    }

    public func title(_ process: Process) -> String {
        var parts = ["\(basename(process.program)) (pid \(process.pid))", readable(process.duration)]
        if process.dropped > 0 { parts.append("\(grouped(process.dropped)) calls dropped") }
        if let unfinished = process.unfinished { parts.append(unfinished) }
        return parts.joined(separator: ", ")
    }
}

/// "12.3%", "<0.1%".
func percentText(_ part: UInt64, of whole: UInt64) -> String {
    guard whole > 0 else { return "-" }
    let tenths = UInt64((Double(part) / Double(whole) * 1000).rounded())
    return tenths == 0 && part > 0 ? "<0.1%" : "\(tenths / 10).\(tenths % 10)%"
}

func leftFilled(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(width - text.count, 0)) + text
}
