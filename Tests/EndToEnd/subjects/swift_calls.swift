// library: calls
// compilers: swiftc
// build: -O -parse-as-library
// modes: functions
// Swift's convention: swifterror (r12), swiftself (r13), swiftasync (r14), results in four registers.
#if LIB_calls
public struct Four: Equatable, Sendable {
    public var a, b, c, d: Int
    public init(a: Int, b: Int, c: Int, d: Int) { (self.a, self.b, self.c, self.d) = (a, b, c, d) }
}
public struct FourDoubles: Equatable, Sendable {
    public var a, b, c, d: Double
    public init(a: Double, b: Double, c: Double, d: Double) { (self.a, self.b, self.c, self.d) = (a, b, c, d) }
}
public enum Trouble: Error, Equatable { case number(Int) }
@inline(never) @_silgen_name("four_words") public func fourWords(_ n: Int) -> Four { Four(a: n, b: n + 1, c: n + 2, d: n + 3) }
@inline(never) @_silgen_name("four_doubles") public func fourDoubles(_ n: Double) -> FourDoubles { FourDoubles(a: n, b: n + 1, c: n + 2, d: n + 3) }
@inline(never) @_silgen_name("throws_odd") public func throwsOdd(_ n: Int) throws -> Int {
    if n & 1 == 1 { throw Trouble.number(n) }
    return n * 2
}
@inline(never) @_silgen_name("rethrows_through") public func through(_ n: Int, _ body: (Int) throws -> Int) rethrows -> Int { try body(n) + 1 }
public final class Counter {
    public var value: Int
    public init(_ value: Int) { self.value = value }
    @inline(never) @_silgen_name("counter_add") public func add(_ n: Int) -> Int { value += n; return value }
    @inline(never) @_silgen_name("counter_fail") public func fail(_ n: Int) throws -> Four {
        value += n
        if value > 100 { throw Trouble.number(value) }
        return Four(a: value, b: 0, c: 0, d: n)
    }
}
public struct Big: Sendable { public var words: (Int, Int, Int, Int, Int, Int, Int, Int) }
@inline(never) @_silgen_name("big_struct") public func bigStruct(_ n: Int) -> Big { Big(words: (n, 1, 2, 3, 4, 5, 6, n)) }
@inline(never) @_silgen_name("generic_pair") public func pair<T>(_ a: T, _ b: T) -> (T, T) { (b, a) }
@inline(never) @_silgen_name("async_step") public func step(_ n: Int) async -> Int { await Task.yield(); return n + 1 }
@inline(never) @_silgen_name("async_throwing") public func stepThrowing(_ n: Int) async throws -> Int {
    await Task.yield()
    if n % 3 == 0 { throw Trouble.number(n) }
    return n
}
#else
import calls
func check(_ condition: Bool, _ line: Int = #line) { if !condition { fatalError("line \(line)") } }
@main struct Main {
    static func main() async {
        var caught = 0
        for n in 0..<10 {
            check(fourWords(n) == Four(a: n, b: n + 1, c: n + 2, d: n + 3))
            check(fourDoubles(Double(n)) == FourDoubles(a: Double(n), b: Double(n) + 1, c: Double(n) + 2, d: Double(n) + 3))
            do { check(try throwsOdd(n) == n * 2) } catch { check(error as? Trouble == .number(n)); caught += 1 }
        }
        check(caught == 5)
        check((try? through(4) { try throwsOdd($0) }) == 9)
        check((try? through(5) { try throwsOdd($0) }) == nil)
        let counter = Counter(1)
        check(counter.add(2) == 3 && counter.value == 3)
        for n in 0..<20 {
            do { let four = try counter.fail(10); check(four.a == 13 + 10 * n && four.d == 10) } catch { check(counter.value > 100) }
        }
        check(bigStruct(9).words.7 == 9 && bigStruct(9).words.1 == 1)
        check(pair("a", "b") == ("b", "a"))
        check(pair(1.5, 2.5) == (2.5, 1.5))
        var sum = 0
        for n in 0..<50 { sum += await step(n) }
        check(sum == 1275)
        let total = await withTaskGroup(of: Int.self) { group in
            for n in 0..<100 { group.addTask { (try? await stepThrowing(n)) ?? 0 } }
            var total = 0
            for await n in group { total += n }
            return total
        }
        check(total == (0..<100).filter { $0 % 3 != 0 }.reduce(0, +))
        print("caught \(caught), counter \(counter.value), sum \(sum), total \(total)")
    }
}
#endif
