// A thread that moves between CPUs on every call; nested times stay nested (the decoder checks it).
// library: move
// modes: arm
#include "subject.h"
int move_outer(int value);
int move_inner(int value);
#ifdef LIB_move
static void hop(int value) {
    static cpu_set_t all;
    static int count;
    if (!count) { CHECK(!sched_getaffinity(0, sizeof all, &all)); count = CPU_COUNT(&all); }
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && seen++ == value % count) CPU_SET(cpu, &one);
    CHECK(!sched_setaffinity(0, sizeof one, &one));
}
EXPORT int move_inner(int value) { hop(value); return value + 1; }
EXPORT int move_outer(int value) { hop(value + 1); int r = move_inner(value); OPAQUE(); hop(value + 1); return r + 1; }
#else
int main(void) {
    for (int i = 0; i < 300; i++) CHECK(move_outer(i) == i + 2);
    puts("moved");
    return 0;
}
#endif
