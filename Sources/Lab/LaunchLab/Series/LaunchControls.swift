// The conditions under which every launch is the same.

package struct LaunchControls: Sendable {
    /// The only CPU that the program may use; nil any.
    package var cpu: Int?
    package var hasFixedAddresses = false
    package var keepsOutput = false
    /// Only PATH, HOME, LANG, TERM, USER and what the user names, so that two shells give the same launches.
    package var hasFixedEnvironment = false
    package var timeout: Double = 30
    /// True if a launch lasts until the program ends by itself.
    package var runsToExit = false

    static let fixedVariables = ["PATH", "HOME", "LANG", "LC_ALL", "TERM", "USER", "LD_LIBRARY_PATH", "DISPLAY", "XDG_RUNTIME_DIR"]
}
