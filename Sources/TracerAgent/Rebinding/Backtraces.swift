// Functions that list the frames of a thread: their stubs lead to ours, which leave the agent's frames out
// (CSupport/backtraces.c).
import CSupport

enum Backtraces {
    /// What the stub of the function at `target` calls.
    static func target(_ target: UInt64, _ name: Name) -> UInt64 {
        guard let ours = ModuleTable.module(of: tracer_code_low()), let owner = ModuleTable.module(of: target) else { return target }
        let image = own_image(low: ours.pointee.image.low, high: ours.pointee.image.high)
        if equal(name.text, literal: "backtrace") { return tracer_replace_backtrace(image, target) }
        // The unwinder's own way to ask for a frame's address, which comes from where the unwinder does.
        let text = CText(StaticString("_Unwind_GetIP").utf8Start)
        let query = SymbolQuery(name: Name(text), version: VersionNeed())
        guard let index = Image.find(query, in: &owner.pointee.image), let symbol = owner.pointee.image.symbol(index)?.pointee,
              owner.pointee.image.isCode(owner.pointee.image.bias &+ symbol.value) else { return target }
        return tracer_replace_unwind_backtrace(image, target, owner.pointee.image.bias &+ symbol.value)
    }
}
