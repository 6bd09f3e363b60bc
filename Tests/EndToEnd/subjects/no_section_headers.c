// A program and a library without any section header.
// library: bare
// after: python3 {source}/part_strip_sections.py {build}/no_section_headers {build}/libbare.so
#include "subject.h"
int bare_call(int value);
int bare_inner(int value);
#ifdef LIB_bare
EXPORT int bare_inner(int value) { return value + 1; }
EXPORT int bare_call(int value) { int r = bare_inner(value); OPAQUE(); return r + 1; }
#else
int main(void) {
    int sum = 0;
    for (int i = 0; i < 25; i++) sum += bare_call(i);
    printf("%d\n", sum);
    return 0;
}
#endif
