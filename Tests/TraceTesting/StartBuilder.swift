// The records of how a process started, for traces that tests write.
import CTraceLayout

extension TraceBuilder {
    public static func usage(at ticks: UInt64, own: UInt64 = 0, cpu: UInt64 = 0, minor: UInt32 = 0, major: UInt32 = 0) -> trace_usage {
        trace_usage(ticks: ticks, own_ticks: own, cpu_ns: cpu, minor_faults: minor, major_faults: major)
    }

    public mutating func phase(_ kind: Int, _ usage: trace_usage, monotonic: UInt64 = 0, error: UInt64 = 0, thread: UInt32 = 0) {
        let record = trace_phase_record(
            record: trace_record(), usage: usage, monotonic_ns: monotonic, error_ns: error, thread: thread, reserved: 0)
        self.record(TRACE_RECORD_PHASE, key: kind, record, [])
    }

    /// Without `end` it never came back.
    public mutating func initializer(
        _ number: UInt32, _ kind: Int = TRACE_INITIALIZER_INIT_ARRAY, module: UInt32 = 0, index: UInt32 = 0,
        parent: UInt32 = .max, load: UInt32 = .max, thread: UInt32 = 0, address: UInt64 = 0x5000_1000,
        from begin: trace_usage, to end: trace_usage? = nil, wasLeft: Bool = false
    ) {
        let record = trace_initializer_record(
            record: trace_record(), initializer: number, parent: parent, module: module, index: index, thread: thread, load: load,
            address: address, usage: begin)
        self.record(TRACE_RECORD_INITIALIZER, key: kind, record, [])
        guard let end else { return }
        let last = trace_initializer_end_record(record: trace_record(), initializer: number, thread: thread, usage: end)
        self.record(TRACE_RECORD_INITIALIZER_END, key: wasLeft ? TRACE_INITIALIZER_LEFT : TRACE_INITIALIZER_RETURNED, last, [])
    }

    public mutating func ready(_ reason: Int, at ticks: UInt64, function: UInt32 = 0, thread: UInt32 = 0) {
        let record = trace_ready_record(record: trace_record(), function: function, thread: thread, ticks: ticks)
        self.record(TRACE_RECORD_READY, key: reason, record, [])
    }

    public mutating func load(
        _ number: UInt32, _ path: String, caller: UInt32 = .max, initializer: UInt32 = .max, thread: UInt32 = 0,
        begin: UInt64 = 0, opened: UInt64 = 0, mapped: trace_usage, end: trace_usage? = nil
    ) {
        let record = trace_load_record(
            record: trace_record(), load: number, thread: thread, caller_module: caller, initializer: initializer, begin_ticks: begin,
            opened_ticks: opened, mapped: mapped, path_bytes: UInt32(path.utf8.count), reserved: 0)
        self.record(TRACE_RECORD_LOAD, record, Array(path.utf8))
        guard let end else { return }
        self.record(TRACE_RECORD_LOAD_END, trace_load_end_record(record: trace_record(), load: number, reserved: 0, usage: end), [])
    }

    public mutating func once(_ function: UInt32, at ticks: UInt64, code: UInt64 = 0, token: UInt64 = 0, thread: UInt32 = 0) {
        let record = trace_once_record(
            record: trace_record(), function: function, thread: thread, ticks: ticks, code: code, token: token)
        self.record(TRACE_RECORD_ONCE, record, [])
    }

    public mutating func moduleDetail(
        _ module: UInt32, load: UInt32 = 0, relative: UInt32 = 0, symbols: UInt32 = 0, jumpSlots: UInt32 = 0,
        isLazy: Bool = false, mappedBytes: UInt64 = 0x10000, soname: String = "", needed: [String] = []
    ) {
        let name: [UInt8] = soname.isEmpty ? [] : Array(soname.utf8) + [0]
        let names: [UInt8] = needed.flatMap { Array($0.utf8) + [UInt8(0)] }
        let record = trace_module_detail_record(
            record: trace_record(), module: module, load: load, relative_relocations: relative, relr_bytes: 0, symbol_relocations: symbols,
            other_relocations: 0, jump_slots: jumpSlots, flags: isLazy ? UInt32(TRACE_MODULE_LAZY) : 0, mapped_bytes: mappedBytes,
            soname_bytes: UInt32(name.count), needed_bytes: UInt32(names.count))
        self.record(TRACE_RECORD_MODULE_DETAIL, record, name + names)
    }

    public mutating func binding(_ module: UInt32, to other: UInt32, calls: UInt32 = 0, addresses: UInt32 = 0) {
        let record = trace_binding_record(
            record: trace_record(), module: module, to_module: other, calls: calls, addresses: addresses)
        self.record(TRACE_RECORD_BINDING, record, [])
    }
}
