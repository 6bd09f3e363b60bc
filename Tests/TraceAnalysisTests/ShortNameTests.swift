import Presentation
import Testing
import TraceAnalysis

/// C++ names as people write them.
@Suite struct ShortNameTests {
    private static let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

    @Test(
        arguments: [
            ("\(string)::compare(\(string) const&) const", "std::string::compare(std::string const&) const"),
            ("\(string)::basic_string(\(string)&&)", "std::string::string(std::string&&)"),
            ("\(string)::~basic_string()", "std::string::~string()"),
            ("f(std::basic_string_view<wchar_t, std::char_traits<wchar_t> >)", "f(std::wstring_view)"),
            ("f(std::vector<\(string), std::allocator<\(string) > > const&)", "f(std::vector<std::string> const&)"),
            (
                "g(std::map<int, long, std::less<int>, std::allocator<std::pair<int const, long> > >&)", "g(std::map<int, long>&)"
            ),
            (
                "h(std::unordered_map<int, char, std::hash<int>, std::equal_to<int>, std::allocator<std::pair<int const, char> > >)",
                "h(std::unordered_map<int, char>)"
            ),
            ("h(std::unique_ptr<A, std::default_delete<A> >)", "h(std::unique_ptr<A>)"),
            ("h(std::queue<int, std::deque<int, std::allocator<int> > >)", "h(std::queue<int>)"),
            (
                "h(std::vector<int, Mine<int> >, std::map<int, int, std::greater<int> >)",
                "h(std::vector<int, Mine<int>>, std::map<int, int, std::greater<int>>)"
            ),
            (
                "std::basic_ostream<char, std::char_traits<char> >& std::operator<< <std::char_traits<char> >(std::basic_ostream<char, std::char_traits<char> >&, char)",
                "std::ostream& std::operator<< <std::char_traits<char>>(std::ostream&, char)"
            ),
            ("bool std::operator< <int>(std::vector<int, std::allocator<int> >)", "bool std::operator< <int>(std::vector<int>)"),
            ("std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()(int) const"),
            ("std::__1::vector<int, std::__1::allocator<int>>::push_back(int&&)", "std::vector<int>::push_back(int&&)"),
            ("mystd::vector<int, std::allocator<int> >", "mystd::vector<int, std::allocator<int>>"),
            // Names that cannot be parsed are left alone.
            ("std::vector<int", "std::vector<int"), ("std::f(>)", "std::f(>)"), ("std::f)", "std::f)"),
            ("memcpy", "memcpy"), ("<std::sync::Mutex<T> as core::fmt::Debug>::fmt", "<std::sync::Mutex<T> as core::fmt::Debug>::fmt"),
        ])
    func aNameIsAsPeopleWriteIt(whole: String, short: String) { #expect(shortName(whole) == short) }

    @Test(
        arguments: [
            ("f(std::vector<\(string), std::allocator<\(string) > > const&)", "f(std::vector<…> const&)"),
            ("\(string)::compare(\(string) const&) const", "std::string::compare(std::string const&) const"),
            ("int add<int>(Box<Box<int> >, char)", "int add<…>(Box<…>, char)"),
            ("bool operator< <int>(Box<int>, Box<int>)", "bool operator< <…>(Box<…>, Box<…>)"),
            ("Box<int>::operator->() const", "Box<…>::operator->() const"),
            ("demo.Box.map<A>((A) -> Swift.Int) -> demo.Box<Swift.Int>", "demo.Box.map<…>((A) -> Swift.Int) -> demo.Box<…>"),
            ("<alloc::vec::Vec<T> as core::fmt::Debug>::fmt", "<alloc::vec::Vec<…> as core::fmt::Debug>::fmt"),
            ("memcpy", "memcpy"), ("f(Box<int)", "f(Box<int)"),
        ])
    func templatesMayGoWithoutTheirArguments(whole: String, short: String) { #expect(ShortNames([whole], .short)[whole] == short) }

    @Test func templatesThatWouldBeAlikeKeepTheirArguments() {
        let ofInt = "f<int, std::allocator<int> >(std::vector<int, std::allocator<int> >)",
            ofLong = "f<long, std::allocator<long> >(std::vector<long, std::allocator<long> >)", other = "g<int>()"
        let names = ShortNames([ofInt, ofLong, other], .short)
        #expect(names[ofInt] == "f<int, std::allocator<int>>(std::vector<int>)")
        #expect(names[ofLong] == "f<long, std::allocator<long>>(std::vector<long>)")
        #expect(names[other] == "g<…>()")
        #expect(ShortNames([ofInt], .full)[ofInt] == ofInt)
    }

    @Test func namesOfAThousandBracketsAreLeftAlone() {
        let deep = "std::" + String(repeating: "a<", count: 100_000) + String(repeating: ">", count: 100_000)
        #expect(shortName(deep) == deep)
    }

    @Test func whatWouldBeAlikeKeepsItsName() {
        let new = "f(\(Self.string))", old = "f(std::basic_string<char, std::char_traits<char>, std::allocator<char> >)",
            other = "g(\(Self.string))"
        let names = ShortNames([new, old, other])
        #expect(names[new] == new && names[old] == old)
        #expect(names[other] == "g(std::string)")
        let known = ShortNames([other, "g(std::string)"])
        #expect(known[other] == other && known["g(std::string)"] == "g(std::string)")
    }

    @Test func aReportsNamesAreFoundByPatternsAsTheyAreShown() {
        let name = "\(Self.string)::append(char const*)"
        for glob in ["std::string::append", "std::string::*", "libstdc++.so.6!std::string::append", "std::__cxx11::*"] {
            #expect(FunctionPattern(glob).matches(name: name, symbol: "_ZN", module: "libstdc++.so.6"), "\(glob)")
        }
        for glob in ["f<…>", "f<…>(Box<…>)", "app!f<…>"] {
            #expect(FunctionPattern(glob).matches(name: "f<int>(Box<int>)", symbol: "_Z", module: "app"), "\(glob)")
        }
        #expect(!FunctionPattern("g<…>").matches(name: "f<int>(Box<int>)", symbol: "_Z", module: "app"))
    }

    @Test(
        arguments: [
            ("one::two(int, char const*, unsigned long)", 24, "one::two(int, ch…d long)"),
            ("one::two(int, char const*) const", 20, "one::two(in…*) const"),
            ("one::two::three::four(int)", 20, "one::t…hree::four(…)"), ("operator()(int, char)", 17, "operator()(in…ar)"),
            ("a_long_name_without_parameters", 16, "a_lon…parameters"), ("short", 5, "short"),
        ])
    func parametersAreCutBeforeNames(name: String, width: Int, cut: String) {
        #expect(cutName(name, width) == cut)
        #expect(cutName(name, width).count <= width)
    }

    private func report(_ names: [String], width: Int?, isFull: Bool = false) throws -> [Substring] {
        var builder = demo { builder, thread in
            for index in names.indices as Range<Int> { builder.complete(thread, UInt32(10 + index), from: start, to: start + 123_456) }
        }
        for (index, name) in names.enumerated() { builder.function(UInt32(10 + index), name, address: 0x5000_2000 + UInt64(index)) }
        let loaded = try Loaded(builder.bytes())
        return loaded.run.table(by: .selfTime, top: 0, width: width, names: isFull ? .full : .usual, style: plain).split(separator: "\n")
    }

    @Test func columnsGiveWayBeforeNamesBecomeAlike() throws {
        let names = ["configuration_reader_of_the_first_kind", "configuration_reader_of_the_other_kind", "memcpy"]
        let lines = try report(names, width: 80)
        #expect(lines[1].contains("average") && !lines[1].contains("p50") && !lines[1].contains("minimum"), "\(lines[1])")
        #expect(lines.contains { $0.hasPrefix("not shown for lack of columns: minimum, maximum, p99, p50") })
        #expect(lines.dropFirst(2).prefix(3).allSatisfy { $0.count <= 80 }, "\(lines)")
        #expect(Set(lines.dropFirst(2).prefix(3).map { $0.split(separator: " ").dropLast().last }).count == 3)
        #expect(try report(["a", "b"], width: 130)[1].contains("minimum"))
        let alike = (0..<3).map { "f" + String(repeating: "x", count: 200) + "\($0)" + String(repeating: "y", count: 200) }
        #expect(Set(try report(alike, width: 80).dropFirst(2).prefix(3)).count == 3)
    }

    @Test func fullNamesAreAsTheyAre() throws {
        let names = ["f(\(Self.string))"]
        let whole = try report(names, width: 80, isFull: true)
        #expect(whole[2].contains(names[0]) && whole[1].contains("minimum"))
        #expect(try report(names, width: nil)[2].contains("f(std::string)"))
    }
}
