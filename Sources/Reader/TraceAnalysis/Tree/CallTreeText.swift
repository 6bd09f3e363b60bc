// A call tree as lines of text: a line for each node that took a large enough share of the time, and one more for the
// rest of a node's children, so that the lines below a node add up to it.
import Presentation

extension CallTree {
    package struct TextOptions: Sendable {
        /// Smallest share of its thread's total that gets a line of its own, 0 … 1.
        package var least = 0.01
        /// Levels to show, 0 all.
        package var deepest = 0

        /// Columns of the terminal; nil where lines may be of any length.
        package var width: Int?
        /// Show the times without the agent's cost next to the measured ones.
        package var isCorrected = false

        package init(least: Double = 0.01, deepest: Int = 0, width: Int? = nil) {
            self.least = least
            self.deepest = deepest
            self.width = width
        }
    }

    /// Lines of one root, the title not included.
    package func lines(_ root: Root, _ options: TextOptions, _ style: TextStyle, _ body: (String) throws -> Void) rethrows {
        let whole = nodes[root.node].total
        // A stack of our own: a path may be a million functions long.
        var waiting = [Waiting(node: root.node, level: -1, indentation: -1)]
        while let next = waiting.popLast() {
            guard let node = next.node else {
                try body(rest(next, of: whole, options, style))
                continue
            }
            var below = node
            if nodes[node].function >= 0 {
                let turn: Int
                (below, turn) = endOfRecursion(from: node, whole, options)
                try body(line(node, to: below, turn: turn, of: whole, next, options, style))
            }
            let isDeepest = options.deepest > 0 && next.level + 1 >= options.deepest
            var shown: [Waiting] = []
            var rest = Waiting(node: nil, level: next.level + 1, indentation: next.indentation + 1)
            let notRecorded = isInverted && below != node && !isDeepest ? callsNotRecorded(from: node, to: below, next) : nil
            for (index, child) in children(of: below).enumerated() where notRecorded == nil || !isNotRecorded(child) {
                // A thread's first ten are shown in any case: thousands of calls that take 0.5% each are worth seeing too.
                if !isDeepest, isShown(child, whole, options) || next.level < 0 && index < 10 {
                    shown.append(Waiting(node: child, level: next.level + 1, indentation: next.indentation + 1))
                } else {
                    rest.add(nodes[child])
                }
            }
            // A chain of single calls stays in its column, or thirty levels of it would leave the screen.
            let isChain = shown.count == 1 && next.level >= 0
            if isChain {
                shown[0].indentation = next.indentation
                shown[0].isChained = true
                waiting += shown
            }
            if isInverted { rest.total = min(rest.total, nodes[below].total) } // calls of one path may lie within those of another
            if rest.count > 0 { waiting.append(rest) }
            if let notRecorded { waiting.append(notRecorded) }
            if !isChain { waiting += shown.reversed() }
        }
    }

    /// Lines that explain the marks of suppressed functions and of their callers.
    package var suppressionNotes: [String] {
        let shown = Set(nodes.indices.lazy.filter { !isInverted || isFirst($0) }.map { nodes[$0].function })
        return SuppressionMark.notes(
            isSuppressed: !suppressed.isDisjoint(with: shown), isCounted: !onlyCounted.isDisjoint(with: shown),
            holdsSuppressed: !holders.isDisjoint(with: shown))
    }

    /// The function whose figures a node has.
    private func subject(of node: Int) -> Int {
        var node = node
        while isInverted, !isFirst(node) { node = nodes[node].parent }
        return nodes[node].function
    }

    private struct Waiting {
        /// nil for what is too little for lines of its own.
        var node: Int?
        var level: Int
        var indentation: Int
        var isChained = false
        var count = 0
        var correctedTotal: UInt64 = 0
        var total: UInt64 = 0
        var calls: UInt64 = 0
        /// These are calls from code that is not recorded.
        var isNotRecorded = false

        mutating func add(_ node: Node) {
            count += 1
            total &+= node.total
            calls &+= node.calls
            correctedTotal &+= node.correctedTotal
        }
    }

    private func isShown(_ node: Int, _ whole: UInt64, _ options: TextOptions) -> Bool {
        options.least <= 0 || Double(nodes[node].total) >= options.least * Double(whole)
    }

