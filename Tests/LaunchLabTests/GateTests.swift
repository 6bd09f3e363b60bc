import Foundation
import Testing
@testable import LaunchLab

@Suite struct GateTests {
    private func baseline(_ change: (inout Baseline) -> Void = { _ in }) -> Baseline {
        let machine = Baseline.Machine(architecture: "x86_64", processor: "test", kernel: "6", calibrationMs: 2)
        var baseline = Baseline(program: "app", command: LaunchCommand(words: ["./app", "--serve"]), profiles: ProfileMaker.profiles(30), machine: machine)
        change(&baseline)
        return baseline
    }
    private func findings(_ baseline: Baseline, calibrationMs: Double = 2, _ change: (inout ProfileMaker) -> Void = { _ in }) -> [Finding] {
        Gate(baseline, calibrationMs: calibrationMs).findings(ProfileMaker.profiles(15, change))
    }

    @Test func anUnchangedProgramPasses() { #expect(findings(baseline()).isEmpty) }

    @Test func aNewLibraryAndItsConstructorFail() {
        let found = findings(baseline()) { $0.hasExtraLibrary = true }
        #expect(found.contains { $0.rule == .newLibrary && $0.subject == "libextra.so" })
        #expect(found.contains { $0.rule == .newConstructor && $0.subject == "libextra.so!extra_init" })
    }

    @Test func aStageBeyondItsBudgetFailsAndOneWithinPasses() {
        #expect(findings(baseline()) { $0.constructor = 6.5e6 }.contains { $0.rule == .stage && $0.subject == "constructors of libraries" })
        #expect(!findings(baseline()) { $0.constructor = 5.2e6 }.contains { $0.rule == .stage })
        let generous = baseline { for index in $0.stages.indices { $0.stages[index].budgetMs = 100 } }
        #expect(!findings(generous) { $0.constructor = 6.5e6 }.contains { $0.rule == .stage })
    }

    @Test func aSlowerMachineIsNotASlowerProgram() {
        #expect(findings(baseline(), calibrationMs: 2.6) { $0.constructor = 6e6 }.isEmpty)
    }

    @Test func moreRelocationsFail() {
        #expect(findings(baseline()) { $0.relocations = 150 }.map(\.rule) == [.relocations])
        #expect(findings(baseline()) { $0.relocations = 103 }.isEmpty)
    }

    @Test func theFileReadsBackAsItWasWritten() throws {
        let path = NSTemporaryDirectory() + "baseline-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let written = baseline { $0.stages[1].budgetMs = 3.5 }
        try written.text.write(toFile: path, atomically: true, encoding: .utf8)
        #expect(try Baseline(contentsOf: path) == written)
    }

    @Test func whatIsNoBaselineIsToldInOneLine() throws {
        let path = NSTemporaryDirectory() + "baseline-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: path) }
        for (text, part) in [("not json", "not JSON"), ("{}", "\"schema\" is missing"),
                             (baseline().text.replacing(Baseline.schema, with: "tracer.baseline/9"), "tracer.baseline/9")] {
            try text.write(toFile: path, atomically: true, encoding: .utf8)
            #expect {
                _ = try Baseline(contentsOf: path)
            } throws: { error in
                let message = (error as! LaunchProblem).message
                return message.contains(part) && !message.contains("\n")
            }
        }
        #expect(throws: LaunchProblem.self) { _ = try Baseline(contentsOf: path + ".missing") }
    }

    @Test func theVerdictIsSafeToPasteIntoXMLAndWorkflowCommands() throws {
        let verdict = GateVerdict(
            baselinePath: "a,b:c.json", program: "app<1>", runs: 5,
            findings: [Finding(rule: .newLibrary, subject: "x", message: "50 % \"more\" & <less>\nnext")], causes: ["why"], acceptCommand: "tracer baseline")
        let document = try XMLDocumentCheck.check(verdict.text(.junit))
        #expect(document.failures == 1 && document.cases == Finding.Rule.allCases.count)
        let github = verdict.text(.github)
        #expect(github.hasPrefix("::error file=a%2Cb%3Ac.json,title=start-up%3A new-library::50 %25 \"more\" & <less>%0Anext%0Awhy"))
        #expect(github.filter { $0 == "\n" }.count == 1)
        #expect(verdict.text(.text).contains("to accept it: tracer baseline"))
        let json = try JSONSerialization.jsonObject(with: Data(verdict.text(.json).utf8)) as? [String: Any]
        #expect(json?["passed"] as? Bool == false)
    }
}

#if canImport(FoundationXML)
import FoundationXML
#endif

/// Reads JUnit XML with a real parser.
final class XMLDocumentCheck: NSObject, XMLParserDelegate {
    var cases = 0, failures = 0
    static func check(_ text: String) throws -> XMLDocumentCheck {
        let check = XMLDocumentCheck(), parser = XMLParser(data: Data(text.utf8))
        parser.delegate = check
        guard parser.parse() else { throw parser.parserError ?? CocoaError(.fileReadCorruptFile) }
        return check
    }
    func parser(_ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?, attributes: [String: String]) {
        if name == "testcase" { cases += 1 }
        if name == "failure" { failures += 1 }
    }
}
