// Hundreds of names that one, two or three libraries define: each call reaches the first of them, whichever hash tables they
// have, and is recorded. The agent looks such names up in the loader's place, many at a time.
// compilers: gcc
// library: front
// library: middle
// library: back
// variant: gnu -Wl,-z,lazy -Wl,--hash-style=gnu
// variant: sysv -Wl,-z,lazy -Wl,--hash-style=sysv
// variant: both -Wl,-z,lazy -Wl,--hash-style=both
// variant: lld -Wl,-z,lazy -fuse-ld=lld
// variant: mold -Wl,-z,lazy -fuse-ld=mold
// variant: now -Wl,-z,now
// variant: nopie -Wl,-z,lazy exe:-no-pie exe:-fno-pie
// tree: none each call returns who was called, and the subject counts them
// modes: functions
#include "subject.h"
#define EACH_TEN(DO, n) DO(n##0) DO(n##1) DO(n##2) DO(n##3) DO(n##4) DO(n##5) DO(n##6) DO(n##7) DO(n##8) DO(n##9)
#define EACH_HUNDRED(EACH, DO, n) EACH(DO, n##0) EACH(DO, n##1) EACH(DO, n##2) EACH(DO, n##3) EACH(DO, n##4) \
    EACH(DO, n##5) EACH(DO, n##6) EACH(DO, n##7) EACH(DO, n##8) EACH(DO, n##9)
#define EACH(SOME, DO) EACH_HUNDRED(SOME, DO, 1) EACH_HUNDRED(SOME, DO, 2) EACH_HUNDRED(SOME, DO, 3) EACH_HUNDRED(SOME, DO, 4)
#define BY_THREE(DO, n) DO(n##0) DO(n##3) DO(n##6) DO(n##9)
#define BY_TWO(DO, n) DO(n##0) DO(n##2) DO(n##4) DO(n##6) DO(n##8)
#define DEFINE(n) EXPORT int a_name_of_some_length_##n(void) { OPAQUE(); return OWNER; }
#if defined LIB_front
#define OWNER 1
EACH(BY_THREE, DEFINE)
#elif defined LIB_middle
#define OWNER 2
EACH(BY_TWO, DEFINE)
#elif defined LIB_back
#define OWNER 3
EACH(EACH_TEN, DEFINE)
#else
#define DECLARE(n) int a_name_of_some_length_##n(void);
EACH(EACH_TEN, DECLARE)
#define CALL(n) CHECK(a_name_of_some_length_##n() == (n % 10 % 3 == 0 ? 1 : n % 10 % 2 == 0 ? 2 : 3));
#define COUNT(n) counted("a_name_of_some_length_" #n, 2);
int main(void) {
    for (int round = 0; round < 2; round++) { EACH(EACH_TEN, CALL) }
    EACH(EACH_TEN, COUNT)
    puts("each the first of its name");
    return 0;
}
#endif
