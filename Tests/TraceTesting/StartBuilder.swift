// The records of how a process started, for traces that tests write.
import CTraceLayout

extension TraceBuilder {
    public static func usage(at ticks: UInt64, own: UInt64 = 0, cpu: UInt64 = 0, minor: UInt32 = 0, major: UInt32 = 0) -> trace_usage {
        trace_usage(ticks: ticks, own_ticks: own, cpu_ns: cpu, minor_faults: minor, major_faults: major)
    }

    public mutating func phase(_ kind: Int, _ usage: trace_usage, monotonic: UInt64 = 0, error: UInt64 = 0, thread: UInt32 = 0) {
        var record = trace_phase_record()
        record.usage = usage
        record.monotonic_ns = monotonic
        record.error_ns = error
        record.thread = thread
        self.record(TRACE_RECORD_PHASE, key: kind, record, [])
    }

    /// Without `end` it never came back.
    public mutating func initializer(
        _ number: UInt32, _ kind: Int = TRACE_INITIALIZER_INIT_ARRAY, module: UInt32 = 0, index: UInt32 = 0,
        parent: UInt32 = .max, load: UInt32 = .max, thread: UInt32 = 0, address: UInt64 = 0x5000_1000,
        from begin: trace_usage, to end: trace_usage? = nil, wasLeft: Bool = false
    ) {
        var record = trace_initializer_record()
        record.initializer = number
        record.parent = parent
        record.module = module
        record.index = index
        record.thread = thread
        record.load = load
        record.address = address
        record.usage = begin
        self.record(TRACE_RECORD_INITIALIZER, key: kind, record, [])
        guard let end else { return }
        var last = trace_initializer_end_record()
        last.initializer = number
        last.thread = thread
        last.usage = end
        self.record(TRACE_RECORD_INITIALIZER_END, key: wasLeft ? TRACE_INITIALIZER_LEFT : TRACE_INITIALIZER_RETURNED, last, [])
    }

    public mutating func ready(_ reason: Int, at ticks: UInt64, function: UInt32 = 0, thread: UInt32 = 0) {
        var record = trace_ready_record()
        record.function = function
        record.thread = thread
        record.ticks = ticks
        self.record(TRACE_RECORD_READY, key: reason, record, [])
    }

    public mutating func load(
        _ number: UInt32, _ path: String, caller: UInt32 = .max, initializer: UInt32 = .max, thread: UInt32 = 0,
        begin: UInt64 = 0, opened: UInt64 = 0, mapped: trace_usage, end: trace_usage? = nil
    ) {
        var record = trace_load_record()
        record.load = number
        record.thread = thread
        record.caller_module = caller
        record.initializer = initializer
        record.begin_ticks = begin
        record.opened_ticks = opened
        record.mapped = mapped
        record.path_bytes = UInt32(path.utf8.count)
        self.record(TRACE_RECORD_LOAD, record, Array(path.utf8))
        guard let end else { return }
        var last = trace_load_end_record()
        last.load = number
        last.usage = end
        self.record(TRACE_RECORD_LOAD_END, last, [])
    }

    public mutating func once(_ function: UInt32, at ticks: UInt64, code: UInt64 = 0, token: UInt64 = 0, thread: UInt32 = 0) {
        var record = trace_once_record()
        record.function = function
        record.thread = thread
        record.ticks = ticks
        record.code = code
        record.token = token
        self.record(TRACE_RECORD_ONCE, record, [])
    }

    public mutating func moduleDetail(
        _ module: UInt32, load: UInt32 = 0, relative: UInt32 = 0, symbols: UInt32 = 0, jumpSlots: UInt32 = 0,
        isLazy: Bool = false, mappedBytes: UInt64 = 0x10000, soname: String = "", needed: [String] = []
    ) {
        var record = trace_module_detail_record()
        record.module = module
        record.load = load
        record.relative_relocations = relative
        record.symbol_relocations = symbols
        record.jump_slots = jumpSlots
        record.flags = isLazy ? UInt32(TRACE_MODULE_LAZY) : 0
        record.mapped_bytes = mappedBytes
        let name: [UInt8] = soname.isEmpty ? [] : Array(soname.utf8) + [0]
        let names: [UInt8] = needed.flatMap { Array($0.utf8) + [UInt8(0)] }
        record.soname_bytes = UInt32(name.count)
        record.needed_bytes = UInt32(names.count)
        self.record(TRACE_RECORD_MODULE_DETAIL, record, name + names)
    }

    public mutating func binding(_ module: UInt32, to other: UInt32, calls: UInt32 = 0, addresses: UInt32 = 0) {
        var record = trace_binding_record()
        record.module = module
        record.to_module = other
        record.calls = calls
        record.addresses = addresses
        self.record(TRACE_RECORD_BINDING, record, [])
    }
}
