// The argument plan of this process: functions whose calls are recorded with their arguments and results (arguments_layout.h). It is read
// once, before other threads exist, and all of it is checked then. Where the agent is attached again, each time may have a plan of its own:
// the earlier ones stay, since threads may be in calls of their functions, and so do the numbers of their programs.
import CSupport
import CTraceLayout

enum ArgumentPlan {
    private struct Plan: BitwiseCopyable {
        let content: UnsafeRawPointer
        let byteCount: Int
        /// Programs before this one's, and its own, which are the functions in the order of the file.
        let first: Int
        let count: Int
        let states: UnsafeMutablePointer<State>
    }
    nonisolated(unsafe) private static var plans = Table<Plan>()
    /// Index of the plan in use; nil: none is.
    nonisolated(unsafe) private static var current: Int?
    static var isInUse: Bool { current != nil }
    /// Tells plans apart, from 1 on; 0: none is in use.
    static var number: UInt32 { current.map { UInt32($0 &+ 1) } ?? 0 }
    /// Returns true if nobody has asked for the plan at this path.
    static func isByDefault(_ path: CText) -> Bool {
        let name = baseName(path), prefix = ArgumentPlanName.byDefault
        for n in 0..<prefix.utf8CodeUnitCount where name[n] != prefix.utf8Start[n] { return false } // ends at a NUL
        return true
    }
    private struct State: BitwiseCopyable {
        var isNoted: Bool
        var object: UInt8
        var testsArguments: Bool
        var testsResult: Bool
    }

    enum Beginning: UInt8 { // a raw value: comparing plain enums brings the standard library's hashing with it
        case done
        case absent // or others may write to it
        case damaged // or there have been too many plans
    }
    static func begin(_ path: CText) -> Beginning {
        guard let user = CacheHome.user, let (bytes, byteCount) = CacheHome.read(path, of: user, atMost: Int(ARGUMENTS_MOST_BYTES)) else {
            return .absent
        }
        for n in 0..<plans.count where isSame(plans[n], bytes, byteCount) {
            Memory.release(bytes, byteCount)
            current = n
            return .done
        }
        let first = plans.count == 0 ? 0 : plans[plans.count &- 1].first &+ plans[plans.count &- 1].count
        guard let count = checkedCount(bytes, byteCount), first &+ count <= Int(UInt16.max),
            let pages = Memory.pages(count &* MemoryLayout<State>.stride),
            plans.append(
                Plan(
                    content: UnsafeRawPointer(bytes), byteCount: byteCount, first: first, count: count,
                    states: pages.assumingMemoryBound(to: State.self)))
        else {
            Memory.release(bytes, byteCount)
            return .damaged
        }
        current = plans.count &- 1
        noteTests()
        // Attached agents have trampolines of a time filter, which leave values to Swift.
        if !Process.isAttached { makePrograms() }
        return .done
    }
    /// Another file begins: functions have no arguments, unless there is a plan for it.
    static func end() { current = nil }
    private static func isSame(_ plan: Plan, _ bytes: UnsafeMutableRawPointer, _ byteCount: Int) -> Bool {
        if plan.byteCount != byteCount { return false }
        for n in 0..<byteCount where plan.content.load(fromByteOffset: n, as: UInt8.self) != bytes.load(fromByteOffset: n, as: UInt8.self) {
            return false
        }
        return true
    }
    /// The plan that a program belongs to.
    @inline(__always) private static func plan(of program: UInt16) -> UnsafeMutablePointer<Plan> {
        var n = 0
        while Int(program) > plans[n].first &+ plans[n].count { n &+= 1 }
        return plans.pointer(n)
    }

    /// Every condition names a function, so the trampolines of a plan without any need not ask.
    private static func noteTests() {
        let plan = plans[plans.count &- 1]
        for n in plan.first..<plan.first &+ plan.count {
            let program = UInt16(n &+ 1), state = state(program)
            for test in tests(of: program) {
                if isResult(operation(Int(test.operation), of: program)) {
                    state.pointee.testsResult = true
                } else {
                    state.pointee.testsArguments = true
                }
                hasTests = true
            }
        }
    }
    private static func state(_ program: UInt16) -> UnsafeMutablePointer<State> {
        let plan = plan(of: program)
        return plan.pointee.states + (Int(program) &- 1 &- plan.pointee.first)
    }
    nonisolated(unsafe) private static var hasTests = false

