// Collects while strings and delegates are in the hands of C, on several threads.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

static class Program {
    delegate int Compare(IntPtr a, IntPtr b);
    [DllImport("libc")] static extern void qsort(int[] values, IntPtr count, IntPtr size, Compare compare);
    [DllImport("libc")] static extern IntPtr strlen(string text);
    [DllImport("libc")] static extern IntPtr strdup(string text);
    [DllImport("libc")] static extern void free(IntPtr text);

    class Node { public Node Left, Right; public string Text; }
    static Node Tree(int depth) { return new Node { Text = "node" + depth, Left = depth > 0 ? Tree(depth - 1) : null, Right = depth > 0 ? Tree(depth - 1) : null }; }
    static int Count(Node node) { return node == null ? 0 : 1 + Count(node.Left) + Count(node.Right); }

    static int Main() {
        var failures = 0;
        for (var round = 0; round < 20; round++) {
            var kept = Tree(10);
            var texts = new List<string>();
            for (var i = 0; i < 500; i++) texts.Add(new StringBuilder("text").Append(i).ToString());
            GC.Collect();
            if (Count(kept) != 2047) failures++;
            for (var i = 0; i < 500; i++) {
                if (texts[i] != "text" + i) failures++;
                if (strlen(texts[i]).ToInt64() != texts[i].Length) failures++;
            }
        }
        var numbers = new int[200];
        for (var i = 0; i < 200; i++) numbers[i] = i * 7919 % 200;
        qsort(numbers, (IntPtr)200, (IntPtr)4, (a, b) => { if (Marshal.ReadInt32(a) % 16 == 0) GC.Collect(0); return Marshal.ReadInt32(a) - Marshal.ReadInt32(b); });
        for (var i = 0; i < 200; i++) if (numbers[i] != i) failures++;
        for (var i = 0; i < 200; i++) { var copy = strdup("copy" + i); GC.Collect(0); if (Marshal.PtrToStringAnsi(copy) != "copy" + i) failures++; free(copy); }
        var threads = new List<Thread>();
        for (var n = 0; n < 4; n++) {
            var thread = new Thread(() => { for (var i = 0; i < 20; i++) if (Count(Tree(9)) != 1023) Interlocked.Increment(ref failures); });
            thread.Start();
            threads.Add(thread);
        }
        foreach (var thread in threads) { GC.Collect(); thread.Join(); }
        try { object nothing = null; nothing.ToString(); } catch (NullReferenceException) { Console.WriteLine("caught"); }
        Console.WriteLine(failures + " failures");
        return failures == 0 ? 0 : 1;
    }
}
