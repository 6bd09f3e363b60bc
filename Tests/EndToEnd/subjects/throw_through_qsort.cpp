// An exception thrown by a comparator leaves libc's qsort and bsearch, which have no handler.
// compilers: gcc clang
// library: compare
// modes: functions counts instrumented
#include "subject.h"
EXPORT int compare_throwing(const void *a, const void *b);
EXPORT int sort_some(int limit);
#ifdef LIB_compare
static int left;
int compare_throwing(const void *a, const void *b) {
    if (left-- == 0) throw *(const int *)a;
    return *(const int *)a - *(const int *)b;
}
int sort_some(int limit) {
    int values[64];
    for (int i = 0; i < 64; i++) values[i] = (i * 37) % 64;
    left = limit;
    try { qsort(values, 64, sizeof *values, [](const void *a, const void *b) { return compare_throwing(a, b); }); }
    catch (int) { return 1; }
    for (int i = 0; i < 64; i++) CHECK(values[i] == i);
    return 0;
}
#else
int main() {
    int thrown = 0;
    for (int i = 0; i < 50; i++) thrown += sort_some(i);
    thrown += sort_some(100000);
    CHECK(thrown == 50);
    printf("%d\n", thrown);
    return 0;
}
#endif
