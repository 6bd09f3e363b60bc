/// The items that a report has one row each for.
package enum ReportGrouping: String, CaseIterable, Sendable { case function, module, caller, site, thread, process }
