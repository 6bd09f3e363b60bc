import Testing
import TraceAnalysis

@Suite struct PrototypeTests {
    private func prototype(_ text: String) throws -> Prototype {
        try #require(try Prototypes(file: text, known: ArgumentChoice.builtIn.enumerations).prototypes.first)
    }

    @Test func aPrototypeIsReadAsItIsWritten() throws {
        for known in ArgumentChoice.builtIn.prototypes {
            var own = try prototype(known.text)
            own.library = known.library
            #expect(own == known, "\(known.text)")
        }
    }

    @Test func eachFunctionHasOnePrototype() {
        let names = ArgumentChoice.builtIn.prototypes.flatMap(\.names)
        #expect(names.count == Set(names).count)
    }

    @Test func aParameterWithoutATypeIsAnInt() throws {
        let own = try prototype("handle_request(id, url: string) -> int")
        #expect(own.text == "handle_request(id: int, url: string) -> int")
        #expect(own.operations(on: 62).map(\.bytes) == [4, 8, 4])
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

    @Test func floatingPointNumbersTakeNoRegisterOfIntegers() throws {
        let own = try prototype("f(a: int, x: double, b: long, y: float, c: string) -> double")
        for machine: UInt16 in [62, 183] {
            #expect(own.operations(on: machine).map(\.source) == [0, 0x40, 1, 0x41, 2, 0x40])
            #expect(own.operations(on: machine).map(\.bytes) == [4, 8, 8, 4, 8, 8])
        }
        let many = try prototype("f(x: double, a, b, c, d, e, f, g: int, h: int, i: int)")
        #expect(many.operations(on: 62).map(\.source) == [0x40, 0, 1, 2, 3, 4, 5, 0x80, 0x81, 0x82])
        #expect(many.operations(on: 183).map(\.source) == [0x40, 0, 1, 2, 3, 4, 5, 6, 7, 0x80])
    }

    @Test func whatIsNotPassedTakesNoRegister() throws {
        let own = try prototype("f(a: int, gone: unavailable, whole: opaque, b: int)")
        #expect(own.operations(on: 62).map(\.source) == [0, 2])
        let recorded = try #require(RecordedPrototype(text: own.text, machine: 62))
        let values = recorded.arguments(RecordedValues(program: 1, bytes: [1, 0, 0, 0, 2, 0, 0, 0]))
        #expect(values.map(\.value.text) == ["1", "<unavailable>", "{...}", "2"])
    }

    @Test func enumerationsAreAsLongAsTheySay() throws {
        let text = "f(a: level, b: level, c: float, d: double)\nenum level(u8): LOW=1 HIGH=200"
        let recorded = try #require(RecordedPrototype(text: text, machine: 62))
        let numbers: [UInt8] =
            withUnsafeBytes(of: Float(0.1).bitPattern) { Array($0) } + withUnsafeBytes(of: Double.infinity.bitPattern) { Array($0) }
        let values = recorded.arguments(RecordedValues(program: 1, bytes: [200, 255] + numbers))
        #expect(values.map(\.value.text) == ["HIGH", "255", "0.1", "inf"])
        let read = try Prototypes(file: text)
        #expect(read.enumerations[0].text == "enum level(u8): LOW=1 HIGH=200")
        #expect(throws: PrototypeError.self) { try Prototypes(file: "enum level(double): LOW=1") }
        #expect(throws: PrototypeError.self) { try Prototypes(file: "f() -> double errno") }
        #expect(throws: PrototypeError.self) { try Prototypes(file: "f() -> opaque") }
    }

    @Test func passwordsAreHiddenUnlessTheyAreNoText() throws {
        let choice = try ArgumentChoice(lists: ["login(password: string, token: int, name: string)"], files: [], hidden: ["na*"])
        #expect(choice.functions.map(\.prototype.text) == ["login(password: secret, token: int, name: secret)"])
    }

    @Test func aWordThatAnnouncesMoreThanThereIsSaysNothing() {
        var words = ArgumentWords()
        words.add(1)
        words.announce(AnnouncedValues(program: 1, words: 2, isResult: false))
        #expect(words.take().call == nil)
        words.add(0x0706_0504_0302_01)
        words.announce(AnnouncedValues(program: 3, words: 1, isResult: true))
        let result = words.take().result
        #expect(result?.program == 3 && result?.bytes == [1, 2, 3, 4, 5, 6, 7])
    }

    @Test func theWordThatSaysWhoseValuesTheseAreHasTheLastOfThem() {
        var words = ArgumentWords()
        words.add(0x0706_0504_0302_01)
        words.announce(AnnouncedValues(program: 3, words: 1, tail: 0x0b0a_0908, isResult: false))
        words.announce(AnnouncedValues(program: 3, words: 0, tail: 12, isResult: true))
        let both = words.take()
        #expect(both.call?.bytes == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] && both.result?.bytes == [12, 0, 0, 0])
        #expect(words.take().call == nil)
    }
}