    // MARK: - As the trampolines have them

    nonisolated(unsafe) private static var programs: UnsafeMutablePointer<value_program>?
    private static let dataBytes = Int(ARGUMENTS_DATA_BYTES)

    /// The programs of the only plan.
    private static func makePrograms() {
        let plan = plans[0], count = plan.count
        var mostSteps = 0, mostPieces = 0
        for n in 0..<count {
            let all = operations(of: UInt16(n &+ 1))
            mostSteps &+= all.count
            mostPieces &+= all.count &+ (8 &* all.count &+ dataBytes) / dataBytes &+ 1
        }
        guard let pages = Memory.pages(count &* MemoryLayout<value_program>.stride),
            let stepPages = Memory.pages(mostSteps &* MemoryLayout<value_step>.stride),
            let piecePages = Memory.pages(mostPieces &* MemoryLayout<value_piece>.stride)
        else { return }
        let programs = pages.assumingMemoryBound(to: value_program.self)
        let steps = stepPages.assumingMemoryBound(to: value_step.self)
        var pieces = piecePages.assumingMemoryBound(to: value_piece.self), stepCount = 0
        for n in 0..<count {
            let number = UInt16(n &+ 1), all = operations(of: number), result = result(number), tests = tests(of: number)
            var bytes = 0, texts = 0
            var program = value_program()
            program.steps = UInt32(stepCount)
            for operation in all {
                // Swift alone follows pointers: a program of more words than VALUE_WORDS is left to it.
                if operation.kind > UInt8(ARGUMENTS_RESULT) || operation.step_count > 0 || operation.length != 0 {
                    bytes = Int(ARGUMENTS_DATA_BYTES) &* Int(UInt8.max)
                }
                let isString = operation.kind == UInt8(ARGUMENTS_STRING)
                if isString { texts &+= 1 }
                bytes &+= isString ? 2 : Int(operation.bytes)
                steps[stepCount] = step(operation)
                stepCount &+= 1
            }
            let words = ArgumentValues.wordCount(of: bytes), isTested = purpose(plan.content) == .keep && !tests.isEmpty
            program.head = Event.values(UInt32(number), words: UInt32(words), tail: 0, isResult: false).word
            program.reserved = UInt8(8 &* (min(words, Int(VALUE_WORDS)) &+ 2))
            program.test_count = isTested ? UInt8(tests.count) : 0
            program.count = UInt8(all.count)
            program.words = UInt8(min(words, Int(UInt8.max)))
            program.text_count = UInt8(texts)
            program.fixed_bytes = UInt8(min(bytes, Int(UInt8.max)))
            program.begins_with_text =
                beginsWithText(UnsafeBufferPointer(start: steps + Int(program.steps), count: all.count), bytes) ? 1 : 0
            program.tests = function(number).pointee.tests
            if let result { note(result, number, in: &program) }
            let used = isTested || words > Int(VALUE_WORDS) ? 0 : makePieces(of: all, words, at: pieces)
            if used > 0 {
                program.pieces = UnsafePointer(pieces)
                pieces += used
                if all.count == 1 {
                    program.only = Int16(Spills.offset(Int(all[0].source))!)
                    program.mask = bytesMask(all[0].bytes)
                }
            }
            programs[n] = program
        }
        self.programs = programs
        tracer_set_value_programs(
            programs, steps, plan.content, Clock.source == UInt32(TRACE_CLOCK_MONOTONIC) ? 1 : 0)
    }
    private static func step(_ operation: arguments_operation) -> value_step {
        let source = Int(operation.source), bytes = operation.kind == UInt8(ARGUMENTS_STRING) ? 0 : operation.bytes
        guard let offset = Spills.offset(source) else {
            return value_step(offset: 0, bytes: bytes, vector: UInt8(source &- Int(ARGUMENTS_FROM_VECTOR) &+ 1))
        }
        return value_step(offset: Int16(offset), bytes: bytes, vector: 0)
    }
    /// What write_text (call_values.c) writes: a string, and at most two others. `bytes`: of them all, without those of the string.
    private static func beginsWithText(_ steps: UnsafeBufferPointer<value_step>, _ bytes: Int) -> Bool {
        guard let first = steps.first, first.bytes == 0, steps.count <= 3, bytes <= 2 &+ 8 else { return false }
        for n in 0..<steps.count where steps[n].vector != 0 || n > 0 && steps[n].bytes == 0 { return false }
        return true
    }
    private static func note(_ result: arguments_operation, _ number: UInt16, in program: inout value_program) {
        program.failure = result.failure
        if isText(result) {
            program.result_bytes = 8
            program.result_check = UInt8(RESULT_IS_ZERO) // as what is under no mask is: C writes it
            program.result_is_text = result.kind == UInt8(ARGUMENTS_STRING) && result.step_count == 0 ? 1 : UInt8(RESULT_IS_SWIFTS)
            return
        }
        let isVector = result.source == UInt8(ARGUMENTS_FROM_VECTOR), words = ArgumentValues.wordCount(of: Int(result.bytes))
        program.result_bytes = result.bytes
        program.result_head = Event.values(UInt32(number), words: UInt32(words), tail: 0, isResult: true).word
        program.result_mask = isVector ? 0 : bytesMask(result.bytes)
        program.result_reserved = UInt8(8 &* (words &+ 2))
        program.space = UInt8(words &+ 1)
        program.reserved &+= 8 &* program.space
        program.result_check =
            switch result.failure {
            case UInt8(ARGUMENTS_FAILS_MINUS_ONE): UInt8(RESULT_IS_MINUS_ONE)
            case UInt8(ARGUMENTS_FAILS_ZERO): UInt8(RESULT_IS_ZERO)
            default: isVector ? UInt8(RESULT_IS_ZERO) : 0 // what is under no mask is 0
            }
    }
    private static func bytesMask(_ count: UInt8) -> UInt64 { UInt64.max &>> (64 &- 8 &* UInt64(count)) }
    /// Returns the number of pieces. 0: there are no values, or these are not words of registers and of the stack.
    /// - Parameter words: so many DATA words; what they do not have is in the VALUES word
    private static func makePieces(
        of operations: UnsafeBufferPointer<arguments_operation>, _ words: Int, at pieces: UnsafeMutablePointer<value_piece>
    ) -> Int {
        if operations.isEmpty { return 0 }
        var made = 0, word = 0, used = 0 // pieces, words, bytes of the word that has been begun
        for operation in operations {
            guard operation.kind == UInt8(ARGUMENTS_VALUE), let offset = Spills.offset(Int(operation.source)) else { return 0 }
            let bytes = Int(operation.bytes)
            var done = 0
            while done < bytes {
                let isData = word < words, some = min(bytes &- done, (isData ? dataBytes : Int(VALUE_TAIL)) &- used)
                // The value's bytes from `done` on to the top, and from there to the bytes of the word that are free.
                let end = some &+ used &+ (isData ? 1 : 8 &- Int(VALUE_TAIL))
                pieces[made] = value_piece(offset: Int16(offset), up: UInt8(64 &- 8 &* (done &+ some)), down: UInt8(64 &- 8 &* end))
                done &+= some
                used &+= some
                if isData && used == dataBytes {
                    pieces[made].down |= UInt8(PIECE_ENDS)
                    (word, used) = (word &+ 1, 0)
                }
                made &+= 1
            }
        }
        if word < words || used == 0 { // the VALUES word has no bytes: one piece of none in its upper half
            if word < words { pieces[made &- 1].down |= UInt8(PIECE_ENDS) }
            pieces[made] = value_piece(offset: pieces[made &- 1].offset, up: 32, down: 32)
            made &+= 1
        }
        pieces[made &- 1].up |= UInt8(PIECE_ENDS)
        pieces[made &- 1].down |= UInt8(PIECE_ENDS)
        return made
    }
    /// The trampolines can record calls of a function with this program by themselves. Those of a time filter cannot, whatever the shortest
    /// time is now: they take back words of calls without values.
    static func isPlain(_ program: UInt16) -> Bool {
        guard program != 0, !Trampolines.recordsSites, !Trampolines.areFiltered, let programs else { return false }
        let one = programs[Int(program) &- 1], state = state(program).pointee
        if state.testsResult { return false }
        if state.testsArguments { for test in tests(of: program) where test.is >= UInt8(ARGUMENTS_IS_TEXT) { return false } }
        // The time of a call is read after its strings, by C, which knows no clock but the processor's.
        if one.text_count != 0 && Clock.source == UInt32(TRACE_CLOCK_MONOTONIC) { return false }
        return one.words <= UInt8(VALUE_WORDS) && one.text_count <= UInt8(VALUE_TEXTS)
    }

