// --where, the same for all commands that have it.
import ArgumentParser
import TraceAnalysis

struct ConditionOption: ParsableArguments {
    @Option(
        name: .customLong("where"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Only calls whose recorded arguments, result or errno say so; repeatable, all must hold: 'size >= 4K', 'path ~ \"/etc\"', 'flags ~ O_CREAT', 'open() < 0', 'errno == ENOENT', 'malloc(size > 1M)'.",
            valueName: "condition"),
        transform: { try Self.read($0) })
    var conditions: [CallCondition] = []

    static func read(_ text: String) throws -> CallCondition {
        do throws(CallCondition.Problem) { return try CallCondition(text) } catch { throw ValidationError(error.message) }
    }

    /// Throws when one of them can hold for no call of the traces.
    func check(_ traces: [TraceFile]) throws {
        do throws(CallFilter.Problem) { try CallFilter.check(conditions, traces) } catch {
            throw CommandFailure(error.message, status: 2)
        }
    }
}
