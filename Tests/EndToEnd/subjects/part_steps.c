// nongnu libunwind goes from frame to frame on aarch64 (arm_programs.py). Its headers are not there for another architecture than this
// machine's: names and sizes are those of its release 1.6 (include/libunwind-aarch64.h).
#include "subject.h"
int passed_outer(int (*look)(void));
int passed_inner(int (*look)(void));
#ifdef LIB_passed
EXPORT int passed_inner(int (*look)(void)) { int r = look(); OPAQUE(); return r + 1; }
EXPORT int passed_outer(int (*look)(void)) { int r = passed_inner(look); OPAQUE(); return r + 1; }
#else
enum { CURSOR_WORDS = 4096, UNW_REG_IP = 30 };
int _ULaarch64_init_local(void *cursor, void *context), _ULaarch64_step(void *cursor);
int _ULaarch64_get_reg(void *cursor, int number, unsigned long *value);
static NOINLINE int look(void) {
    static ucontext_t context;
    static unsigned long cursor[CURSOR_WORDS];
    unsigned long pc;
    int depth = 0;
    CHECK(!getcontext(&context) && !_ULaarch64_init_local(cursor, &context));
    do {
        Dl_info info;
        CHECK(!_ULaarch64_get_reg(cursor, UNW_REG_IP, &pc) && dladdr((void *)pc, &info));
        printf("%d %s+%lx\n", depth, strrchr(info.dli_fname, '/'), pc - (unsigned long)info.dli_fbase);
    } while (++depth < 64 && _ULaarch64_step(cursor) > 0);
    return depth;
}
int main(void) {
    for (int n = 0; n < 3; n++) printf("depth %d\n", passed_outer(look));
    return 0;
}
#endif
