// Plugins that initializers.c opens: a constructor of the one opens the other.
#include "subject.h"
#ifdef OUTER
static void *inside;
EXPORT int outer_value(void) { return 1; }
__attribute__((constructor)) static void outer_begin(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/libinner.so", getenv("BUILD"));
    inside = dlopen(path, RTLD_NOW);
    CHECK(inside);
}
__attribute__((destructor)) static void outer_end(void) { CHECK(!dlclose(inside)); }
#else
static volatile int opened;
__attribute__((constructor)) static void inner_begin(void) { opened++; }
__attribute__((destructor)) static void inner_end(void) { CHECK(opened == 1); }
#endif