    /// Returns the number of functions of a plan in which all is as it must be.
    private static func checkedCount(_ content: UnsafeMutableRawPointer, _ byteCount: Int) -> Int? {
        let size = MemoryLayout<arguments_file>.size
        if byteCount < size { return nil }
        let header = content.load(as: arguments_file.self), number = Int(header.function_count)
        if header.magic != UInt64(ARGUMENTS_MAGIC) || header.version != UInt32(ARGUMENTS_VERSION) || Int(header.byte_count) != byteCount
            || number == 0 || number > Int(ARGUMENTS_MOST_FUNCTIONS)
            || number &* MemoryLayout<arguments_function>.size > byteCount &- size || header.purpose > UInt32(ARGUMENTS_TESTS_TRIGGER)
        {
            return nil
        }
        func fits(_ offset: UInt32, _ bytes: Int) -> Bool { Int(offset) <= byteCount && bytes <= byteCount &- Int(offset) }
        let functions = functions(UnsafeRawPointer(content))
        for n in 0..<number {
            let function = functions[n]
            if !fits(function.name, Int(function.name_bytes)) || !fits(function.text, Int(function.text_bytes))
                || function.operations & 3 != 0
                || !fits(function.operations, Int(function.operation_count) &* MemoryLayout<arguments_operation>.stride)
                || function.operation_count > UInt32(ARGUMENTS_MOST_SOURCES) || function.tests & 7 != 0
                || function.test_count > UInt32(ARGUMENTS_MOST_TESTS)
                || !fits(function.tests, Int(function.test_count) &* MemoryLayout<arguments_test>.stride)
                || n > 0 && function.hash < functions[n &- 1].hash
            {
                return nil
            }
            let operations = UnsafeRawPointer(content + Int(function.operations)).assumingMemoryBound(to: arguments_operation.self)
            for k in 0..<Int(function.operation_count) {
                if !isRight(operations[k]) || isResult(operations[k]) && k != Int(function.operation_count) &- 1 { return nil }
            }
            let tests = UnsafeRawPointer(content + Int(function.tests)).assumingMemoryBound(to: arguments_test.self)
            for k in 0..<Int(function.test_count) {
                let test = tests[k]
                let isText = test.is >= UInt8(ARGUMENTS_IS_TEXT)
                if test.operation >= UInt8(function.operation_count) || test.is < UInt8(ARGUMENTS_IS_EQUAL)
                    || test.is > UInt8(ARGUMENTS_IS_LIKE)
                    || test.bytes == 0 || test.bytes > 8 || !fits(test.text, Int(test.text_bytes))
                    || isText && !Self.isText(operations[Int(test.operation)])
                {
                    return nil
                }
            }
        }
        return number
    }

