// pthread_exit and pthread_cancel unwind through traced frames and run destructors and cleanup handlers.
// compilers: gcc clang
// library: layers
// build: -O2 -fexceptions
// modes: instrumented
#include "subject.h"
#include <atomic>
EXPORT void layer_exit(int depth);
EXPORT void layer_wait(int depth);
EXPORT void layer_cleaned();
EXPORT int layer_cleanups();
EXPORT int layer_ready();
#ifdef LIB_layers
static std::atomic<int> cleanups, ready;
struct Cleanup { ~Cleanup() { layer_cleaned(); } };
void layer_cleaned() { cleanups++; }
int layer_cleanups() { return cleanups; }
int layer_ready() { return ready; }
void layer_exit(int depth) {
    Cleanup cleanup;
    if (depth == 0) pthread_exit((void *)42);
    layer_wait(-depth);
    OPAQUE();
}
void layer_wait(int depth) {
    Cleanup cleanup;
    if (depth < 0) layer_exit(-depth - 1);
    else {
        ready++;
        for (;;) pause();
    }
    OPAQUE();
}
#else
static void *exiting(void *) { layer_exit(4); return nullptr; }
static void *waiting(void *) {
    pthread_cleanup_push([](void *) { layer_cleaned(); }, nullptr);
    layer_wait(0);
    pthread_cleanup_pop(0);
    return nullptr;
}
int main() {
    pthread_t thread;
    void *result;
    for (int i = 0; i < 5; i++) {
        CHECK(!pthread_create(&thread, nullptr, exiting, nullptr) && !pthread_join(thread, &result));
        CHECK(result == (void *)42);
    }
    CHECK(layer_cleanups() == 45);
    for (int i = 0; i < 5; i++) {
        CHECK(!pthread_create(&thread, nullptr, waiting, nullptr));
        while (layer_ready() <= i) sched_yield();
        CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result));
        CHECK(result == PTHREAD_CANCELED);
    }
    CHECK(layer_cleanups() == 55);
    puts("all cleaned up");
    fflush(stdout);
    pthread_exit(nullptr); // from main: the process ends with status 0 once no thread is left
}
#endif
