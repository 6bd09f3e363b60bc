// The gate's verdict for the places where people read it: a terminal, a program, a CI's test list, a pull request.
import Foundation
import TraceAnalysis

public struct GateVerdict: Sendable {
    public enum Format: String, CaseIterable, Sendable { case text, json, junit, github }

    public var baselinePath: String
    public var program: String
    public var runs: Int
    public var findings: [Finding]
    /// Why, as far as it can be said: most important first, each a line.
    public var causes: [String]
    /// How the change is accepted.
    public var acceptCommand: String

    public init(baselinePath: String, program: String, runs: Int, findings: [Finding], causes: [String], acceptCommand: String) {
        self.baselinePath = baselinePath
        self.program = program
        self.runs = runs
        self.findings = findings
        self.causes = causes
        self.acceptCommand = acceptCommand
    }

    public func text(_ format: Format) -> String {
        switch format {
        case .text: plain
        case .json: json
        case .junit: junit
        case .github: github
        }
    }

    private var plain: String {
        guard !findings.isEmpty else { return "\(program) starts within its budgets (\(runs) launches, \(baselinePath))\n" }
        var text = "\(program) breaks its start-up budget (\(runs) launches, \(baselinePath)):\n"
        for finding in findings { text += "  \(finding.rule.rawValue): \(finding.message)\n" }
        for (index, cause) in causes.enumerated() { text += (index == 0 ? "because:\n" : "") + "  \(cause)\n" }
        return text + "to accept it: \(acceptCommand)\n"
    }

    private var json: String {
        JSON.object([
            ("schema", .string("tracer.check/1")), ("program", .string(program)), ("baseline", .string(baselinePath)),
            ("runs", .unsigned(UInt64(runs))), ("passed", .bool(findings.isEmpty)),
            ("findings", .array(findings.map {
                .object([("rule", .string($0.rule.rawValue)), ("subject", .string($0.subject)), ("message", .string($0.message))])
            })),
            ("causes", .array(causes.map { .string($0) })), ("accept", .string(acceptCommand)),
        ]).text() + "\n"
    }

    /// The format of Ant's junit task, as GitLab and Jenkins read it: a test case a rule.
    private var junit: String {
        var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        text += "<testsuite name=\"start-up of \(escaped(program))\" tests=\"\(Finding.Rule.allCases.count)\" failures=\"\(Set(findings.map(\.rule)).count)\">\n"
        for rule in Finding.Rule.allCases {
            let broken = findings.filter { $0.rule == rule }
            text += "  <testcase classname=\"startup.\(escaped(program))\" name=\"\(rule.rawValue)\""
            if let first = broken.first {
                let body = (broken.map(\.message) + causes + ["to accept it: \(acceptCommand)"]).joined(separator: "\n")
                text += ">\n    <failure message=\"\(escaped(first.message))\">\(escaped(body))</failure>\n  </testcase>\n"
            } else {
                text += "/>\n"
            }
        }
        return text + "</testsuite>\n"
    }

    /// Workflow commands of GitHub Actions: shown beside the baseline in the pull request.
    private var github: String {
        func data(_ text: String) -> String { text.replacing("%", with: "%25").replacing("\r", with: "%0D").replacing("\n", with: "%0A") }
        func property(_ text: String) -> String { data(text).replacing(":", with: "%3A").replacing(",", with: "%2C") }
        return findings.map { finding in
            let body = ([finding.message] + causes + ["to accept it: \(acceptCommand)"]).joined(separator: "\n")
            return "::error file=\(property(baselinePath)),title=\(property("start-up: \(finding.rule.rawValue)"))::\(data(body))\n"
        }.joined()
    }

    private func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            // What XML 1.0 (2.2) has no way to say is left out.
            case _ where scalar.value < 0x20 && scalar != "\n" && scalar != "\t": break
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