    /// It reads a string, or what is recorded as one is.
    static func isText(_ operation: arguments_operation) -> Bool {
        operation.kind == UInt8(ARGUMENTS_STRING)
            || operation.kind > UInt8(ARGUMENTS_RESULT) && operation.kind < UInt8(ARGUMENTS_STRINGS)
    }
    private static func isRight(_ operation: arguments_operation) -> Bool {
        if operation.kind < UInt8(ARGUMENTS_VALUE) || operation.kind > UInt8(ARGUMENTS_STRINGS) || operation.bytes > 8
            || operation.step_count > UInt8(ARGUMENTS_MOST_STEPS) || operation.length > UInt8(ARGUMENTS_LENGTH_RESULT)
            || !isSource(operation.source) || !isSource(operation.length_source)
        {
            return false
        }
        if operation.step_count == 0 {
            if operation.kind == UInt8(ARGUMENTS_LIBCXX) || operation.length == UInt8(ARGUMENTS_LENGTH_BESIDE) { return false }
        } else if !isText(operation) {
            return false
        }
        if operation.kind == UInt8(ARGUMENTS_BYTES) {
            return operation.step_count > 0 && operation.length == 0 && operation.length_offset > 0
                && operation.length_offset <= UInt16(ARGUMENTS_STRING_BYTES)
        }
        if operation.length == UInt8(ARGUMENTS_LENGTH_RESULT) { return operation.kind == UInt8(ARGUMENTS_VALUE) && operation.bytes == 8 }
        if operation.kind != UInt8(ARGUMENTS_COUNTED) { return operation.length == 0 }
        if operation.length != UInt8(ARGUMENTS_LENGTH_BESIDE) {
            return operation.length != 0 && operation.length_bytes > 0 && operation.length_bytes <= 8
        }
        let steps = operation.steps, last = operation.step_count == 1 ? steps.0 : operation.step_count == 2 ? steps.1 : steps.2
        let distance = max(last, operation.length_offset) &- min(last, operation.length_offset)
        return distance != 0 && distance & 7 == 0 && Int(distance) < Int(ARGUMENTS_WINDOW_BYTES)
    }
    private static func isSource(_ source: UInt8) -> Bool {
        let vectors = UInt8(ARGUMENTS_FROM_VECTOR), stack = UInt8(ARGUMENTS_FROM_STACK)
        let results = UInt8(ARGUMENTS_FROM_RESULT)
        return source < UInt8(ARGUMENTS_MOST_SOURCES) || source >= vectors && source < vectors &+ UInt8(ARGUMENTS_VECTORS)
            || source >= stack && source < stack &+ UInt8(ARGUMENTS_MOST_SOURCES)
            || source >= results && source < results &+ UInt8(ARGUMENTS_RESULT_REGISTERS)
    }

