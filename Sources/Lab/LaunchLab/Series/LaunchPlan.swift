// How many launches are made, and how.

package struct LaunchPlan: Sendable {
    package enum Cold: Sendable { case no, files, everything }

    package var runs = 20
    package var warmUps = 2
    /// Number of traced launches for each one without the agent; 0: none without.
    package var untracedEvery = 4
    package var cold = Cold.no
    package var controls = LaunchControls()
    /// Shell commands before and after each launch.
    package var setup: String?, teardown: String?
    package var readySymbol: String?
    /// Decides the order of two programs.
    package var seed: UInt64 = 0
    /// True if counts are wanted even when the machine did not calm down and times say nothing.
    package var bearsDisturbance = false
    package init() {}
}
