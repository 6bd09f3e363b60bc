// Page faults: pages that were not in memory, which, and how long a thread waited for each; and how many were.
import Presentation
import Symbols
import TraceFormat

package struct PageWait: Sendable {
    /// Index among the process's threads.
    var thread: Int
    /// The page was there.
    var at: UInt64
    /// Off-CPU just before; nil: it was not, or the kernel did not report it.
    package var duration: UInt64?
    /// Empty: no file.
    package var path: String
    package var offset: UInt64
    /// Function or variable at that address, else the section; nil unknown.
    var symbol: String?
    /// Start-up stage; nil: none.
    var stage: String?
}

extension WaitSearch {
    /// Major faults of the window, in the order of time.
    package func pageWaits(_ symbolizer: Symbolizer) -> [PageWait] {
        let majorFaults = faults.filter { $0.fault.isMajor }
        guard !majorFaults.isEmpty else { return [] }
        let modules = ModuleTimes(trace.metadata), stages = StartStages(trace)
        let longest = trace.timeScale.ticks(Self.longestArrival)
        return majorFaults.map { thread, fault in
            var page = PageWait(thread: thread, at: fault.at, path: fault.path, offset: fault.offset)
            let all = parts[thread], index = bisect(all.count) { all[$0].end <= fault.at }
            if index > 0, all[index - 1].kind != .processor, fault.at - all[index - 1].end <= longest {
                page.duration = all[index - 1].end - all[index - 1].begin
            }
            if let module = modules.module(at: fault.address, epoch: modules.epoch(at: fault.at)) {
                let linked = fault.address &- module.loadBias, identity = module.identity
                page.symbol =
                    symbolizer.function(at: linked, in: identity).map { demangled($0.name) }
                    ?? symbolizer.variable(at: linked, in: identity).map { demangled($0) } ?? symbolizer.section(at: linked, in: identity)
            }
            page.stage = stages.stage(at: fault.at)?.kind
            return page
        }.sorted { ($0.at, $0.thread) < ($1.at, $1.thread) }
    }

    /// Minor faults of the window, which is not to wait: no length, no symbol.
    package func minorFaults() -> [PageWait] {
        let minor = faults.filter { !$0.fault.isMajor }
        guard !minor.isEmpty else { return [] }
        let stages = StartStages(trace)
        return minor.map { thread, fault in
            PageWait(thread: thread, at: fault.at, path: fault.path, offset: fault.offset, stage: stages.stage(at: fault.at)?.kind)
        }.sorted { ($0.at, $0.thread) < ($1.at, $1.thread) }
    }
}

/// Page faults of one file in one stage.
package struct PageTotals: Sendable {
    let process: Int
    let stage: String?
    package let path: String
    package private(set) var count = 0
    package private(set) var duration: UInt64 = 0
    /// Each once, in the order of their offsets.
    private(set) var symbols: [String]

    /// In the order of time; of one stage the longest first.
    package static func all(_ pages: [PageWait], process: Int) -> [PageTotals] {
        struct Key: Hashable {
            var stage: String?
            var path: String
        }
        var order: [String?: Int] = [:]
        for page in pages where order[page.stage] == nil { order[page.stage] = order.count }
        return Dictionary(grouping: pages) { Key(stage: $0.stage, path: $0.path) }.map { key, pages in
            PageTotals(pages, process: process, stage: key.stage, path: key.path)
        }.sorted { (order[$0.stage]!, $1.duration, $1.count, $0.path) < (order[$1.stage]!, $0.duration, $0.count, $1.path) }
    }

    private init(_ pages: [PageWait], process: Int, stage: String?, path: String) {
        self.process = process
        self.stage = stage
        self.path = path
        count = pages.count
        duration = pages.reduce(0) { $0 &+ ($1.duration ?? 0) }
        symbols = []
        for symbol in pages.sorted(by: { $0.offset < $1.offset }).compactMap(\.symbol) where symbols.last != symbol {
            symbols.append(symbol)
        }
    }
}
