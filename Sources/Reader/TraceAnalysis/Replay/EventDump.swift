// Every word of a trace, as it lies in the file.
import CTraceLayout
import TraceFormat

/// One word of an event chunk, or one frame that a chunk stores.
package struct DumpedEvent {
    package enum Kind: String {
        case frame, enter, exit, complete, tail, base, resume, unwound, site, argument, sampled, data, arguments, unknown
    }
    /// From the start of the file.
    package var offset: UInt64
    package var tid: UInt32
    package var ticks: Ticks
    package var kind: Kind
    package var function: UInt32?
    /// Ticks of a complete call.
    package var duration: UInt64?
    /// Count of unwound, calls that a sampled one stands for, address of a site, payload of others.
    package var value: UInt64?
    /// Object recorded with an enter or a complete call.
    package var object: CallObject?
    /// Arguments recorded with an enter or a complete call, and the result with an exit or a complete call.
    package var arguments: NamedArguments?
    package var result: (value: ArgumentValue, errno: String?)?
}

extension TraceFile {
    /// Calls `body` with everything in the file's event chunks, in the order of the file.
    package func dump(_ table: FunctionNames, _ body: @escaping (DumpedEvent) throws -> Void) throws {
        var reader = ChunkReader(self)
        for listed in chunksOfThread.joined().sorted(by: { $0.offset < $1.offset }) {
            guard let chunk = reader.settled(listed) else { continue }
            for (index, frame) in reader.storedFrames(chunk).enumerated() {
                let offset = chunk.offset + UInt64(ChunkWalk.headerBytes + index * MemoryLayout<trace_open_frame>.stride)
                try body(
                    DumpedEvent(
                        offset: offset, tid: chunk.tid, ticks: Ticks(frame.enter_ticks), kind: .frame,
                        function: frame.function))
            }
            var sink = DumpSink(tid: chunk.tid, table: table, metadata: metadata, body: body, time: chunk.opened.ticks)
            _ = reader.read(chunk, into: &sink)
            if let error = sink.error { throw error }
        }
    }
}

private struct DumpSink: EventSink, ~Copyable {
    let tid: UInt32
    let table: FunctionNames
    let metadata: Metadata
    let body: (DumpedEvent) throws -> Void
    var error: (any Error)?
    var offset: UInt64 = 0
    var time: UInt64
    var nextObject: UInt64?
    var nextValues = ArgumentWords()

    private mutating func emit(
        _ kind: DumpedEvent.Kind, at ticks: UInt64, function: UInt32? = nil,
        duration: UInt64? = nil, value: UInt64? = nil
    ) {
        time = ticks
        let isCall = kind == .enter || kind == .complete || kind == .tail
        let object = isCall ? nextObject.take() : nil
        let values = isCall || kind == .exit ? nextValues.take() : (call: nil, result: nil)
        let arguments = isCall ? metadata.arguments(values.call, kind == .complete ? values.result : nil) : nil
        let result = kind == .exit || kind == .complete ? metadata.result(values.result) : nil
        guard error == nil else { return }
        do {
            try body(
                DumpedEvent(
                    offset: offset, tid: tid, ticks: Ticks(ticks), kind: kind, function: function,
                    duration: duration, value: value, object: object.map { metadata.object($0, of: function ?? 0) },
                    arguments: arguments, result: result))
        } catch {
            self.error = error
        }
    }

    mutating func word(_ word: UInt64, at offset: UInt64) {
        self.offset = offset
        // The decoder keeps this one to itself until the next word.
        let event = Event(word: word) // control words are the same in all layouts
        if event.kind == .control, event.controlKind == .resume { emit(.resume, at: time, value: event.payload) }
    }
    mutating func base(_ ticks: UInt64) { emit(.base, at: ticks) }
    mutating func object(_ bits: UInt64?) {
        nextObject = bits
        if let bits { emit(.argument, at: time, value: bits) }
    }
    mutating func data(_ payload: UInt64) {
        nextValues.add(payload)
        emit(.data, at: time, value: payload)
    }
    mutating func values(_ announced: AnnouncedValues?) {
        guard let announced else { return nextValues.clear() }
        nextValues.announce(announced)
        emit(.arguments, at: time, value: UInt64(announced.program))
    }
    mutating func site(_ address: UInt64) { if address != 0 { emit(.site, at: time, value: address) } }

    mutating func enter(_ function: UInt32, at time: UInt64, exactly enterTicks: UInt64) {
        emit(.enter, at: time, function: function)
    }
    mutating func exit(_ function: UInt32, at time: UInt64) { emit(.exit, at: time, function: function) }
    mutating func complete(_ function: UInt32, from start: UInt64, to end: UInt64) {
        emit(table.isEntryOnly(function) ? .tail : .complete, at: start, function: function, duration: end &- start)
    }
    mutating func resumedExit(_ function: UInt32, entered ticks56: UInt64, at time: UInt64) {
        emit(.exit, at: time, function: function)
    }
    mutating func unwound(_ count: Int, at time: UInt64) { emit(.unwound, at: time, value: UInt64(count)) }
    mutating func resumedUnwound(entered ticks56: UInt64, at time: UInt64) { emit(.unwound, at: time, value: 1) }
    mutating func departed(entered ticks56: UInt64, at time: UInt64) { emit(.unwound, at: time, value: 0) }
    mutating func sampled(_ function: UInt32, _ calls: UInt64) { emit(.sampled, at: time, function: function, value: calls) }
    mutating func unknown(_ word: UInt64) { emit(.unknown, at: time, value: word) }
}
