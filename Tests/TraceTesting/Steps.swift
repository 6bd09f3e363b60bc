// What threads do, for traces that tests write, as lists in the order of time.
import CTraceLayout
import TraceFormat

extension TraceBuilder {
    /// Times are ticks since the beginning of the trace.
    public enum Step: Sendable {
        case enter(_ function: UInt32, _ at: Int, site: UInt64 = 0, object: UInt64? = nil)
        case exit(_ function: UInt32, _ at: Int)
        /// A complete call, or one with an enter and an exit around what it does.
        case call(_ function: UInt32, _ from: Int, _ to: Int, _ inner: [Step] = [], site: UInt64 = 0, object: UInt64? = nil)
        case unwind(_ count: Int, _ at: Int)
        /// RESUME, for the frame that was entered then.
        case resume(_ entered: Int, _ at: Int)
        /// An exit as it is, without the RESUME that the builder's open frames may need.
        case bareExit(_ function: UInt32, _ at: Int)
        case word(_ event: Event, _ at: Int)
        /// A word that is made of the ticks since the base.
        case at(_ time: Int, @Sendable (UInt64) -> Event)
        case base(_ time: Int)
        /// The one frame that is open in the next chunk, as of the parent process.
        case inherit(_ function: UInt32, _ entered: Int)
        /// Counts of the chunk that is open.
        case counters(byTime: UInt64 = 0, byDepth: UInt64 = 0, dropped: UInt64 = 0)
        case split
        /// The end of a chunk that is lost.
        case lose
    }

    public mutating func steps(_ thread: Int, _ all: [Step]) {
        let start = header.first.ticks
        func ticks(_ time: Int) -> UInt64 { start &+ UInt64(bitPattern: Int64(time)) }
        for step in all {
            switch step {
            case .enter(let function, let at, let site, let object): enter(thread, function, at: ticks(at), site: site, object: object)
            case .exit(let function, let at): exit(thread, function, at: ticks(at))
            case .call(let function, let from, let to, let inner, let site, let object) where inner.isEmpty:
                complete(thread, function, from: ticks(from), to: ticks(to), site: site, object: object)
            case .call(let function, let from, let to, let inner, let site, let object):
                enter(thread, function, at: ticks(from), site: site, object: object)
                steps(thread, inner)
                exit(thread, function, at: ticks(to))
            case .unwind(let count, let at): unwind(thread, count, at: ticks(at))
            case .resume(let entered, let at): word(thread, .control(.resume, ticks(entered)), at: ticks(at))
            case .bareExit(let function, let at): word(thread, at: ticks(at)) { .exit(function, after: $0) }
            case .word(let event, let at): word(thread, event, at: ticks(at))
            case .at(let time, let event): word(thread, at: ticks(time), event)
            case .base(let time): base(thread, ticks(time))
            case .inherit(let function, let entered):
                setFrames(thread, [trace_open_frame(enter_ticks: ticks(entered), function: function, flags: 0)])
            case .counters(let byTime, let byDepth, let dropped): counters(thread, byTime: byTime, byDepth: byDepth, dropped: dropped)
            case .split: split(thread)
            case .lose: split(thread, isWritten: false)
            }
        }
    }
}
