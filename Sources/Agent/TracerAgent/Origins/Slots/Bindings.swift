// Targets of a module's relocations, counted while it is bound, and what its dynamic section says of it.
import CSupport
import CTraceLayout

/// Bindings of the module that is being bound; the loader's lock is held.
enum Bindings {
    private struct Count: BitwiseCopyable {
        var calls: UInt32 = 0, addresses: UInt32 = 0
    }
    nonisolated(unsafe) private static var counts = Table<Count>() // indexed by module

    static func begin() {
        counts.removeAll()
        for _ in 0..<ModuleTable.modules.count where !counts.append(Count()) { return }
    }
    static func add(toModule module: Int, isCall: Bool) {
        if module >= counts.count { return }
        if isCall { counts.pointer(module).pointee.calls &+= 1 } else { counts.pointer(module).pointee.addresses &+= 1 }
    }
    static func write(from module: Int) {
        for n in 0..<counts.count where counts[n].calls != 0 || counts[n].addresses != 0 {
            MetadataWriter.append(
                Int(TRACE_RECORD_BINDING), 0,
                trace_binding_record(
                    record: trace_record(), module: UInt32(module), to_module: UInt32(n), calls: counts[n].calls,
                    addresses: counts[n].addresses))
        }
    }
}

extension MetadataWriter {
    private static let mostNameBytes = 16384
    nonisolated(unsafe) private static var names: UnsafeMutableRawPointer?

    /// Completes and writes the record, which has the rebinder's counts already.
    static func detail(_ fixed: inout trace_module_detail_record, _ module: UnsafeMutablePointer<Module>, _ index: Int) {
        if names == nil { names = Memory.pages(mostNameBytes) }
        guard let names else { return }
        let image = module.pointee.image
        var text = TextBuffer(names.assumingMemoryBound(to: UInt8.self), capacity: mostNameBytes)
        func add(_ tag: Int64) {
            for n in 0..<image.dynamicEntryCount {
                let entry = image.dynamicEntry(at: n)
                if entry.tag != tag { continue }
                guard let name = image.string(Int(truncatingIfNeeded: entry.value)) else { continue }
                text.append(contentsOf: name)
                text.append(0)
            }
        }
        add(DynamicTag.soname)
        fixed.soname_bytes = UInt32(text.count)
        add(DynamicTag.needed)
        fixed.needed_bytes = UInt32(text.count) &- fixed.soname_bytes
        fixed.module = UInt32(index)
        fixed.load = module.pointee.load
        fixed.relr_bytes = UInt32(truncatingIfNeeded: image.dynamicEntry(DynamicTag.relrBytes)?.pointee.value ?? 0)
        for n in 0..<image.segmentCount where image.segment(n).type == ProgramHeader.load {
            fixed.mapped_bytes &+= image.segment(n).memoryBytes
        }
        append(Int(TRACE_RECORD_MODULE_DETAIL), 0, fixed, CText(text.start), text.count, isPassing: module.pointee.isAgain)
    }
}
