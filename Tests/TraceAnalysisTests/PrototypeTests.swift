import Testing
import TraceAnalysis

@Suite struct PrototypeTests {
    private func prototype(_ text: String) throws -> Prototype {
        try #require(try Prototypes(file: text, known: ArgumentChoice.builtIn.enumerations).prototypes.first)
    }

    @Test func aPrototypeIsReadAsItIsWritten() throws {
        for known in ArgumentChoice.builtIn.prototypes {
            var own = try prototype(known.text)
            own.isLibc = true
            #expect(own == known || !known.isLibc, "\(known.text)")
        }
    }

    @Test func eachFunctionHasOnePrototype() {
        let names = ArgumentChoice.builtIn.prototypes.flatMap(\.names)
        #expect(names.count == Set(names).count)
    }

    @Test func aParameterWithoutATypeIsAnInt() throws {
        let own = try prototype("handle_request(id, url: string) -> int")
        #expect(own.text == "handle_request(id: int, url: string) -> int")
        #expect(own.operations.map(\.bytes) == [4, 8, 4])
    }

    @Test func commasPartWhatIsOutsideParentheses() {
        #expect(ArgumentChoice.items("open*, f(a, b: string) -> int ,close,") == ["open*", "f(a, b: string) -> int", "close"])
    }

    @Test func flagsHaveNamesAndWhatHasNoneIsANumber() throws {
        let read = try Prototypes(file: "flags f: A=0/3 B=1/3 C=4 DE=24 E=8\nenum e: X=-1 Y=2")
        let flags = read.enumerations[0], values = read.enumerations[1]
        #expect([0, 1, 5, 24, 8, 29, 0x100, 3].map { flags.text($0) } == ["A", "B", "B|C", "A|DE", "A|E", "B|C|DE", "A|0x100", "0x3"])
        #expect([-1, 2, 7].map { values.text($0) } == ["X", "Y", "7"])
    }

    @Test func valuesThatAreNotThereAreLeftOut() throws {
        let recorded = try #require(RecordedPrototype(text: "f(a: int, b: string, c: long) -> int errno at -1", machine: 62))
        let bytes: [UInt8] = [254, 255, 255, 255, 3, 0, 97, 98, 99, 7, 0, 0, 0, 0, 0, 0, 0]
        for count in 0...bytes.count {
            let names = recorded.arguments(RecordedValues(program: 1, bytes: Array(bytes.prefix(count)))).map(\.value.text)
            let single = ["a", "b", "c", "d"].map {
                recorded.argument($0, RecordedValues(program: 1, bytes: Array(bytes.prefix(count))))?.text
            }
            #expect(single == names.map { Optional($0) } + [String?](repeating: nil, count: 4 - names.count))
            #expect(names == (count < 4 ? [] : count < 9 ? ["-2"] : count < 17 ? ["-2", "\"abc\""] : ["-2", "\"abc\"", "7"]))
        }
        let result = try #require(recorded.result(RecordedValues(program: 1, bytes: [255, 255, 255, 255, 2, 0, 0, 0])))
        #expect(result.value == .integer(-1) && result.errno == "ENOENT")
        #expect(recorded.result(RecordedValues(program: 1, bytes: [255, 255])) == nil)
    }

    @Test func passwordsAreHiddenUnlessTheyAreNoText() throws {
        let choice = try ArgumentChoice(lists: ["login(password: string, token: int, name: string)"], files: [], hidden: ["na*"])
        #expect(choice.functions.map(\.prototype.text) == ["login(password: secret, token: int, name: secret)"])
    }

    @Test func aWordThatAnnouncesMoreThanThereIsSaysNothing() {
        var words = ArgumentWords()
        words.add(1)
        words.announce(1, words: 2, isResult: false)
        #expect(words.takeCall() == nil)
        words.add(0x0706_0504_0302_01)
        words.announce(3, words: 1, isResult: true)
        let result = words.takeResult()
        #expect(result?.program == 3 && result?.bytes == [1, 2, 3, 4, 5, 6, 7])
    }
}