    private static func functions(_ content: UnsafeRawPointer) -> UnsafePointer<arguments_function> {
        (content + MemoryLayout<arguments_file>.size).assumingMemoryBound(to: arguments_function.self)
    }
    private static func function(_ program: UInt16) -> UnsafePointer<arguments_function> {
        let plan = plan(of: program)
        return functions(plan.pointee.content) + (Int(program) &- 1 &- plan.pointee.first)
    }
    private static func start(of program: UInt16) -> UnsafePointer<arguments_operation> {
        (plan(of: program).pointee.content + Int(function(program).pointee.operations)).assumingMemoryBound(to: arguments_operation.self)
    }

    // MARK: - Functions

    /// Returns true if a function whose name has this key (PLAN_NAME_) may be in it.
    static func mayHave(_ key: UInt32) -> Bool {
        guard let current else { return false }
        let plan = plans[current], n = first(key & PLAN_NAME_HASH, plan)
        return n < plan.count && functions(plan.content)[n].hash == key & PLAN_NAME_HASH
    }

    /// Returns the program of a function, from 1 on, by the plan in use; 0: its arguments are not recorded.
    /// - Parameters:
    ///   - address: as linked
    ///   - module: hash of its module's identity (arguments_module_id)
    ///   - isHome: its module is the library that the plan says
    static func program(of name: Name, at address: UInt64, in module: UInt64, isHome: (arguments_function) -> Bool) -> UInt16 {
        guard let current else { return 0 }
        let plan = plans[current], functions = functions(plan.content), hash = name.gnuHash & PLAN_NAME_HASH
        var n = first(hash, plan)
        while n < plan.count && functions[n].hash == hash {
            let known = functions[n]
            if isName(known, name, plan.content) {
                let isMeant =
                    switch known.home {
                    case UInt32(ARGUMENTS_OF_ANY): true
                    case UInt32(ARGUMENTS_OF_LIBC), UInt32(ARGUMENTS_OF_LIBRARY): isHome(known)
                    default: known.module == module && known.address == address && module != 0
                    }
                if isMeant { return UInt16(plan.first &+ n &+ 1) }
            }
            n &+= 1
        }
        return 0
    }
    private static func isName(_ function: arguments_function, _ name: Name, _ content: UnsafeRawPointer) -> Bool {
        if Int(function.name_bytes) != name.byteCount { return false }
        let text = content + Int(function.name)
        for k in 0..<name.byteCount where text.load(fromByteOffset: k, as: UInt8.self) != name.text[k] { return false }
        return true
    }
    /// Index of the first function whose hash is not below.
    private static func first(_ hash: UInt32, _ plan: Plan) -> Int {
        var low = 0, high = plan.count
        while low < high {
            let middle = (low &+ high) / 2
            if functions(plan.content)[middle].hash < hash { low = middle &+ 1 } else { high = middle }
        }
        return low
    }

