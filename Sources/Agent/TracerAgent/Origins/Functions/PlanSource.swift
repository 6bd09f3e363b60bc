// A module's plan as the cache has it. Its names, two thirds of a large plan, are read when somebody asks for one: who records all
// functions of a module needs a few at most, of functions that may be special, and most modules have none of these.
import CSupport
import CTraceLayout

struct PlanSource {
    private(set) var plan: PlanContent
    private let file: CachedFile
    private let start: UnsafeMutableRawPointer
    private var names: UnsafeMutableRawPointer?

    /// nil: it is damaged, or of other rules.
    init?(_ file: CachedFile) {
        guard let header = file.read(from: 0, min(file.byteCount, PlanContent.headerBytes)) else { return nil }
        let byteCount = PlanContent.bytesBeforeNames(header, of: file.byteCount)
        Memory.release(header, PlanContent.headerBytes)
        guard let byteCount, let start = file.read(from: 0, byteCount) else { return nil }
        // It may be another one by now.
        guard PlanContent.bytesBeforeNames(start, of: file.byteCount) == byteCount, let plan = PlanContent(start, withoutNames: byteCount)
        else {
            Memory.release(start, byteCount)
            return nil
        }
        self.plan = plan
        self.file = file
        self.start = start
    }

    /// False: they are damaged.
    mutating func readNames() -> Bool {
        if plan.names != nil { return true }
        let byteCount = plan.bytesOfNames
        if byteCount == 0 { return plan.addNames(start) }
        guard let buffer = file.read(from: file.byteCount &- byteCount, byteCount) else { return false }
        if !plan.addNames(buffer) {
            Memory.release(buffer, byteCount)
            return false
        }
        names = buffer
        return true
    }

    func release() {
        Memory.release(names, plan.bytesOfNames)
        Memory.release(start, file.byteCount &- plan.bytesOfNames)
    }
}
