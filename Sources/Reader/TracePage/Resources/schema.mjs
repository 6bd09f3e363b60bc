// The page's data, name by name: Swift writes it so (PageSchemaTests holds it against this), and the script reads it by these names.
// The text between the braces is JSON.

export const SCHEMA = {
  "page": ["title", "facts", "executable", "losses", "notes", "duration", "shown", "startup", "tree", "threads", "threadCount", "served",
    "samples", "table", "functions"],
  "shown": ["from", "to"],
  "startup": ["stages", "constructors", "marks"],
  "stage": ["name", "at", "length", "tracer"],
  "constructor": ["name", "module", "at", "length"],
  "mark": ["name", "at"],
  "tree": ["depth", "fn", "calls", "total", "self", "flags", "names"],
  "comparedTree": ["depth", "fn", "calls", "total", "self", "flags", "width", "before", "selfBefore", "callsBefore", "names"],
  "flags": { "open": 1, "unwound": 2, "cut": 4, "noise": 8 },
  "thread": ["name", "tid", "isMain", "process", "begin", "end", "own", "stages", "states", "calls", "levels", "deeper", "short", "slices", "dense"],
  "slice": ["start", "length", "fn", "level"],
  "band": ["start", "length", "level", "share"],
  "stateNames": ["running", "runnable", "lock", "condition", "descriptor", "disk", "sleep", "child", "join", "other", "unknown"],
  "states": ["spans", "bands", "waits"],
  "span": ["start", "length", "state", "wait"],
  "stateBand": ["start", "length", "state", "share"],
  "wait": ["what", "details", "length", "stretches", "waker", "woken", "ran"],
  "samples": ["period", "step", "depth", "fn", "names", "lanes", "moments"],
  "moment": ["at", "node", "count"],
  "row": ["fn", "calls", "total", "self", "maximum", "p50", "p99"],
  "comparedRow": ["fn", "calls", "total", "self", "maximum", "before", "callsBefore", "noise"],
  "function": ["name", "module"],
  "ownCode": "(own code)",
  "unknown": "…",
  "questions": { "calls": "calls", "sums": "sums" },
  "calls": ["from", "to", "functions", "parts"],
  "part": ["lane", "states", "calls", "levels", "deeper", "short", "slices", "dense"],
  "sums": ["from", "to", "functions", "rows"]
};
