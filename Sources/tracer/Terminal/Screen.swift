// A terminal that a command has to itself: keys as they are pressed, lines drawn in place. Whatever ends the command, the terminal is as before.
import Glibc
import Presentation

enum Key: Equatable {
    case character(Character)
    case up, down, pageUp, pageDown, home, end
    case enter, escape, backspace
    /// Ctrl-C, a signal that ends the command, or the terminal is gone.
    case quit
    /// The size of the terminal may have changed, or the command was in the background.
    case redraw
}

/// The terminal as it was (termios(3)). Handlers of signals read them.
nonisolated(unsafe) private var terminal = termios()
nonisolated(unsafe) private var isTaken = false
/// Leaves the alternate screen, shows the cursor, and ends colours (console_codes(4); 1049 is xterm's).
private let leaving: StaticString = "\u{1b}[0m\u{1b}[?25h\u{1b}[?1049l"

/// Async-signal-safe: signal-safety(7) has write and tcsetattr.
private func giveBack() {
    guard isTaken else { return }
    isTaken = false
    _ = write(STDOUT_FILENO, leaving.utf8Start, leaving.utf8CodeUnitCount)
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal)
}

/// One at a time.
final class Screen {
    private var signals = sigset_t()
    private var input: [UInt8] = []
    private var isGone = false

    /// Keys can be read, and lines drawn in place.
    static var isPossible: Bool {
        let isDumb = getenv("TERM").map { String(cString: $0) == "dumb" } ?? true
        return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && !isDumb
    }

    /// - Parameter endSignals: false: signals that end a command are somebody else's
    init(takingEndSignals endSignals: Bool) {
        tcgetattr(STDIN_FILENO, &terminal)
        sigemptyset(&signals)
        for signal in [SIGWINCH, SIGTSTP, SIGCONT] + (endSignals ? [SIGINT, SIGTERM, SIGHUP, SIGQUIT] : []) { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        // A trap of ours must not leave a terminal that shows nothing of what is typed.
        for crash in [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE] {
            signal(crash) { number in
                giveBack()
                signal(number, SIG_DFL)
                raise(number)
            }
        }
        take()
    }

    private func take() {
        var raw = terminal
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG | IEXTEN)
        raw.c_iflag &= ~tcflag_t(IXON | ICRNL)
        withUnsafeMutableBytes(of: &raw.c_cc) {
            $0[Int(VMIN)] = 0
            $0[Int(VTIME)] = 0
        }
        isTaken = true
        tcsetattr(STDIN_FILENO, TCSANOW, &raw)
        send("\u{1b}[?1049h\u{1b}[?25l")
    }

    func end() { giveBack() }

    var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    private func send(_ text: String) { if writeAll(Array(text.utf8), to: STDOUT_FILENO) != 0 { isGone = true } }

    /// Draws over what is there. Lines must fit.
    func draw(_ lines: [String]) {
        send("\u{1b}[H" + lines.prefix(size.rows).map { $0 + "\u{1b}[0m\u{1b}[K" }.joined(separator: "\r\n") + "\u{1b}[J")
    }

    /// Waits for a key.
    /// - Parameter milliseconds: at most
    /// - Returns: nil: none came
    func key(within milliseconds: Int) -> Key? {
        if isGone { return .quit }
        if let key = nextKey() { return key }
        var left = milliseconds
        while true {
            if let key = signalled() { return key }
            let part = min(left, 40)
            var descriptor = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            if poll(&descriptor, 1, Int32(part)) > 0 {
                var bytes = [UInt8](repeating: 0, count: 256)
                let count = read(STDIN_FILENO, &bytes, bytes.count)
                if count <= 0, descriptor.revents & Int16(POLLHUP | POLLERR) != 0 || count == 0 { return .quit }
                input += bytes[..<max(count, 0)]
                if let key = nextKey() { return key }
            }
            left -= part
            if left <= 0 { return signalled() }
        }
    }

    private func signalled() -> Key? {
        var none = timespec(), found: Key?
        while true {
            switch sigtimedwait(&signals, nil, &none) {
            case SIGINT, SIGTERM, SIGHUP, SIGQUIT: return .quit
            case SIGTSTP:
                suspend()
                found = .redraw
            case SIGWINCH, SIGCONT: found = .redraw
            default: return found
            }
        }
    }

    /// Ctrl-Z: the shell has the terminal until it continues us.
    private func suspend() {
        giveBack()
        var stop = sigset_t(), before = sigset_t()
        sigemptyset(&stop)
        sigaddset(&stop, SIGTSTP)
        raise(SIGTSTP)
        pthread_sigmask(SIG_UNBLOCK, &stop, &before) // it stops here
        pthread_sigmask(SIG_SETMASK, &before, nil)
        take()
    }

    private func nextKey() -> Key? {
        guard let first = input.first else { return nil }
        switch first {
        case 3, 28: return taken(1, .quit) // Ctrl-C, Ctrl-\
        case 26:
            input.removeFirst()
            suspend()
            return .redraw
        case 12: return taken(1, .redraw) // Ctrl-L
        case 13, 10: return taken(1, .enter)
        case 8, 127: return taken(1, .backspace)
        case 27: return escape()
        case ..<32: return taken(1, nil)
        default: break
        }
        // UTF-8, RFC 3629: the first byte says how many there are.
        let length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2
        guard input.count >= length else { return nil }
        let text = String(decoding: input.prefix(length), as: UTF8.self)
        return taken(length, text.first.map { .character($0) })
    }

    private func taken(_ count: Int, _ key: Key?) -> Key? {
        input.removeFirst(min(count, input.count))
        return key ?? nextKey()
    }

    /// Sequences of keys (ECMA-48, CSI; SS3 in the application mode of xterm).
    private func escape() -> Key? {
        guard input.count > 1 else { return taken(1, .escape) }
        guard input[1] == UInt8(ascii: "[") || input[1] == UInt8(ascii: "O") else { return taken(1, .escape) }
        guard let end = input.dropFirst(2).firstIndex(where: { (0x40...0x7e).contains($0) }) else { return taken(input.count, nil) }
        let sequence = String(decoding: input[2...end], as: UTF8.self)
        let keys: [String: Key] = [
            "A": .up, "B": .down, "5~": .pageUp, "6~": .pageDown, "H": .home, "F": .end, "1~": .home, "4~": .end,
        ]
        return taken(end + 1, keys[sequence])
    }
}