    /// A function that calls itself and nothing else is one line, however deep it goes; so are a few that call each other alternately, for
    /// two turns at least. Returns the last level, and how many functions have their turn.
    private func endOfRecursion(from node: Int, _ whole: UInt64, _ options: TextOptions) -> (last: Int, turn: Int) {
        var levels = [node]
        for turn in 1...Self.mostInTurn {
            while let only = onlyShownChild(of: levels.last!, whole, options) {
                if levels.count >= turn, nodes[only].function != nodes[levels[levels.count - turn]].function { break }
                levels.append(only)
            }
            if levels.count >= 2 * turn { return (levels.last!, turn) }
        }
        return (node, 1)
    }
    private static let mostInTurn = 4

    private func onlyShownChild(of node: Int, _ whole: UInt64, _ options: TextOptions) -> Int? {
        onlyChild(of: node).flatMap { isShown($0, whole, options) ? $0 : nil }
    }

    /// The only child that is a recorded function; nil: there are several, or none.
    private func onlyChild(of node: Int) -> Int? {
        var only: Int?
        for child in children(of: node) where !isNotRecorded(child) {
            if only != nil { return nil }
            only = child
        }
        return only
    }

    private func isNotRecorded(_ node: Int) -> Bool { functions[nodes[node].function].isNotRecorded }

    /// The nodes of a recursion, from the last level on.
    private func levels(from node: Int, to last: Int) -> [Int] {
        var levels = [last]
        while levels[levels.count - 1] != node { levels.append(nodes[levels[levels.count - 1]].parent) }
        return levels
    }

    /// What code that is not recorded has called at any level of a recursion; nil: nothing.
    private func callsNotRecorded(from node: Int, to last: Int, _ next: Waiting) -> Waiting? {
        var sums = Waiting(node: nil, level: next.level + 1, indentation: next.indentation + 1)
        sums.isNotRecorded = true
        for level in levels(from: node, to: last) {
            // The last level has no callers where only such code has called it.
            let callers = children(of: level).filter { isNotRecorded($0) } + (nodes[level].end == level + 1 ? [level] : [])
            for caller in callers { sums.add(nodes[caller]) }
        }
        sums.total = min(sums.total, nodes[node].total)
        return sums.count > 0 ? sums : nil
    }

    /// The line of a node, or of a recursion down to `last`.
    private func line(
        _ node: Int, to last: Int, turn: Int, of whole: UInt64, _ item: Waiting, _ options: TextOptions, _ style: TextStyle
    ) -> String {
        var figures = Figures(total: nodes[node].total, selfTime: 0, calls: 0, correctedTotal: nodes[node].correctedTotal, correctedSelf: 0)
        var notes = Notes()
        let all = levels(from: node, to: last)
        for level in isInverted ? [node] : all {
            figures.calls &+= nodes[level].calls
            figures.selfTime = (figures.selfTime ?? 0) &+ nodes[level].selfTime
            figures.correctedSelf = (figures.correctedSelf ?? 0) &+ nodes[level].correctedSelf
            notes.add(nodes[level])
        }
        let subject = subject(of: node)
        figures.callsMark = SuppressionMark.calls(suppressed.contains(subject), isEstimate: onlyCounted.contains(subject))
        figures.selfMark = SuppressionMark.selfTime(holders.contains(subject))
        let function = functions[nodes[node].function]
        var name = function.caption(Summary.explained(function.name))
        let module = function.isNotRecorded ? "" : " [\(function.module)]"
        let prefix = Self.indentation(item.indentation) + (item.isChained ? "> " : "")
        if let width = options.width {
            name = cut(name, of: node, max(width - Self.columns(options).count + 8 - prefix.count - module.count, 16))
        }
        var text = style.dim(prefix) + name + style.dim(module)
        var below = node
        for _ in 1..<turn {
            below = onlyChild(of: below)!
            text += style.dim(" ⇄ ") + functions[nodes[below].function].caption(Summary.explained(functions[nodes[below].function].name))
        }
        if all.count > 1 { text += style.dim(" ×\(grouped(UInt64(all.count))) levels") }
        if let note = notes.text { text += "  " + style.alarm("(\(note))") }
        return figures.text(of: whole, options, hasCalls: !function.isOwnCode) + text
    }

    /// Not to where another call of the same caller has the same name.
    private func cut(_ name: String, of node: Int, _ width: Int) -> String {
        let text = cutName(name, width)
        guard text != name, nodes[node].parent >= 0 else { return text }
        let isAlike = children(of: nodes[node].parent).contains { other in
            let function = functions[nodes[other].function]
            let caption = function.caption(function.name)
            return other != node && caption != name && function.module == functions[nodes[node].function].module
                && cutName(caption, width) == text
        }
        return isAlike ? name : text
    }

