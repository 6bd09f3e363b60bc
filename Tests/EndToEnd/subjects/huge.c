// A hundred libraries with a thousand slots each.
// after: python3 {source}/part_huge.py {build} && gcc -O2 -o {build}/huge {source}/huge.c -DLINKED -I{source} -L{build} -Wl,--no-as-needed -lhuge0 -Wl,-rpath,{build} -Wl,-rpath-link,{build}
// env: BUILD={build}
// case: now LD_BIND_NOW=1
// case: lazy
// architecture: x86_64 its library is assembly
#include "subject.h"
#ifdef LINKED
long huge_0_0(long depth);
int main(void) {
    long sum = 0;
    for (int i = 0; i < 10; i++) sum += huge_0_0(i);
    printf("%ld\n", sum);
    return 0;
}
#else
int main(void) { return 1; }
#endif
