// What the benchmark calls. In a shared library of its own, so that every call goes through a procedure linkage table.
#include "library.h"

unsigned long bench_leaf(unsigned long x) { return x * 3 + 1; }

int bench_four(int a, int b, int c, int d) { return a + b * c - d; }

void bench_text(const char *text) { __asm__ volatile("" ::"r"(text)); }

// bench_leaf again goes through this library's table: it could be interposed.
unsigned long bench_parent(unsigned long x) { return bench_leaf(x) + 1; }

unsigned long bench_repeat(unsigned long calls) {
    unsigned long x = 0;
    for (unsigned long n = 0; n < calls; n++) x = bench_leaf(x);
    return x;
}
