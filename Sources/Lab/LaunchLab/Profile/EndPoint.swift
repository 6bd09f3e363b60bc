import CLaunch

/// The call that ends a launch, as the kernel sees it.
package enum EndPoint: String, Sendable {
    case listen, output, exit
    /// Only the agent can see it: a mark, a symbol, a frame drawn.
    case insideOnly = "inside"

    var calls: UInt32 {
        switch self {
        case .listen: UInt32(LAUNCH_LISTEN)
        case .output: UInt32(LAUNCH_OUTPUT)
        case .exit: UInt32(LAUNCH_EXIT)
        case .insideOnly: 0
        }
    }
}
