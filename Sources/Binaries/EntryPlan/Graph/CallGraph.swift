// Call graph of a module, from its code: direct calls and jumps, and addresses that are taken. Calls through a register or memory are not
// in it; functions that may be called this way are: their address is taken by an instruction, lies in data, or is exported.
import ELF

public struct CallGraph: Sendable {
    /// Address of each function, as linked: ascending, and once each.
    private let functions: [UInt64]
    /// For each function, the indices of those that lead to it, without itself.
    private let sources: [[Int32]]
    /// Its address lies in data, another module may be bound to it, or the loader calls it.
    private let isHeld: [Bool]

    public init(path: String) throws(PlanProblem) {
        let module = try LinkedModule(path: path)
        try module.openDecoder()
        let list = FunctionList(module.file, module.code, FrameTable(module.file))
        var reading = ReferenceReading(module.code, list)
        reading.readAll()
        let held = HeldFunctions.all(module.file, module.code, list)
        // Code that a compiler put elsewhere (.cold) is a part of whatever leads there.
        var targets: [Set<Int32>] = Array(repeating: [], count: list.entries.count)
        for (source, target) in reading.found where source != target { targets[Int(target)].insert(source) }
        for _ in 0..<Self.deepestPart {
            var isWhole = true
            for index in targets.indices {
                let parts = targets[index].filter { list.entries[Int($0)].isPart }
                if parts.isEmpty { continue }
                isWhole = false
                targets[index].subtract(parts)
                for part in parts where Int(part) != index { targets[index].formUnion(targets[Int(part)]) }
            }
            if isWhole { break }
        }
        var numbers: [Int32: Int32] = [:], functions: [UInt64] = []
        for (index, entry) in list.entries.enumerated() where !entry.isPart {
            numbers[Int32(index)] = Int32(functions.count)
            functions.append(entry.address)
        }
        self.functions = functions
        sources = list.entries.indices.filter { !list.entries[$0].isPart }.map { index in
            targets[index].filter { Int($0) != index }.compactMap { numbers[$0] }.sorted()
        }
        isHeld = list.entries.indices.filter { !list.entries[$0].isPart }.map { held.contains(list.entries[$0].address) }
    }

    /// Longest chain of parts that lead to parts.
    private static let deepestPart = 4

    /// Returns those of `functions` that are not held and that only others of the set lead to.
    public func reachedOnly(from functions: Set<UInt64>) -> Set<UInt64> {
        var result: Set<UInt64> = []
        for (index, address) in self.functions.enumerated() where functions.contains(address) && !isHeld[index] {
            if sources[index].allSatisfy({ functions.contains(self.functions[Int($0)]) }) { result.insert(address) }
        }
        return result
    }
}
