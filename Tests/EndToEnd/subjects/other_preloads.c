// Another preload library before the agent, that wraps functions of libc and of the program's library.
// library: wrapped
// plugin: wrapper -ldl
// preload: {build}/libwrapper.so @
#include "subject.h"
int wrapped_call(int value);
#ifdef LIB_wrapped
EXPORT int wrapped_call(int value) { return value + 1; }
#elif defined LIB_wrapper
EXPORT int wrapped_call(int value) {
    static int (*next)(int);
    if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "wrapped_call");
    return next(value) * 2;
}
__attribute__((visibility("default"))) int rand(void) { return 4; } // chosen by fair dice roll
EXPORT time_t time(time_t *out) { if (out) *out = 12345; return 12345; }
__attribute__((constructor)) static void start(void) { setenv("WRAPPED", "yes", 1); }
#else
int main(void) {
    CHECK(getenv("WRAPPED"));
    for (int i = 0; i < 10; i++) CHECK(wrapped_call(i) == (i + 1) * 2);
    CHECK(rand() == 4 && time(NULL) == 12345);
    puts("wrapped");
    return 0;
}
#endif
