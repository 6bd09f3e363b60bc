// The loader's own view, <link.h>. Declared here because the agent includes no libc header.
#ifndef TRACER_LOADER_H
#define TRACER_LOADER_H
#include <stdint.h>

struct loader_module { // struct link_map
    uint64_t bias;
    const char *name;
    const void *dynamic;
    struct loader_module *next, *previous;
};
struct loader_debug { // struct r_debug; `next` is there when version > 1 (glibc 2.35)
    int32_t version;
    struct loader_module *first;
    uint64_t hook;
    int32_t state; // 0 consistent, 1 adding, 2 deleting
    uint64_t loader_base;
    struct loader_debug *next;
};
extern struct loader_debug _r_debug __attribute__((weak));
static inline int32_t tracer_load_state(const struct loader_debug *debug) { return __atomic_load_n(&debug->state, __ATOMIC_ACQUIRE); }
static inline struct loader_debug *tracer_loader_debug(void) { return &_r_debug; }
/// The dynamic section of this library, by which its entry in the loader's list is known.
extern const char tracer_dynamic[] __asm__("_DYNAMIC") __attribute__((visibility("hidden")));
static inline const void *tracer_own_dynamic(void) { return tracer_dynamic; }
#endif