    /// A function of this program is there: its prototype is in the file from now on. `object`: number of the argument that is its calls'
    /// object (CallObjects.swift), where its hook does not say so. Called with the lock of FunctionTable held.
    static func use(_ program: UInt16, object: UInt8) {
        if program == 0 { return }
        let state = state(program)
        if object != 0 { state.pointee.object = object }
        if state.pointee.isNoted { return }
        state.pointee.isNoted = true
        let function = function(program).pointee
        MetadataWriter.prototype(
            UInt32(program), (plan(of: program).pointee.content + Int(function.text)).assumingMemoryBound(to: UInt8.self),
            Int(function.text_bytes))
    }

    // MARK: - Calls

    /// Returns the program of a hook's function; 0: there is none.
    static func program(of hook: UnsafeMutablePointer<function_hook>) -> UInt16 {
        if hook.pointee.argument & UInt8(FUNCTION_HAS_VALUES) != 0 { return hook.pointee.counter }
        if plans.count == 0 || hook.pointee.kind == UInt8(KIND_PATCHED) || hook.pointee.kind == UInt8(KIND_UNNAMED) { return 0 }
        return hook.pointee.counter
    }
    static func object(of program: UInt16) -> UInt8 { state(program).pointee.object }
    static func hasResult(_ program: UInt16) -> Bool { result(program) != nil }
    static func result(_ program: UInt16) -> arguments_operation? {
        let last = Int(function(program).pointee.operation_count) &- 1
        if last < 0 { return nil }
        let operation = operation(last, of: program)
        return isResult(operation) ? operation : nil
    }
    static func isResult(_ operation: arguments_operation) -> Bool {
        operation.kind == UInt8(ARGUMENTS_RESULT) || operation.source >= UInt8(ARGUMENTS_FROM_RESULT)
    }
    static func operation(_ index: Int, of program: UInt16) -> arguments_operation { start(of: program)[index] }

    /// What the tests decide.
    enum Purpose: UInt32 { case keep = 0, trigger = 1 } // ARGUMENTS_TESTS_
    private static func purpose(_ content: UnsafeRawPointer) -> Purpose {
        content.load(as: arguments_file.self).purpose == UInt32(ARGUMENTS_TESTS_KEEP) ? .keep : .trigger
    }
    @inline(__always) static func isTested(_ program: UInt16, _ purpose: Purpose, ofResult: Bool) -> Bool {
        hasTests && program != 0 && isReallyTested(program, purpose, ofResult)
    }
    @inline(never) private static func isReallyTested(_ program: UInt16, _ purpose: Purpose, _ isOfResult: Bool) -> Bool {
        let state = state(program).pointee
        return purpose == self.purpose(plan(of: program).pointee.content) && (isOfResult ? state.testsResult : state.testsArguments)
    }
    static func tests(of program: UInt16) -> UnsafeBufferPointer<arguments_test> {
        let function = function(program).pointee
        return UnsafeBufferPointer(
            start: (plan(of: program).pointee.content + Int(function.tests)).assumingMemoryBound(to: arguments_test.self),
            count: Int(function.test_count))
    }
    static func text(of test: arguments_test, of program: UInt16) -> CText {
        (plan(of: program).pointee.content + Int(test.text)).assumingMemoryBound(to: UInt8.self)
    }
    static func operations(of program: UInt16) -> UnsafeBufferPointer<arguments_operation> {
        UnsafeBufferPointer(
            start: start(of: program), count: Int(function(program).pointee.operation_count) &- (hasResult(program) ? 1 : 0))
    }
}
