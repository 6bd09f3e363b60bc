// Signals that the user has given a meaning (`record --signal USR2=snapshot`). They are sent to the tool, not to the program, and the program gets none
// of them. What it does with such a signal itself, by a handler, a mask, sigwait or a signalfd, is left to it: nothing of the agent's is in the way.
import Glibc

package struct SignalWishes: Sendable {
    package enum Action: String, CaseIterable, Sendable { case snapshot, start, stop }

    private var actions: [Int32: Action] = [:]

    package init() {}
    /// - Parameter texts: each as "USR2=snapshot"
    package init(_ texts: [String]) throws(Refusal) {
        for text in texts {
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2, let action = Action(rawValue: parts[1]) else {
                throw .usage("--signal \(text): give a signal and what it means, such as USR2=snapshot, USR1=start or USR1=stop")
            }
            guard let number = Self.number(parts[0]) else {
                throw .usage("--signal \(text): choose USR1, USR2, or one from RTMIN to RTMIN+30, which nothing else is sent by")
            }
            guard actions.updateValue(action, forKey: number) == nil else {
                throw .usage("--signal \(text): \(parts[0]) has a meaning already")
            }
        }
    }

    /// The number of a signal that only a user sends: others come from the kernel, a terminal or a supervisor. nil: it is none of them.
    private static func number(_ text: String) -> Int32? {
        let name = text.uppercased(), short = name.hasPrefix("SIG") ? String(name.dropFirst(3)) : name
        switch short {
        case "USR1": return SIGUSR1
        case "USR2": return SIGUSR2
        case "RTMIN": return SignalRelay.firstRealTime
        default:
            guard short.hasPrefix("RTMIN+"), let more = Int32(short.dropFirst(6)),
                (0...SignalRelay.lastRealTime - SignalRelay.firstRealTime).contains(more)
            else { return nil }
            return SignalRelay.firstRealTime + more
        }
    }

    package var numbers: [Int32] { Array(actions.keys) }
    package func action(of signal: Int32) -> Action? { actions[signal] }
}
