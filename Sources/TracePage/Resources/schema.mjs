// The page's data, name by name: Swift writes it so (PageSchemaTests holds it against this), and the script reads it by these names.
// What stands between the braces is JSON.

export const SCHEMA = {
  "page": ["title", "facts", "executable", "losses", "notes", "duration", "shown", "startup", "tree", "threads", "threadCount", "served",
    "table", "functions"],
  "shown": ["from", "to"],
  "startup": ["stages", "constructors", "marks"],
  "stage": ["name", "at", "length"],
  "constructor": ["name", "module", "at", "length"],
  "mark": ["name", "at"],
  "tree": ["depth", "fn", "calls", "total", "self", "flags", "names"],
  "comparedTree": ["depth", "fn", "calls", "total", "self", "flags", "width", "before", "selfBefore", "callsBefore", "names"],
  "flags": { "open": 1, "unwound": 2, "cut": 4, "noise": 8 },
  "thread": ["name", "tid", "isMain", "process", "begin", "end", "own", "stages", "calls", "levels", "deeper", "short", "slices", "dense"],
  "slice": ["start", "length", "fn", "level"],
  "band": ["start", "length", "level", "share"],
  "row": ["fn", "calls", "total", "self", "maximum", "p50", "p99"],
  "comparedRow": ["fn", "calls", "total", "self", "maximum", "before", "callsBefore", "noise"],
  "function": ["name", "module"],
  "ownCode": "(own code)",
  "questions": { "calls": "calls", "sums": "sums" },
  "calls": ["from", "to", "functions", "parts"],
  "part": ["lane", "calls", "levels", "deeper", "short", "slices", "dense"],
  "sums": ["from", "to", "functions", "rows"]
};
