// Functions as the page numbers them.
import Presentation
import TraceAnalysis

package struct FunctionNumbers {
    private struct Key: Hashable {
        var name: String, module: String
    }
    private var numbers: [Key: Int] = [:]
    private var all: [Key] = []

    package init() {}

    mutating func number(_ name: String, _ module: String) -> Int {
        let key = Key(name: name, module: module)
        if let known = numbers[key] { return known }
        numbers[key] = all.count
        all.append(key)
        return all.count - 1
    }

    var text: String {
        "[" + all.map { "[" + JSON.string($0.name).scriptText + "," + JSON.string($0.module).scriptText + "]" }.joined(separator: ",\n")
            + "]"
    }
}
