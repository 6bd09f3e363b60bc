// Why a module's file cannot be planned, or looked through: one line.

public struct PlanProblem: Error {
    public var message: String
}
