// Waits inside a traced call until something comes on standard input, then goes on. programs.py attaches gdb to it.
// library: patient
#include "subject.h"
int attached_wait(int descriptor);
int attached_outer(int descriptor);
int attached_step(int value);
#ifdef LIB_patient
EXPORT int attached_wait(int descriptor) { char c = 0; int got = (int)read(descriptor, &c, 1); OPAQUE(); return got; }
EXPORT int attached_outer(int descriptor) { int got = attached_wait(descriptor); OPAQUE(); return got; }
EXPORT int attached_step(int value) { return value + 1; }
#else
int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("waiting");
    attached_outer(0);
    int value = 0;
    while (value < 300) value = attached_step(value);
    printf("went on %d\n", value);
    return 0;
}
#endif
