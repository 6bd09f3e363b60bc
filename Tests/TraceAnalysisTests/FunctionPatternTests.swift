import Testing
import TraceAnalysis

@Suite struct FunctionPatternTests {
    /// net::Server::handle(int) const, net::handle(char const*), handle(long), int twice<int>(int), (anonymous namespace)::hidden(int),
    /// outer(int)::Local::handle(int), std::map<a::handle, int>::size() const, open, open_all.
    private let symbols = [
        "_ZNK3net6Server6handleEi", "_ZN3net6handleEPKc", "_Z6handlel", "_Z5twiceIiET_S0_", "_ZN12_GLOBAL__N_16hiddenEi",
        "_ZZ5outeriEN5Local6handleEi",
        "_ZNKSt3mapIN1a6handleEiE4sizeEv", "open", "open_all",
    ]
    private func matched(_ pattern: String) -> [Int] {
        let pattern = FunctionPattern(pattern)
        let bySymbol = symbols.indices.filter { pattern.matches(symbol: symbols[$0]) }
        // The same function has the same answer where its name is known already.
        #expect(bySymbol == symbols.indices.filter { pattern.matches(name: demangled(symbols[$0]), symbol: symbols[$0], module: "app") })
        return bySymbol
    }

    @Test func aNameMayLackWhatEnclosesIt() {
        #expect(matched("handle") == [0, 1, 2, 5])
        #expect(matched("net::Server::handle") == [0] && matched("Server::handle") == [0])
        #expect(matched("net::handle") == [1] && matched("Local::handle") == [5])
        #expect(matched("twice") == [3] && matched("twice<int>") == [3] && matched("twice<long>") == [])
        #expect(matched("hidden") == [4] && matched("size") == [6])
        #expect(matched("erver::handle") == [] && matched("andle") == [] && matched("") == [])
    }

    @Test func theWholeNameAndTheSymbolMatchToo() {
        #expect(matched("handle(long)") == [2] && matched("_Z6handlel") == [2] && matched("net::Server::handle(int) const") == [0])
        #expect(matched("open") == [7] && matched("open*") == [7, 8])
        #expect(matched("net::*") == [0, 1] && matched("*handle*") == [0, 1, 2, 5, 6] && matched("hand*") == [2])
    }

    @Test func aModuleBeforeTheNameIsTheModules() {
        let pattern = FunctionPattern("lib*!Server::handle")
        #expect(pattern.matches(name: "net::Server::handle(int) const", symbol: symbols[0], module: "libnet.so"))
        #expect(!pattern.matches(name: "net::Server::handle(int) const", symbol: symbols[0], module: "app"))
        #expect(pattern.matches(symbol: symbols[0]))
    }

    @Test func namesOfRustAndSwiftHaveTypesBeforeThem() {
        #expect(FunctionPattern("server::handle").matches(symbol: "_ZN7program3net6server6handle17h0123456789abcdefE"))
        #expect(FunctionPattern("handle").matches(symbol: "_ZN7program3net6server6handle17h0123456789abcdefE"))
        #expect(FunctionPattern("Server.handle").matches(symbol: "$s7program6ServerV6handleyS2iF"))
        #expect(FunctionPattern("handle").matches(symbol: "$s7program6ServerV6handleyS2iF"))
        #expect(!FunctionPattern("Server").matches(symbol: "$s7program6ServerV6handleyS2iF"))
    }

    @Test func whatIsMuchAlikeIsFound() {
        let names = ["net::Server::handle(int) const", "handle(long)", "handle_all(int)", "open", "f"]
        #expect(FunctionPattern("handel").nearest(names) == "handle(long)")
        #expect(FunctionPattern("Server::handel").nearest(names) == "net::Server::handle(int) const")
        #expect(FunctionPattern("handle_al").nearest(names) == "handle_all(int)")
        #expect(FunctionPattern("something").nearest(names) == nil && FunctionPattern("g").nearest(names) == nil)
    }

    @Test func prototypesMayNameWhatEnclosesAFunction() throws {
        let read = try Prototypes(file: "net::Server::handle|net::handle(a: int, b:long) -> int").prototypes[0]
        #expect(read.names == ["net::Server::handle", "net::handle"] && read.parameters.map(\.name) == ["a", "b"])
        #expect((try? Prototypes(file: "f(net::a: int)")) == nil)
        #expect((try? Prototypes(file: "f(a: net::b)")) == nil)
    }
}
