/// What a report has a row for.
package enum ReportGrouping: String, CaseIterable, Sendable { case function, module, caller, site, thread, process }
