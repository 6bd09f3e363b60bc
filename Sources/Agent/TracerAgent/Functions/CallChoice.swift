// What calls are recorded with: arguments by a plan, and triggers. Each time that the agent is attached may have its own. Hooks that were
// made for another choice stay as they are, since threads may be in their stubs: the same function has a hook, and an id, for each choice.
import CSupport

enum CallChoice {
    private struct Known: BitwiseCopyable {
        let plan: UInt32 // ArgumentPlan.number
        let triggers: CText?
        var watched: UInt64
    }
    nonisolated(unsafe) private static var all = Table<Known>()
    /// Number of the choice in use, from 0 on.
    nonisolated(unsafe) private(set) static var current: UInt8 = 0
    private static let most = 255

    /// The plan and the triggers of the settings are in use from now on. False: there have been too many.
    static func begin() -> Bool {
        for n in 0..<all.count where all[n].plan == ArgumentPlan.number && isSame(all[n].triggers) {
            current = UInt8(n)
            return true
        }
        if all.count >= most || !all.append(Known(plan: ArgumentPlan.number, triggers: TriggerList.text, watched: 0)) { return false }
        current = UInt8(all.count &- 1)
        return true
    }
    private static func isSame(_ triggers: CText?) -> Bool {
        guard let text = TriggerList.text, let triggers else { return triggers == nil && TriggerList.text == nil }
        return equal(text, triggers)
    }

    /// A function has its trigger. Called from any thread.
    static func noteWatched() { _ = tracer_atomic_add(&all.pointer(Int(current)).pointee.watched, 1) }
    /// Functions with a trigger, of the choice in use.
    static var watched: UInt64 { all.count == 0 ? 0 : all[Int(current)].watched }
}
