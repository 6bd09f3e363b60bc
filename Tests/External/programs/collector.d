// D's collector, which looks at stacks and registers of all threads.
import core.memory : GC;
import core.stdc.string : strlen;
import core.thread : Thread;
import std.algorithm : sort, map, each;
import std.array : array;
import std.conv : to;
import std.range : iota;
import std.stdio : writeln;
import std.string : toStringz;

class Node {
    Node left, right;
    string text;
    this(int depth) {
        text = "node" ~ depth.to!string;
        if (depth > 0) { left = new Node(depth - 1); right = new Node(depth - 1); }
    }
    int count() { return 1 + (left ? left.count : 0) + (right ? right.count : 0); }
}

int work() {
    int failures;
    foreach (round; 0 .. 20) {
        auto kept = new Node(9);
        auto texts = iota(300).map!(i => "text that is on the heap " ~ i.to!string).array;
        GC.collect();
        if (kept.count != 1023) failures++;
        foreach (i, text; texts) if (text != "text that is on the heap " ~ i.to!string || strlen(text.toStringz) != text.length) failures++;
    }
    int[string] table;
    foreach (i; 0 .. 500) { table["key" ~ i.to!string] = i; if (i % 50 == 0) GC.collect(); }
    foreach (i; 0 .. 500) if (table["key" ~ i.to!string] != i) failures++;
    auto numbers = iota(500).map!(i => i * 7919 % 500).array;
    sort!((a, b) { if (a % 100 == 0) GC.collect(); return a < b; })(numbers);
    foreach (i, number; numbers) if (i != number) failures++;
    try { GC.collect(); throw new Exception("thrown " ~ failures.to!string); } catch (Exception e) { if (e.msg[0 .. 6] != "thrown") failures++; }
    return failures;
}

int main() {
    auto totals = new int[3];
    auto threads = iota(3).map!(n => new Thread({ totals[n] = work(); })).array;
    threads.each!(t => t.start());
    int failures = work();
    foreach (n, t; threads) { t.join(); failures += totals[n]; }
    writeln(failures, " failures");
    return failures ? 1 : 0;
}
