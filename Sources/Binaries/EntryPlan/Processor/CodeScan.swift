// Scanner of a module's code, for whichever architecture it is.
import ELF

enum CodeScan {
    case x86(X86Scan), arm(ArmScan)

    init(_ code: ModuleCode, _ frames: FrameTable, watched: TextBits, starts: TextBits, unnamed: TextBits) {
        switch code.architecture {
        case .x86: self = .x86(X86Scan(code: code, frames: frames, watched: watched, starts: starts, unnamed: unnamed))
        case .arm: self = .arm(ArmScan(code: code, frames: frames, watched: watched, starts: starts, unnamed: unnamed))
        }
    }

    /// Calls `body` with a function that looks through one entry and one that guesses; gives back what was found.
    mutating func run(_ work: (_ scan: (FunctionEntry, Int) -> ScannedCode.Body, _ guess: (UInt64, UInt64) -> Void) -> Void) -> ScannedCode
    {
        switch self {
        case .x86(var scan):
            withUnsafeMutablePointer(to: &scan) { scan in work({ scan.pointee.scan($0, $1) }, { scan.pointee.guessAll($0, $1, -1) }) }
            return scan.found
        case .arm(var scan):
            withUnsafeMutablePointer(to: &scan) { scan in work({ scan.pointee.scan($0, $1) }, { scan.pointee.guessAll($0, $1, -1) }) }
            return scan.found
        }
    }
}
