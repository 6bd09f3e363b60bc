// `tracer top` on a terminal.
import Glibc
import Presentation
import TraceAnalysis

final class TopScreen {
    private let reading: TopReading
    private var view: TopView
    private let names: NameStyle
    private let style: TextStyle
    private let interval: UInt64
    private let attachment: TopAttachment?
    private var screen: Screen

    private var snapshot: TopSnapshot
    private var isPaused = false, showsHelp = false
    private var firstRow = 0
    private var filter: String
    /// What is being typed; nil: keys are commands.
    private var typed: String?

    /// Nanoseconds from one look at the file to the next, and that one may take: on a busy machine it may have to catch up.
    static let betweenLooks: UInt64 = 100_000_000, mostReading: UInt64 = 1_000_000_000

    init(
        _ reading: TopReading, _ view: TopView, names: NameStyle, colour: Output.Colour, interval: UInt64, _ attachment: TopAttachment?,
        filter: String
    ) {
        self.reading = reading
        self.view = view
        self.names = names
        self.interval = interval
        self.attachment = attachment
        self.filter = filter
        style = Output(colour: colour).style
        if reading.isOfEnded {
            reading.look()
            reading.endInterval()
        }
        snapshot = reading.snapshot(view)
        screen = Screen(takingEndSignals: attachment == nil)
    }

    /// Until the user ends it. Afterwards the last table stays on the terminal if the process has ended.
    func run() throws {
        defer { screen.end() }
        var end = Moment.now + interval, look: UInt64 = 0
        draw()
        while true {
            var now = Moment.now
            if !reading.isOver, now >= look {
                reading.look(within: Self.mostReading)
                now = Moment.now
                look = now + Self.betweenLooks
                if reading.isOver || now >= end { refresh(&end) }
            }
            if attachment?.isOver == true, !reading.isOver { break }
            let wait = reading.isOver ? 1_000_000_000 : min(look > now ? look - now : 0, Self.betweenLooks)
            guard let key = screen.key(within: Int(wait / 1_000_000) + 1) else { continue }
            if key == .quit || typed == nil && key == .character("q") { break }
            take(key)
            draw()
        }
        screen.end()
        guard reading.isOver, !reading.isOfEnded else { return }
        let output = Output()
        try output.lines(table(width: screen.size.columns, most: max(screen.size.rows - 6, 1), head: 0))
        try output.flush()
    }

    private func refresh(_ end: inout UInt64) {
        end = max(end + interval, Moment.now)
        if isPaused, !reading.isOver { return }
        reading.endInterval()
        snapshot = reading.snapshot(view)
        draw()
    }

    // MARK: - Keys

    private static let orders: [Character: TopOrder] = [
        "c": .calls, "t": .total, "s": .selfTime, "p": .median, "9": .percentile99, "l": .longest, "o": .open, "n": .name,
    ]
    private static let groupings: [Character: TopGrouping] = ["f": .function, "T": .thread, "m": .module]

    private func take(_ key: Key) {
        if typed != nil { return type(key) }
        if showsHelp, key != .redraw {
            showsHelp = false
            return
        }
        let page = max(screen.size.rows - 5, 1)
        switch key {
        case .character(let character): command(character)
        case .up: firstRow -= 1
        case .down: firstRow += 1
        case .pageUp: firstRow -= page
        case .pageDown: firstRow += page
        case .home: firstRow = 0
        case .end: firstRow = snapshot.rows.count
        default: break
        }
        firstRow = max(min(firstRow, snapshot.rows.count - 1), 0)
    }

    private func command(_ character: Character) {
        if let order = Self.orders[character] {
            view.order = order
        } else if let grouping = Self.groupings[character] {
            view.grouping = grouping
        } else {
            switch character {
            case "a": if !reading.isOfEnded { view.isWhole.toggle() }
            case " ": isPaused.toggle()
            case "/":
                typed = filter
                return
            case "h", "?": showsHelp = true
            case "k": return firstRow -= 1
            case "j": return firstRow += 1
            default: return
            }
        }
        firstRow = 0
        snapshot = reading.snapshot(view)
    }

    private func type(_ key: Key) {
        switch key {
        case .character(let character): typed?.append(character)
        case .backspace: if typed?.isEmpty == false { typed?.removeLast() }
        case .escape: typed = nil
        case .enter:
            filter = typed ?? ""
            typed = nil
            let isGlob = filter.contains { "*?[!".contains($0) }
            view.filter = filter.isEmpty ? nil : FunctionPattern(isGlob ? filter : "*\(filter)*")
            firstRow = 0
            snapshot = reading.snapshot(view)
        default: break
        }
    }

    // MARK: - Lines

    private func draw() {
        let size = screen.size
        if showsHelp { return screen.draw(Self.help.map { clipped($0, size.columns) }) }
        var lines = table(width: size.columns, most: max(size.rows - 3, 1), head: size.rows)
        lines = Array(lines.prefix(max(size.rows - 1, 1)))
        while lines.count < size.rows - 1 { lines.append("") }
        lines.append(style.dim(clipped(footer, size.columns)))
        screen.draw(lines)
    }

    /// - Parameter head: rows of the screen: on a low one what is not the table gives way
    private func table(width: Int, most: Int, head: Int) -> [String] {
        var state: [String] = []
        if isPaused { state.append("paused") }
        if !filter.isEmpty { state.append("only \(filter)") }
        let title = snapshot.headline + (state.isEmpty ? "" : " [\(state.joined(separator: ", "))]")
        var lines = [style.bold(clipped(title, width))]
        lines += snapshot.notes.prefix(3).map { style.alarm(clipped($0, width)) }
        let marks = head > 15 || head == 0 ? snapshot.marks.map { style.dim(clipped($0, width)) } : []
        lines += snapshot.table(
            most: max(most - lines.count - marks.count, 1), width: width, names: names, style: style, isCut: true, from: firstRow)
        return lines + marks
    }

    private var footer: String {
        if let typed { return "filter: \(typed)_   Enter applies, Esc leaves it" }
        let order = "sorted by \(view.order.rawValue)"
        return "\(order) | c calls t total s self p p50 9 p99 l longest o open n name | f functions T threads m modules | a "
            + (view.isWhole ? "interval" : "all") + " | / filter | space pause | h help | q quit"
    }

    private static let help = [
        "tracer top: what the process calls now", "",
        "  c  calls a second           f  a row for each function",
        "  t  total: a call was open   T  a row for each thread, and what it is in",
        "  s  self                     m  a row for each module",
        "  p  p50   9  p99             a  since the beginning, or the last interval",
        "  l  longest                  /  only functions with this in their names, or a glob",
        "  o  open now, oldest first   space  pause and go on",
        "  n  name                     up, down, page up, page down, home, end  further rows",
        "", "  total, self: as a part of the time of all threads. open: calls that have not returned.",
        "  >= more calls were made than could be read.  ~ with an estimate of calls that were only counted.",
        "", "  Ctrl-Z suspends, q or Ctrl-C ends. The process notices nothing of either.", "", "Any key goes back.",
    ]
}
