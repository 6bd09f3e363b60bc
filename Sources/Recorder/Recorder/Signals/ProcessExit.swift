/// How a process ended.
package enum ProcessExit: Equatable, Sendable {
    case exited(status: Int32)
    case killed(signal: Int32)

    /// As a shell reports it.
    package var status: Int32 {
        switch self {
        case .exited(let status): status
        case .killed(let signal): 128 + signal
        }
    }
}
