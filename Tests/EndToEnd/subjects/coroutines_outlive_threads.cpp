// Coroutines whose thread has ended: some go on on another thread, whose calls then end; an exception leaves a call of each of the
// others open for ever. What the agent has for such threads does not grow with their number.
// library: park -pthread
// link: -pthread
// native: * because the memory of an emulator counts with that of the program
// modes: functions instrumented call_sites
// tree: none how often a thread looks after others is the machine's; the subject counts its calls
#include "subject.h"
extern "C" {
void park_around(void (*leave)(void *), void *self);
int park_step(int value);
void park_throw(int value);
unsigned long park_calls(int which);
}
#ifdef LIB_park
static unsigned long calls[3];
static void count(int which) { __atomic_add_fetch(&calls[which], 1, __ATOMIC_RELAXED); }
EXPORT unsigned long park_calls(int which) { return calls[which]; }
EXPORT void park_around(void (*leave)(void *), void *self) {
    count(0);
    leave(self);
    OPAQUE();
}
EXPORT int park_step(int value) { return count(1), value * 3 + 1; }
EXPORT void park_throw(int value) { count(2); throw value; }
#else
namespace {
enum { PARKED = 8, ABANDONED = 300, STACK = 65536 };
struct Coroutine {
    ucontext_t context, *back = nullptr;
    bool done = false;
    char *stack = nullptr;
};
Coroutine parked[PARKED];
void leave(void *self) {
    auto *coroutine = static_cast<Coroutine *>(self);
    swapcontext(&coroutine->context, coroutine->back);
}
void park(int number) {
    Coroutine *self = &parked[number];
    park_around(leave, self);
    CHECK(park_step(number) == number * 3 + 1);
    self->done = true;
    leave(self);
}
__thread ucontext_t here, there;
void fail(int) {
    try { park_throw(5); } catch (int) {}
    setcontext(&here);
}
void go(Coroutine *coroutine, void (*body)(int), int number) {
    coroutine->stack = static_cast<char *>(malloc(STACK));
    context_on(&coroutine->context, coroutine->stack, STACK, nullptr);
    coroutine->back = &here;
    makecontext(&coroutine->context, reinterpret_cast<void (*)()>(body), 1, number);
    swapcontext(&here, &coroutine->context);
}
void *begin_one(void *number) {
    go(&parked[reinterpret_cast<long>(number)], park, static_cast<int>(reinterpret_cast<long>(number)));
    return nullptr;
}
void *abandon_one(void *) {
    Coroutine coroutine;
    go(&coroutine, fail, 0);
    free(coroutine.stack);
    return nullptr;
}
void run(void *(*work)(void *), long argument) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, nullptr, work, reinterpret_cast<void *>(argument)) && !pthread_join(thread, nullptr));
}
long mappings() {
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file);
    long count = 0;
    for (int c = getc(file); c != EOF; c = getc(file)) count += c == '\n';
    fclose(file);
    return count;
}
}
int main() {
    for (long n = 0; n < PARKED; n++) run(begin_one, n);
    for (int n = 0; n < ABANDONED; n++) run(abandon_one, 0);
    long before = anonymous_kilobytes(), had = mappings();
    for (int n = 0; n < ABANDONED; n++) run(abandon_one, 0);
    if (anonymous_kilobytes() - before > 256) printf("private memory has grown by %ld KB\n", anonymous_kilobytes() - before);
    if (mappings() - had > 40) printf("%ld mappings were %ld\n", mappings(), had);
    for (auto &coroutine : parked) {
        coroutine.back = &here;
        CHECK(!coroutine.done);
        swapcontext(&here, &coroutine.context);
        CHECK(coroutine.done);
        free(coroutine.stack);
    }
    counted_between("park_around", park_calls(0), park_calls(0));
    counted_between("park_step", park_calls(1), park_calls(1));
    counted_between("park_throw", park_calls(2), park_calls(2));
    puts("all were there");
    return 0;
}
#endif
