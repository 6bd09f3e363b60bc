// A module's plan as the cache has it. Its names, two thirds of a large plan, are read when somebody asks for one: who records all
// functions of a module needs a few at most, of functions that may be special, and most modules have none of these.
import CSupport
import CTraceLayout

struct PlanSource {
    private(set) var plan: PlanContent
    private let file: CachedFile
    private let start: UnsafeMutableRawPointer
    private var names: UnsafeMutableRawPointer?
    private let isInKept: Bool

    /// Pages for one plan after the other, and for its names: new ones for each cost more than reading it.
    nonisolated(unsafe) private static var keptStart = KeptPages(), keptNames = KeptPages()
    static func releaseKept() {
        keptStart.release()
        keptNames.release()
    }

    static func becomeChild() {
        keptStart = KeptPages()
        keptNames = KeptPages()
    }

    /// nil: it is damaged, or of other rules. `inKept`: until the next one (ModuleLock is held), or until `releaseKept`.
    init?(_ file: CachedFile, inKept isInKept: Bool = false) {
        guard let start = isInKept ? PlanSource.keptStart.pages(file.byteCount) : Memory.pages(file.byteCount) else { return nil }
        // It may be another one once its header has been read.
        guard file.read(from: 0, min(file.byteCount, PlanContent.headerBytes), to: start),
            let byteCount = PlanContent.bytesBeforeNames(start, of: file.byteCount), file.read(from: 0, byteCount, to: start),
            PlanContent.bytesBeforeNames(start, of: file.byteCount) == byteCount, let plan = PlanContent(start, withoutNames: byteCount)
        else {
            if !isInKept { Memory.release(start, file.byteCount) }
            return nil
        }
        self.plan = plan
        self.file = file
        self.start = start
        self.isInKept = isInKept
    }

    /// False: they are damaged.
    mutating func readNames() -> Bool {
        if plan.names != nil { return true }
        let byteCount = plan.bytesOfNames
        if byteCount == 0 { return plan.addNames(start) }
        guard let buffer = isInKept ? PlanSource.keptNames.pages(byteCount) : Memory.pages(byteCount) else { return false }
        if !file.read(from: file.byteCount &- byteCount, byteCount, to: buffer) || !plan.addNames(buffer) {
            if !isInKept { Memory.release(buffer, byteCount) }
            return false
        }
        names = buffer
        return true
    }

    func release() {
        if isInKept { return }
        Memory.release(names, plan.bytesOfNames)
        Memory.release(start, file.byteCount)
    }
}

/// Pages whose content nobody needs any more when more of them are asked for.
private struct KeptPages {
    private var start: UnsafeMutableRawPointer?
    private var byteCount = 0

    mutating func pages(_ wanted: Int) -> UnsafeMutableRawPointer? {
        if wanted <= byteCount { return start }
        let most = Memory.wholePages(wanted)
        release()
        start = Memory.pages(most)
        if start != nil { byteCount = most }
        return start
    }
    @inline(never) mutating func release() {
        Memory.release(start, byteCount)
        start = nil
        byteCount = 0
    }
}
