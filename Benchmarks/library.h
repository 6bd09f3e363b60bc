#pragma once
unsigned long bench_leaf(unsigned long x);
int bench_four(int a, int b, int c, int d);
/// Looks at no byte of it.
void bench_text(const char *text);
/// The same (object.c).
unsigned long dispatch_semaphore_signal(unsigned long x);
/// Calls bench_leaf once: a call that is not a leaf.
unsigned long bench_parent(unsigned long x);
/// Calls bench_leaf `calls` times: one level deeper than a caller's own loop.
unsigned long bench_repeat(unsigned long calls);
