// Kernel records of a process, for traces that tests write.
import CTraceLayout

extension TraceBuilder {
    public mutating func kernel(
        asked: Int = TRACE_KERNEL_SWITCHES | TRACE_KERNEL_MAJOR_FAULTS, granted: Int? = nil, error: UInt32 = 0, paranoid: Int32 = 2,
        from: UInt64 = 0, until: UInt64, lost: UInt64 = 0, period: UInt64 = 0
    ) {
        let record = trace_kernel_record(
            record: trace_record(), asked: UInt32(asked), granted: UInt32(granted ?? asked), error: error, paranoid: paranoid,
            from_ns: from, until_ns: until, lost: lost, period_ns: period)
        self.record(TRACE_RECORD_KERNEL, record, [])
    }

    /// In one record, each a moment, a thread and a TRACE_SWITCH_ kind.
    public mutating func switches(_ all: [(ns: UInt64, tid: UInt32, kind: Int)], cpu: UInt16 = 0, count: UInt32? = nil) {
        self.record(
            TRACE_RECORD_SWITCHES, trace_switches_record(record: trace_record(), count: count ?? UInt32(all.count), reserved: 0),
            all.flatMap { one in
                withUnsafeBytes(of: trace_switch(ns: one.ns, tid: one.tid, cpu: cpu, kind: UInt16(one.kind))) { Array($0) }
            })
    }

    public mutating func task(_ kind: Int, _ tid: UInt32, at ns: UInt64, by: UInt32 = 0, name: String = "") {
        var record = trace_task_record()
        record.ns = ns
        record.tid = tid
        record.by = by
        withUnsafeMutableBytes(of: &record.name) { $0.copyBytes(from: Array(name.utf8.prefix(15))) }
        self.record(TRACE_RECORD_TASK, key: kind, record, [])
    }

    public mutating func pageFault(
        _ tid: UInt32, at ns: UInt64, kind: Int = TRACE_FAULT_MAJOR, address: UInt64 = 0, code: UInt64 = 0, _ path: String = "",
        offset: UInt64 = 0
    ) {
        let record = trace_page_fault_record(
            record: trace_record(), ns: ns, tid: tid, path_bytes: UInt32(path.utf8.count), address: address, code: code, offset: offset)
        self.record(TRACE_RECORD_PAGE_FAULT, key: kind, record, Array(path.utf8))
    }

    public mutating func foundWaiting(
        _ tid: UInt32, at ns: UInt64, systemCall: Int32, _ arguments: (UInt64, UInt64) = (0, 0), kernelFunction: String = "",
        object: String = ""
    ) {
        let record = trace_wait_record(
            record: trace_record(), ns: ns, tid: tid, system_call: systemCall, arguments: arguments,
            function_bytes: UInt32(kernelFunction.utf8.count), object_bytes: UInt32(object.utf8.count))
        self.record(TRACE_RECORD_WAIT, record, Array((kernelFunction + object).utf8))
    }

    /// - Parameter access: TRACE_ACCESS_ bits
    public mutating func descriptor(_ number: Int32, at ns: UInt64, access: Int, _ object: String, peer: String = "") {
        let record = trace_descriptor_record(
            record: trace_record(), ns: ns, descriptor: number, object_bytes: UInt32(object.utf8.count),
            peer_bytes: UInt32(peer.utf8.count), reserved: 0)
        self.record(TRACE_RECORD_DESCRIPTOR, key: access, record, Array((object + peer).utf8))
    }

    /// - Parameter key: TRACE_ACCESS_ and TRACE_OPENED_ bits
    public mutating func opened(
        _ number: Int32, at ticks: UInt64, _ object: String, key: Int = TRACE_ACCESS_READ | TRACE_ACCESS_WRITE, pair: Int32 = -1,
        stream: UInt64 = 0, own: UInt64 = 1
    ) {
        let record = trace_opened_record(
            record: trace_record(), ticks: ticks, thread: 0, descriptor: number, pair: pair, object_bytes: UInt32(object.utf8.count),
            stream: stream, own_ticks: own)
        self.record(TRACE_RECORD_OPENED, key: key, record, Array(object.utf8))
    }

    /// - Parameter access: TRACE_ACCESS_ bits, what it waits to do
    public mutating func polled(_ tid: UInt32, _ number: Int32, at ns: UInt64, access: Int, _ object: String) {
        let record = trace_polled_record(
            record: trace_record(), ns: ns, tid: tid, descriptor: number, object_bytes: UInt32(object.utf8.count), reserved: 0)
        self.record(TRACE_RECORD_POLLED, key: access, record, Array(object.utf8))
    }

    /// - Parameter policy: SCHED_
    public mutating func priority(_ tid: UInt32, at ns: UInt64, policy: Int32 = 0, nice: Int32 = 0, realTime: UInt32 = 0) {
        let record = trace_priority_record(
            record: trace_record(), ns: ns, tid: tid, policy: policy, nice: nice, priority: realTime)
        self.record(TRACE_RECORD_PRIORITY, record, [])
    }

    /// - Parameter why: TRACE_UNRECORDED_
    public mutating func unrecorded(
        _ path: String, why: Int, pid: UInt32, parent: UInt32 = 0, at ns: UInt64, count: UInt32 = 1, pathBytes: UInt32? = nil
    ) {
        let record = trace_unrecorded_record(
            record: trace_record(), ns: ns, pid: pid, parent: parent, count: count, path_bytes: pathBytes ?? UInt32(path.utf8.count))
        self.record(TRACE_RECORD_UNRECORDED, key: why, record, Array(path.utf8))
    }

    /// Each a moment, a thread, flags and addresses: samples, or with TRACE_RECORD_WAIT_STACKS stacks of threads that wait.
    public mutating func samples(
        _ all: [(ns: UInt64, tid: UInt32, flags: Int, addresses: [UInt64])], count: UInt32? = nil, type: Int = TRACE_RECORD_SAMPLES
    ) {
        self.record(
            type, trace_samples_record(record: trace_record(), count: count ?? UInt32(all.count), reserved: 0),
            all.flatMap { one in
                let head = trace_sample(ns: one.ns, tid: one.tid, count: UInt16(one.addresses.count), flags: UInt16(one.flags))
                return withUnsafeBytes(of: head) { Array($0) }
                    + one.addresses.flatMap { address in withUnsafeBytes(of: address) { Array($0) } }
            })
    }

    /// Code that the process made while it ran, or with TRACE_RECORD_KERNEL_NAME a function of the kernel.
    public mutating func codeName(_ address: UInt64, _ byteCount: UInt64, _ name: String, type: Int = TRACE_RECORD_CODE_NAME) {
        let record = trace_code_name_record(
            record: trace_record(), address: address, code_bytes: byteCount, name_bytes: UInt32(name.utf8.count), reserved: 0)
        self.record(type, record, Array(name.utf8))
    }
}
