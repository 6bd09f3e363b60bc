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

/// The answers for all entries, which depend on what they call.
struct CallLengths {
    private(set) var mayWait: [Bool]
    /// A call runs a number of instructions that the code bounds.
    private(set) var isBounded: [Bool]

    init(_ lengths: [CallLength], _ callers: Callers) {
        mayWait = lengths.map(\.mayWait)
        isBounded = Array(repeating: false, count: lengths.count)
        // What leads to code that waits waits.
        var waiting = mayWait.indices.filter { mayWait[$0] }
        while let index = waiting.popLast() {
            for caller in callers.sources(index) where !mayWait[caller] {
                mayWait[caller] = true
                waiting.append(caller)
            }
        }
        // From those that call nothing upwards. What calls itself, by whatever way, is never reached.
        var open = [Int](repeating: 0, count: lengths.count)
        for index in lengths.indices { for caller in callers.sources(index) { open[caller] += 1 } }
        var bounded = lengths.indices.filter { lengths[$0].isStraight && open[$0] == 0 }
        while let index = bounded.popLast() {
            isBounded[index] = true
            for caller in callers.sources(index) {
                open[caller] -= 1
                if open[caller] == 0, lengths[caller].isStraight { bounded.append(caller) }
            }
        }
    }
}
