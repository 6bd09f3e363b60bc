// Weak functions that nobody defines stay NULL, and one that somebody does is called.
// library: weak
// compilers: gcc clang
// variant: lazy -Wl,-z,lazy
// variant: now -Wl,-z,now
// variant: nopie exe:-no-pie exe:-fno-pie
// variant: noplt@gcc exe:-fno-plt
#include "subject.h"
__attribute__((weak)) void absent(void);
__attribute__((weak)) int absent_called(int value);
__attribute__((weak)) int present(int value);
int weak_count(void);
#ifdef LIB_weak
EXPORT int present(int value) { return value + 1; }
EXPORT int weak_count(void) { return (absent != NULL) + (absent_called ? absent_called(1) : 0); }
#else
int main(void) {
    CHECK(absent == NULL);
    int sum = 0;
    for (int i = 0; i < 10; i++) {
        if (absent_called) sum += absent_called(i);
        sum += present(i);
    }
    CHECK(sum == 55 && weak_count() == 0);
    puts("absent");
    return 0;
}
#endif
