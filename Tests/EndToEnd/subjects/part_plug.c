// The modules that dlopens.c opens. plug_call is entered through a pointer; plug_leaf through this module's slot.
#include "subject.h"
int plug_leaf(int value);
#ifdef INNER
enum { OFFSET = 7000 };
#else
enum { OFFSET = 1000 };
#endif
#ifdef DEEP
int resolved(int value);
EXPORT int plug_resolved(int value) { return resolved(value); }
__attribute__((visibility("default"))) int resolved(int value) { return value + 9000; }
#endif
EXPORT int plug_leaf(int value) { return value + 1; }
EXPORT int plug_call(int value) { return plug_leaf(value) + OFFSET; }
__attribute__((constructor)) static void loaded(void) { CHECK(plug_leaf(1) == 2); }
__attribute__((destructor)) static void unloaded(void) { CHECK(plug_leaf(2) == 3); }
#ifdef NESTED
static void *inside;
__attribute__((constructor)) static void opens_another(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/libplug.so", getenv("BUILD"));
    inside = dlopen(path, RTLD_NOW);
    CHECK(inside);
}
EXPORT int plug_nested(int value) {
    int (*call)(int) = (int (*)(int))dlsym(inside, "plug_call");
    return call(value);
}
#endif
#ifdef WAITING
// A constructor, under the loader's lock, waits for a thread that makes its first calls.
static int sum;
static void *first_calls(void *unused) {
    for (int i = 0; i < 10; i++) sum += plug_leaf(i);
    return unused;
}
__attribute__((constructor)) static void waits(void) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, first_calls, NULL) && !pthread_join(thread, NULL));
}
EXPORT int plug_waited(int unused) { return sum + unused; }
#endif
