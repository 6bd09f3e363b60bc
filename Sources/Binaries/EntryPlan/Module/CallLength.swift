// The length of calls decides whether the agent may suppress a function that is called very often (Functions/HotFunctions.swift): one
// whose calls cannot be long, or whose calls may be long but do not wait.

/// What the code of one entry says about how long a call of it may be.
struct CallLength: BitwiseCopyable {
    /// A jump back, a string instruction that repeats itself, or a jump into the middle of other code, which may jump back.
    var hasLoop = false
    /// The processor locks memory: with a loop or a call beside it, the code may wait for another thread.
    var hasAtomics = false
    /// System calls, and instructions that are for waiting.
    var waits = false
    /// It runs code that is not known here: by a pointer, or in another module.
    var leadsToUnknown = false
    /// It calls other functions of the module.
    var calls = false

    var mayWait: Bool { waits || hasAtomics && (hasLoop || leadsToUnknown || calls) }
    /// Each of its own instructions runs at most once.
    var isStraight: Bool { !hasLoop && !leadsToUnknown && !mayWait }
}

/// A direct call or tail call; the target is relative to the module's base.
struct Transfer {
    var source: UInt32 // entry
    var target: UInt32
}

/// The answers for all entries, which depend on what they call.
struct CallLengths {
    private(set) var mayWait: [Bool]
    /// A call runs a number of instructions that the code bounds.
    private(set) var isBounded: [Bool]

    /// - Parameter edges: source and target, as indices of `lengths`
    init(_ lengths: [CallLength], _ edges: [(source: UInt32, target: UInt32)]) {
        mayWait = lengths.map(\.mayWait)
        isBounded = Array(repeating: false, count: lengths.count)
        // Callers of each entry, back to back.
        var first = [Int](repeating: 0, count: lengths.count + 1)
        for edge in edges { first[Int(edge.target) + 1] += 1 }
        for index in 1..<first.count { first[index] += first[index - 1] }
        var callers = [UInt32](repeating: 0, count: edges.count), filled = first
        for edge in edges {
            callers[filled[Int(edge.target)]] = edge.source
            filled[Int(edge.target)] += 1
        }
        func forEachCaller(_ index: Int, _ body: (Int) -> Void) {
            for caller in callers[first[index]..<first[index + 1]] { body(Int(caller)) }
        }
        // What leads to code that waits waits.
        var waiting = mayWait.indices.filter { mayWait[$0] }
        while let index = waiting.popLast() {
            forEachCaller(index) { caller in
                if mayWait[caller] { return }
                mayWait[caller] = true
                waiting.append(caller)
            }
        }
        // From those that call nothing upwards. What calls itself, by whatever way, is never reached.
        var open = [Int](repeating: 0, count: lengths.count)
        for edge in edges { open[Int(edge.source)] += 1 }
        var bounded = lengths.indices.filter { lengths[$0].isStraight && open[$0] == 0 }
        while let index = bounded.popLast() {
            isBounded[index] = true
            forEachCaller(index) { caller in
                open[caller] -= 1
                if open[caller] == 0, lengths[caller].isStraight { bounded.append(caller) }
            }
        }
    }
}
