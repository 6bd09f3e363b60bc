// A jump in the place of one of a function's first instructions. No other byte of the function changes, so a thread may be anywhere in it,
// or come back there at any time: it executes the old instruction or the jump, and all others are as they were. On x86-64 a jump has five
// bytes or more: behind a shorter instruction the rest of its distance is what stands there, and only some addresses can be reached.

struct EntryJump: BitwiseCopyable {
    /// Address of the instruction, and how many of its bytes change, from the first on.
    let address: UInt64
    let count: Int
    /// Bytes of the jump: those behind the instruction must stay what they are.
    let byteCount: Int
    /// Instructions that undo those between the patch and the jump, so that all is as at the function's first byte; the first of their bytes
    /// is the lowest.
    let undo: UInt64
    let undoCount: Int
    /// The lowest and the highest address to which it can lead.
    let low: UInt64, high: UInt64

    var end: UInt64 { address &+ UInt64(byteCount) }
}
