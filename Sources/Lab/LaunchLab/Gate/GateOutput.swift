// The gate's verdict for the places where people read it: a terminal, a program, a CI's test list, a pull request.
import Foundation
import Presentation
import TraceAnalysis

package struct GateVerdict: Sendable {
    package enum Format: String, CaseIterable, Sendable { case text, json, junit, github }

    package var baselinePath: String
    package var program: String
    package var runs: Int
    package var findings: [Finding]
    /// Other changes, which break no budget.
    package var notes: [String]
    /// Why, as far as it can be said: what explains most first.
    package var causes: [Cause]
    /// Calls shorter than this were not noted in the baseline, milliseconds.
    package var callsFromMs: Double
    /// How the change is accepted.
    package var acceptCommand: String

    package init(
        baselinePath: String, program: String, runs: Int, findings: [Finding], notes: [String] = [], causes: [Cause], callsFromMs: Double,
        acceptCommand: String
    ) {
        self.baselinePath = baselinePath
        self.program = program
        self.runs = runs
        self.findings = findings
        self.notes = notes
        self.causes = causes
        self.callsFromMs = callsFromMs
        self.acceptCommand = acceptCommand
    }

    package func text(_ format: Format) -> String {
        switch format {
        case .text: plain
        case .json: json.text() + "\n"
        case .junit: junit
        case .github: github
        }
    }

    private static let mostCauses = 10

    /// "+3.012 ms (98.0% of the increase): constructor work_init of libwork.so, slower (512.340 us → 3.524 ms)", …
    private var reasons: [String] {
        let grown = causes.filter { $0.difference > 0 || $0.kind == .library && $0.change == .new }
        if grown.isEmpty { return ["no single stage, library, constructor or call stands out"] }
        return grown.prefix(Self.mostCauses).enumerated().map { index, cause in
            let share = cause.share > 0 ? " (\(percent(cause.share))\(index == 0 ? " of the increase" : ""))" : ""
            let time = cause.difference > 0 ? "\(readable(difference: cause.difference))\(share)" : "no measurable time"
            return "\(time): \(LaunchText.describe(cause))\(change(cause))"
        } + (grown.count > Self.mostCauses ? ["and \(grown.count - Self.mostCauses) smaller ones"] : [])
    }

    private func change(_ cause: Cause) -> String {
        let times = " (\(readable(nanoseconds: cause.before)) → \(readable(nanoseconds: cause.after)))"
        switch cause.change {
        case .new: return cause.kind == .call ? ", new, or shorter than \(readable(nanoseconds: callsFromMs * 1e6)) before" : ", new"
        case .gone: return ", gone"
        case .slower, .faster:
            return cause.kind == .call || cause.kind == .stage
                ? ", itself \(cause.change.rawValue)\(times)" : ", \(cause.change.rawValue)\(times)"
        case .calledMoreOften, .calledLessOften: return times
        }
    }

    private var plain: String {
        let noted = notes.map { "  note: \($0)\n" }.joined()
        guard !findings.isEmpty else { return "\(program) starts within its budgets (\(runs) launches, \(baselinePath))\n" + noted }
        var text = "\(program) breaks its start-up budget (\(runs) launches, \(baselinePath)):\n"
        for finding in findings { text += "  \(finding.rule.rawValue): \(finding.message)\n" }
        text += noted + "probable causes:\n"
        for reason in reasons { text += "  \(reason)\n" }
        return text + "to accept it: \(acceptCommand)\n"
    }

    /// The format of Ant's junit task, as GitLab and Jenkins read it: a test case a rule.
    private var junit: String {
        var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        text +=
            "<testsuite name=\"start-up of \(XML.escaped(program))\" tests=\"\(Finding.Rule.allCases.count)\" failures=\"\(Set(findings.map(\.rule)).count)\">\n"
        for rule in Finding.Rule.allCases {
            let broken = findings.filter { $0.rule == rule }
            text += "  <testcase classname=\"startup.\(XML.escaped(program))\" name=\"\(rule.rawValue)\""
            if let first = broken.first {
                let body = (broken.map(\.message) + ["probable causes:"] + reasons + ["to accept it: \(acceptCommand)"]).joined(
                    separator: "\n")
                text += ">\n    <failure message=\"\(XML.escaped(first.message))\">\(XML.escaped(body))</failure>\n  </testcase>\n"
            } else {
                text += "/>\n"
            }
        }
        if !notes.isEmpty { text += "  <system-out>\(XML.escaped(notes.joined(separator: "\n")))</system-out>\n" }
        return text + "</testsuite>\n"
    }

    /// Workflow commands of GitHub Actions: shown beside the baseline in the pull request.
    private var github: String {
        func data(_ text: String) -> String { text.replacing("%", with: "%25").replacing("\r", with: "%0D").replacing("\n", with: "%0A") }
        func property(_ text: String) -> String { data(text).replacing(":", with: "%3A").replacing(",", with: "%2C") }
        let noted = notes.map { "::notice file=\(property(baselinePath)),title=start-up::\(data($0))\n" }.joined()
        return findings.map { finding in
            let body = ([finding.message] + ["probable causes:"] + reasons + ["to accept it: \(acceptCommand)"]).joined(separator: "\n")
            return "::error file=\(property(baselinePath)),title=\(property("start-up: \(finding.rule.rawValue)"))::\(data(body))\n"
        }.joined() + noted
    }
}

// MARK: - JSON

extension GateVerdict: Record {
    package static let members = declare {
        Member("schema", "tracer.check/1") { _ in "tracer.check/1" }
        Member("program", \.program)
        Member("baseline", \.baselinePath)
        Member("runs", \.runs)
        Member("passed", \.findings.isEmpty)
        Member("findings", \.findings)
        Member("notes", "other changes: start-up items that are gone", \.notes)
        Member("causes", "the causes that were found, the one that explains most first; none if the check has passed") {
            $0.findings.isEmpty ? [] : $0.causes
        }
        Member("because") { $0.findings.isEmpty ? [] : $0.reasons }
        Member("accept", "the command that accepts the change", \.acceptCommand)
    }
}

extension Finding: Record {
    package static let members = declare {
        Member("rule", \.rule.rawValue)
        Member("subject", \.subject)
        Member("message", \.message)
    }
}
