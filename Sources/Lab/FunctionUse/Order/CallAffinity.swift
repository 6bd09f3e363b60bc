// Functions that call each other, next to each other: from the most called on, each joins the one that calls it most, as long as both
// together stay small (Ottoni and Maher, "Optimizing Function Placement for Large-Scale Data-Center Applications", CGO 2017). The groups
// then stand by how often a byte of theirs is called.

package struct CallAffinity {
    package struct Function {
        var byteCount: UInt64
        var calls: UInt64

        package init(byteCount: UInt64, calls: UInt64) {
            self.byteCount = byteCount
            self.calls = calls
        }
    }
    package struct Pair: Hashable {
        var caller: Int
        var callee: Int

        package init(caller: Int, callee: Int) {
            self.caller = caller
            self.callee = callee
        }
    }

    /// A group gets no larger: what is called together shall lie on few pages.
    package static let mostBytes: UInt64 = 64 << 10

    /// Indices of `functions`.
    package static func order(_ functions: [Function], _ pairs: [Pair: UInt64]) -> [Int] {
        var callers: [Int: (caller: Int, calls: UInt64)] = [:]
        for (pair, calls) in pairs where pair.caller != pair.callee {
            let known = callers[pair.callee]
            if known == nil || (calls, known!.caller) > (known!.calls, pair.caller) { callers[pair.callee] = (pair.caller, calls) }
        }
        var groups = functions.indices.map { [$0] }, bytes = functions.map { $0.byteCount }, groupOf = Array(functions.indices)
        let hottest = functions.indices.sorted { (functions[$0].calls, $1) > (functions[$1].calls, $0) }
        for function in hottest {
            guard let caller = callers[function]?.caller else { continue }
            let own = groupOf[function], other = groupOf[caller]
            if own == other || bytes[own] + bytes[other] > mostBytes { continue }
            for member in groups[own] { groupOf[member] = other }
            groups[other] += groups[own]
            bytes[other] += bytes[own]
            (groups[own], bytes[own]) = ([], 0)
        }
        func density(_ group: Int) -> Double {
            Double(groups[group].reduce(0) { $0 &+ functions[$1].calls }) / Double(max(bytes[group], 1))
        }
        let found = groups.indices.filter { !groups[$0].isEmpty }.map { (group: $0, density: density($0)) }
        return found.sorted { ($0.density, $1.group) > ($1.density, $0.group) }.flatMap { groups[$0.group] }
    }
}
