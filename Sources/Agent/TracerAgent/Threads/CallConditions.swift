// Conditions on the arguments and results of calls (arguments_test), as ArgumentPlan has them: which calls are recorded, or which of them ask for a
// snapshot. What is not known fulfils none. Numbers among the arguments of most functions are tested by the trampolines (call_values.c);
// all else is tested here, on the agent's stack with signals blocked.
import CSupport
import CTraceLayout

enum CallConditions {
    /// A call with these arguments is to be recorded; `hasReturned`: with this result.
    static func keep(_ program: UInt16, _ spills: Spills, hasReturned: Bool = false) -> Bool {
        !ArgumentPlan.isTested(program, .keep, ofResult: hasReturned) || fulfil(program, spills, ofResult: hasReturned)
    }
    /// A call of a function that has a trigger may ask for a snapshot.
    static func trigger(_ program: UInt16, _ spills: Spills, hasReturned: Bool = false) -> Bool {
        !ArgumentPlan.isTested(program, .trigger, ofResult: hasReturned) || fulfil(program, spills, ofResult: hasReturned)
    }

    /// All tests of the arguments, or of the result, hold.
    @inline(never) private static func fulfil(_ program: UInt16, _ spills: Spills, ofResult: Bool) -> Bool {
        for test in ArgumentPlan.tests(of: program) {
            let operation = ArgumentPlan.operation(Int(test.operation), of: program)
            if ArgumentPlan.isResult(operation) != ofResult { continue }
            let isOfNumber = operation.kind == UInt8(ARGUMENTS_RESULT) || test.is_errno != 0
            if !(isOfNumber ? resultFulfils(test, operation, spills) : valueFulfils(test, operation, program, spills)) { return false }
        }
        return true
    }

    private static func valueFulfils(
        _ test: arguments_test, _ operation: arguments_operation, _ program: UInt16, _ spills: Spills
    ) -> Bool {
        let isNumber = test.is < UInt8(ARGUMENTS_IS_TEXT)
        // A char * itself is compared with NULL. Another string is NULL where it is shown as such: nothing could be read at address 0.
        let isPlain = operation.kind == UInt8(ARGUMENTS_STRING) && operation.step_count == 0
        if isNumber && (isPlain || !ArgumentPlan.isText(operation)) {
            return isFulfilled(test, by: spills.argument(Int(operation.source)))
        }
        var holds = false
        ArgumentValues.withText(operation, spills) { text, count, ending in
            let isRead = ending != UInt32(ARGUMENTS_TEXT_UNREAD)
            if isNumber {
                var word: UInt64 = 0
                for n in 0..<(isRead ? min(count, 8) : 8) { word |= UInt64(text[n]) &<< UInt64(n &* 8) }
                switch Int(operation.kind) {
                case Int(ARGUMENTS_BYTES): holds = ending == UInt32(ARGUMENTS_TEXT_WHOLE) && isFulfilled(test, by: word)
                case Int(ARGUMENTS_STRING): // a member: it is not known whether it is NULL if it could not be read itself
                    let isKnown = isRead || count != Int(ARGUMENTS_TEXT_BEYOND)
                    holds = isKnown && isFulfilled(test, by: isRead ? 1 : word)
                default: holds = isFulfilled(test, by: isRead ? 1 : word)
                }
            } else {
                holds = isFulfilled(test, of: program, by: text, count, isWhole: ending == UInt32(ARGUMENTS_TEXT_WHOLE), isRead: isRead)
            }
        }
        return holds
    }
    private static func resultFulfils(_ test: arguments_test, _ operation: arguments_operation, _ spills: Spills) -> Bool {
        if test.is_errno == 0 { return isFulfilled(test, by: spills.result) }
        let error = ArgumentValues.errno // 0: where it is, is not known
        return ArgumentValues.hasFailed(spills.result, operation) && error != 0 && isFulfilled(test, by: UInt64(error))
    }

    private static func isFulfilled(_ test: arguments_test, by word: UInt64) -> Bool {
        withUnsafePointer(to: test) { tracer_number_fulfils($0, word) != 0 }
    }
    /// As ConditionTest.swift has it.
    private static func isFulfilled(
        _ test: arguments_test, of program: UInt16, by text: CText, _ count: Int, isWhole: Bool, isRead: Bool
    ) -> Bool {
        if !isRead { return false }
        let wanted = ArgumentPlan.text(of: test, of: program), wantedCount = Int(test.text_bytes)
        func begins(_ offset: Int, _ length: Int) -> Bool {
            for n in 0..<length where text[offset &+ n] != wanted[n] { return false }
            return true
        }
        switch Int(test.is) {
        case Int(ARGUMENTS_IS_TEXT): return isWhole && count == wantedCount && begins(0, count)
        case Int(ARGUMENTS_IS_OTHER_TEXT):
            return isWhole ? count != wantedCount || !begins(0, count) : count > wantedCount || !begins(0, count)
        case Int(ARGUMENTS_IS_WITH_TEXT):
            var offset = 0
            while offset &+ wantedCount <= count {
                if begins(offset, wantedCount) { return true }
                offset &+= 1
            }
            return false
        default: return isWhole && Glob.matches(wanted, wantedCount, text, count)
        }
    }
}
