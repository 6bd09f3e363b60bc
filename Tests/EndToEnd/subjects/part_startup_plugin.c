// Opened by the program; its constructor opens another copy of this file, INNER.
#define _GNU_SOURCE
#include "part_startup.h"
#include <dlfcn.h>

#ifdef INNER
__attribute__((constructor)) static void inner_init(void) { usleep(3000); }
#else
__attribute__((constructor)) static void outer_init(void) {
    usleep(2000);
    if (!dlopen("libinner.so", RTLD_NOW)) abort();
}
#endif
