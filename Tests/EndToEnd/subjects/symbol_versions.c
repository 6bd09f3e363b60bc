// Two versions of one name bound in one process: the old one by an old library, the default by the program.
// library: versioned -Wl,--version-script={source}/part_versions.map
// library: old -L{build} -lversioned
// variant: lazy -Wl,-z,lazy
// variant: now -Wl,-z,now
// modes: arm
#include "subject.h"
long answer(long value);
long old_caller(long value);
#ifdef LIB_versioned
__attribute__((visibility("default"))) long answer_old(long value) { return value + 1; }
__attribute__((visibility("default"))) long answer_new(long value) { return value + 1000; }
__asm__(".symver answer_old,answer@OLD_1\n.symver answer_new,answer@@NEW_2");
#elif defined LIB_old
__asm__(".symver answer,answer@OLD_1");
EXPORT long old_caller(long value) { long r = answer(value); OPAQUE(); return r; }
#else
int main(void) {
    for (int i = 0; i < 5; i++) CHECK(answer(i) == i + 1000);
    for (int i = 0; i < 5; i++) CHECK(old_caller(i) == i + 1);
    for (int i = 0; i < 5; i++) CHECK(answer(i) == i + 1000);
    puts("each its own");
    return 0;
}
#endif
