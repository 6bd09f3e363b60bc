// Finds the functions of a module that a trace recorded by entry patches: repeats, from the trace's settings, the choice that the agent
// made (Origins/Functions/PatchedFunctions.swift). The trace has their number, which must match.
import CTraceLayout
import EntryPlan
import Glibc
import TraceAnalysis
import TraceFormat

struct RecordedFunctions {
    private let functions: [Substring], include: [Substring], exclude: [Substring]
    private let minimumSize: UInt32
    private let trace: TraceFile
    /// The reason why calls of any recorded function may be unknown; nil: none. A wrapped ring is no reason: it lacks calls, but
    /// lists all functions that were called.
    private let general: UnknownReason?

    init(_ trace: TraceFile) {
        func globs(_ name: StaticString) -> [Substring] { trace.setting(name.description).map { $0.split(separator: ":") } ?? [] }
        self.trace = trace
        functions = globs(Variables.functions.name)
        include = globs(Variables.include.name)
        exclude = globs(Variables.exclude.name)
        minimumSize = trace.setting(Variables.minimumSize) ?? Variables.minimumSize.standard
        let isDamaged = !trace.isRing && trace.missingChunkCount > 0 || !trace.warnings.isEmpty
        general =
            trace.lostCalls > 0 || trace.header.unrecorded_children > 0 || isDamaged
            ? .lost : trace.setting(Variables.start) == false ? .laterStart : trace.hasChoices || trace.pauses.count > 0 ? .leftOut : nil
    }

    /// For each function of the module why it was not recorded; nil: it was.
    func reasons(_ planned: [PlannedFunction], in module: Module) -> [UnknownReason?] {
        guard let patched = trace.metadata.patched[module.index], patched.functions > 0 else {
            let why = trace.metadata.patched[module.index] == nil ? UnknownReason.otherModule : .noPlan
            return planned.map { _ in why }
        }
        let isMain = module.index == trace.executableModule?.index
        let left = trace.metadata.leftWhileRunning[module.index]
        var wanted = 0, eligible = 0, doubtful = 0
        var reasons = planned.map { function -> UnknownReason? in
            if function.byteCount < minimumSize, function.isLeaf { return .small }
            guard isAskedFor(function, module.name, isMain) else { return .notAskedFor }
            wanted += 1
            if let refusal = function.refusal { return .refused(refusal) }
            eligible += 1
            if function.symbols.contains(where: SlotHookPolicy.mayConcern) {
                doubtful += 1
                return .slotAlone
            }
            return doubt(about: function)
        }
        let special = eligible - patched.patched - (left ?? 0)
        if wanted != patched.functions || special < 0 || special > doubtful { return planned.map { _ in .otherPlan } }
        if special == 0 { // all of them are
            for index in reasons.indices where reasons[index] == .slotAlone { reasons[index] = doubt(about: planned[index]) }
        }
        // It may have been called before the trace begins, or be one of those that were left.
        if left != nil { for index in reasons.indices where reasons[index] == nil { reasons[index] = .wasRunning } }
        return reasons
    }

    /// Why calls of a function may be unknown that was recorded; nil: none are.
    private func doubt(about function: PlannedFunction) -> UnknownReason? {
        general ?? (function.isResolver ? .resolver : function.hasOtherCalls ? .otherCalls : nil)
    }

    private func isAskedFor(_ function: PlannedFunction, _ module: String, _ isMain: Bool) -> Bool {
        if function.symbols.isEmpty { return isNamed("", module, isMain) }
        return function.symbols.contains { isNamed($0, module, isMain) && isAdmitted($0, module) }
    }

    /// True if --functions names the function.
    private func isNamed(_ symbol: String, _ module: String, _ isMain: Bool) -> Bool {
        functions.contains { pattern in
            let parts = Self.parts(pattern)
            return parts.module.map { Self.matches($0, module) && Self.matches(parts.name, symbol) }
                ?? (isMain && Self.matches(parts.name, symbol))
        }
    }

    private func isAdmitted(_ symbol: String, _ module: String) -> Bool {
        func isIn(_ list: [Substring]) -> Bool {
            list.contains { pattern in
                let parts = Self.parts(pattern)
                return parts.module.map { Self.matches($0, module) && Self.matches(parts.name, symbol) }
                    ?? (Self.matches(parts.name, symbol) || Self.matches(parts.name, module))
            }
        }
        return (include.isEmpty || isIn(include)) && !isIn(exclude)
    }

    private static func parts(_ pattern: Substring) -> (module: Substring?, name: Substring) {
        pattern.firstIndex(of: "!").map { (pattern[..<$0], pattern[pattern.index(after: $0)...]) } ?? (nil, pattern)
    }

    /// The agent knows '*' and '?' alone.
    private static func matches(_ pattern: Substring, _ text: String) -> Bool {
        if pattern == "*" { return true }
        let escaped = pattern.reduce(into: "") { result, character in
            if character == "[" || character == "\\" { result += "\\" }
            result.append(character)
        }
        return fnmatch(escaped, text, 0) == 0
    }
}
