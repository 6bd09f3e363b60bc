// Coroutines that four threads take from a queue and put back, so that calls end on another thread than they began on;
// exceptions inside them; a timer's handler on the threads' signal stacks, which calls traced functions; and forks.
// library: climb
// tree: none the subject counts its calls
// disorder: * because the list of a chunk lacks what has ended on another thread
// forks: *
// modes: functions instrumented call_sites
#include "subject.h"
extern "C" {
long climb(long value, int height, void (*leave)(void *), void *self);
long climb_also(long value, int height, void (*leave)(void *), void *self); // a function's call of itself has no slot
long climb_step(long value);
void climb_fail(long value);
unsigned long climb_calls(int which); // as they count themselves
}
#ifdef LIB_climb
#include <stdexcept>
static unsigned long calls[4];
static void count(int which) { __atomic_add_fetch(&calls[which], 1, __ATOMIC_RELAXED); }
EXPORT unsigned long climb_calls(int which) { return calls[which]; }
EXPORT long climb_step(long value) { return count(0), value * 7 + 3; }
EXPORT long climb(long value, int height, void (*leave)(void *), void *self) {
    count(1);
    if (height == 0 && leave) leave(self);
    return height == 0 ? climb_step(value) : climb_step(value) ^ climb_also(value + 1, height - 1, leave, self);
}
EXPORT long climb_also(long value, int height, void (*leave)(void *), void *self) {
    count(3);
    return climb(value, height, leave, self) + climb_step(value);
}
EXPORT void climb_fail(long value) {
    count(2);
    if (value % 3 == 0) throw std::runtime_error("every third");
}
#else
#include <atomic>
#include <deque>
#include <exception>
#include <sys/time.h>
namespace {
enum { COROUTINES = 12, ROUNDS = 150, STACK = 65536, THREADS = 4, FORKS = 5 };
struct Coroutine {
    ucontext_t context, *back = nullptr;
    int number = 0;
    bool done = false;
    alignas(64) char stack[STACK];
};
Coroutine all[COROUTINES];
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
std::deque<Coroutine *> queue;
std::atomic<int> alive{COROUTINES};

void leave(void *self) {
    auto *coroutine = static_cast<Coroutine *>(self);
    swapcontext(&coroutine->context, coroutine->back);
}
void body(int number) {
    Coroutine *self = &all[number];
    unsigned seed = number * 77 + 1;
    long value = 0;
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1103515245 + 12345;
        value ^= climb(value, (seed >> 16) % 6, (seed >> 20) % 3 ? leave : nullptr, self);
        if ((seed >> 8) % 5 == 0) {
            try { climb_fail(i); } catch (std::exception &) { value++; }
        }
        if ((seed >> 12) % 97 == 0) leave(self);
    }
    self->done = true;
    leave(self);
    CHECK(false);
}
void *work(void *) {
    static thread_local char signals[STACK];
    stack_t stack = {};
    stack.ss_sp = signals;
    stack.ss_size = sizeof signals;
    CHECK(!sigaltstack(&stack, nullptr));
    ucontext_t here;
    unsigned seed = 1;
    while (alive) {
        Coroutine *next = nullptr;
        pthread_mutex_lock(&lock);
        if (!queue.empty()) {
            next = queue.front();
            queue.pop_front();
        }
        pthread_mutex_unlock(&lock);
        if (!next) {
            usleep(50);
            continue;
        }
        next->back = &here;
        swapcontext(&here, &next->context);
        seed = seed * 1103515245 + 12345;
        for (unsigned n = 0; n < (seed >> 16) % 40; n++) climb_step(n);
        if (next->done) {
            alive--;
            continue;
        }
        pthread_mutex_lock(&lock);
        queue.push_back(next);
        pthread_mutex_unlock(&lock);
    }
    stack.ss_flags = SS_DISABLE;
    CHECK(!sigaltstack(&stack, nullptr));
    return nullptr;
}
void handler(int) { climb(2, 2, nullptr, nullptr); }
} // namespace
int main() {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    CHECK(!sigaction(SIGPROF, &action, nullptr));
    itimerval often = {{0, 500}, {0, 500}};
    CHECK(!setitimer(ITIMER_PROF, &often, nullptr));
    for (int n = 0; n < COROUTINES; n++) {
        context_on(&all[n].context, all[n].stack, STACK, nullptr);
        makecontext(&all[n].context, reinterpret_cast<void (*)()>(body), 1, n);
        queue.push_back(&all[n]);
    }
    pthread_t threads[THREADS];
    for (auto &thread : threads) CHECK(!pthread_create(&thread, nullptr, work, nullptr));
    unsigned long inChildren = 0;
    for (int n = 0; n < FORKS; n++) {
        pid_t child = fork();
        if (!child) {
            setitimer(ITIMER_PROF, nullptr, nullptr);
            _exit(climb_step(4) == 31 ? 0 : 1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        inChildren++;
    }
    for (auto &thread : threads) CHECK(!pthread_join(thread, nullptr));
    signal(SIGPROF, SIG_IGN);
    counted("climb_step", climb_calls(0) + inChildren);
    counted("climb", climb_calls(1));
    counted("climb_fail", climb_calls(2));
    counted("climb_also", climb_calls(3));
    puts("all have ended");
    return 0;
}
#endif