    private func rest(_ rest: Waiting, of whole: UInt64, _ options: TextOptions, _ style: TextStyle) -> String {
        let kind = hasArguments ? "row" : "function", ending = rest.count == 1 ? "" : "s"
        let what = rest.isNotRecorded ? Function.notRecorded.name : "… \(grouped(UInt64(rest.count))) more \(kind)\(ending)"
        return Figures(total: rest.total, selfTime: nil, calls: rest.calls, correctedTotal: rest.correctedTotal).text(of: whole, options)
            + style.dim(Self.indentation(rest.indentation) + what)
    }

    private static func indentation(_ depth: Int) -> String { String(repeating: "  ", count: min(max(depth, 0), 60)) }

    package static func columns(_ options: TextOptions) -> String {
        "  share        total         self  " + (options.isCorrected ? "   ~corrected   ~corrected  " : "") + "      calls  function"
    }

    /// Columns of one line, left of the tree.
    private struct Figures {
        var total: UInt64
        var selfTime: Int64?
        var calls: UInt64
        var correctedTotal: UInt64
        var correctedSelf: Int64?
        var callsMark = "", selfMark = ""

        func text(of whole: UInt64, _ options: TextOptions, hasCalls: Bool = true) -> String {
            func time(_ time: UInt64) -> String { leftFilled(column(readable(Nanoseconds(time))), 11) + "  " }
            func time(_ time: Int64?, _ mark: String = "") -> String {
                leftFilled(time.map { mark + column(readable(signed: $0)) } ?? "", 11) + "  "
            }
            return leftFilled(percent(total, of: whole), 7) + "  " + time(total) + time(selfTime, selfMark)
                + (options.isCorrected ? time(correctedTotal) + time(correctedSelf) : "")
                + leftFilled(hasCalls ? callsMark + grouped(calls) : "-", 11) + "  "
        }
    }

    struct Notes {
        var open: UInt64 = 0, unwound: UInt64 = 0, cut: UInt64 = 0, migrated: UInt64 = 0, part: UInt64 = 0

        mutating func add(_ node: Node) {
            open &+= node.open
            unwound &+= node.unwound
            cut &+= node.cut
            migrated &+= node.migrated
            part &+= node.part
        }

        var text: String? {
            let parts = [
                (open, "still running"), (unwound, "left without returning"), (cut, "cut off by a gap in the trace"),
                (migrated, "began on another thread"), (part, "only in part"),
            ].filter { $0.0 > 0 }.map { "\(grouped($0.0)) \($0.1)" }
            return parts.isEmpty ? nil : parts.joined(separator: ", ")
        }
    }

    /// What times are that are not wall times; nil: they are.
    package var timeNote: String? { time.flatMap(\.note) }

    /// "thread 4711 main", "4 threads".
    package func title(_ root: Root) -> String {
        let thread =
            root.tid.map { "thread \($0)\(root.name.isEmpty ? "" : " " + root.name)" } ?? counted(UInt64(root.threadCount), "thread")
        let whole = nodes[root.node].total
        // Each of several programs has its own.
        let own = children(of: root.node).reduce(UInt64(0)) { $0 &+ (functions[nodes[$1].function].isOwnCode ? nodes[$1].total : 0) }
        let inCalls = readable(Nanoseconds(whole &- min(own, whole)))
        var parts = [
            thread, counted(root.calls, "call"), own > 0 ? "in calls \(inCalls) of \(readable(Nanoseconds(whole)))" : "\(inCalls) in calls",
        ]
        if root.filtered > 0 { parts.append("\(grouped(root.filtered)) filtered") }
        if root.dropped > 0 { parts.append("\(grouped(root.dropped)) dropped") }
        let isRing = root.process.map { processes[$0].isRing } ?? processes.allSatisfy { $0.isRing }
        if root.missingChunks > 0 { parts.append("\(counted(root.missingChunks, "chunk")) \(isRing ? "overwritten" : "missing")") }
        return parts.joined(separator: ", ")
    }

    package func title(_ process: Process) -> String {
        var parts = ["\(process.name) (pid \(process.pid))", process.window ?? readable(process.duration)]
        if process.dropped > 0 { parts.append("\(grouped(process.dropped)) calls dropped") }
        if let end = process.endText { parts.append(end) }
        return parts.joined(separator: ", ")
    }
}
