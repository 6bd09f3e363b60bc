// libunwind's own lists of frames are the program's: going from frame to frame (unw_step), asked for each address and name,
// unw_backtrace, and backtrace and _Unwind_Backtrace, which it defines, too.
// compilers: gcc
// build: -O1 -fno-omit-frame-pointer -fexceptions -fno-optimize-sibling-calls
// library: walked
// link: -Wl,-z,now -rdynamic -ldl -lunwind -lunwind-x86_64
// needs: file:/usr/include/x86_64-linux-gnu/libunwind.h
// architecture: x86_64 nongnu libunwind is not there for the other
// case: local
// case: any any
// modes: functions counts call_sites
#include "subject.h"
int walked_outer(int (*look)(void));
int walked_inner(int (*look)(void));
#ifdef LIB_walked
EXPORT int walked_inner(int (*look)(void)) { int r = look(); OPAQUE(); return r + 1; }
EXPORT int walked_outer(int (*look)(void)) { int r = walked_inner(look); OPAQUE(); return r + 1; }
#else
#define UNW_LOCAL_ONLY
#include <libunwind.h>
// The names of the variant for any address space.
extern int _Ux86_64_init_local(unw_cursor_t *, unw_context_t *), _Ux86_64_step(unw_cursor_t *);
extern int _Ux86_64_get_reg(unw_cursor_t *, int, unw_word_t *);
static int isAny;
static void print_address(const char *what, int n, uintptr_t pc) {
    Dl_info info;
    CHECK(dladdr((void *)pc, &info));
    printf("%s %d %s+%lx\n", what, n, strrchr(info.dli_fname, '/'), (unsigned long)(pc - (uintptr_t)info.dli_fbase));
}
NOINLINE static int look(void) {
    unw_context_t context;
    unw_cursor_t cursor;
    CHECK(!unw_getcontext(&context));
    CHECK(!(isAny ? _Ux86_64_init_local(&cursor, &context) : unw_init_local(&cursor, &context)));
    int depth = 0;
    do {
        unw_word_t pc, offset = 0;
        char name[64] = "";
        CHECK(!(isAny ? _Ux86_64_get_reg(&cursor, UNW_REG_IP, &pc) : unw_get_reg(&cursor, UNW_REG_IP, &pc)));
        if (!isAny) unw_get_proc_name(&cursor, name, sizeof name, &offset);
        print_address(name, depth, pc);
    } while (++depth < 64 && (isAny ? _Ux86_64_step(&cursor) : unw_step(&cursor)) > 0);
    void *frames[64];
    int count = unw_backtrace(frames, 64);
    for (int n = 0; n < count; n++) print_address("list", n, (uintptr_t)frames[n]);
    for (int size = 1; size < 4; size++) printf("%d of %d\n", unw_backtrace(frames, size), size);
    return depth;
}
static int compare(const void *a, const void *b) {
    static int once;
    if (!once++) walked_inner(look);
    return *(const int *)a - *(const int *)b;
}
int main(int argc, char **argv) {
    isAny = argc > 1;
    (void)argv;
    printf("depth %d\n", walked_outer(look));
    int values[] = {3, 1, 2};
    qsort(values, 3, sizeof(int), compare);
    return values[0] - 1;
}
#endif
