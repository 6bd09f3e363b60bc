// Call sites of a trace, as text.
import Symbols

/// Not for use by two threads at once.
final class SiteNames {
    private struct Key: Hashable {
        var address: UInt64
        var epoch: UInt32
    }
    private let modules: ModuleTimes
    private let sites: CallSites
    private var known: [Key: String] = [:]

    init(_ trace: TraceFile, _ symbolizer: Symbolizer) {
        modules = ModuleTimes(trace.metadata)
        sites = CallSites(symbolizer)
    }

    /// The line, where the trace has it; else the recorded function that it was made in; nil unknown.
    func site(of call: OpenCall, _ search: WaitSearch) -> String? {
        guard call.site != 0 else { return search.name(call.parent) }
        let key = Key(address: call.site, epoch: modules.epoch(at: call.enter))
        if let text = known[key] { return text }
        let text = sites.site(key.address, in: modules.module(at: key.address, epoch: key.epoch)).text { $0 }
        known[key] = text
        return text
    }

    /// Name of the file that made a call; nil unknown.
    func library(of call: OpenCall, _ search: WaitSearch) -> String? {
        guard call.site == 0 else { return modules.module(at: call.site, epoch: modules.epoch(at: call.enter))?.name }
        return call.parent == 0 ? nil : search.module(call.parent)
    }

    /// The function that was open; of one that records no calls, where it took the lock.
    func site(of holder: Wait.Holder, _ search: WaitSearch) -> String? { search.name(holder.inside.row) ?? site(of: holder.act, search) }
}
