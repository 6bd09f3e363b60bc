// setitimer at 10 kHz interrupts traced calls with a handler that makes traced calls; on the stack, on an alternate
// stack of the minimum size, nested, and left by siglongjmp.
// library: storm -Wl,-z,now
// link: -Wl,-z,now
// case: plain plain
// case: altstack altstack
// case: nested nested
// case: jumping jumping
// case: threads threads
// tree: none the subject counts its calls
// modes: instrumented call_sites
#include "subject.h"
#include <sys/auxv.h>
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51 // Linux 5.14, sysconf(_SC_MINSIGSTKSZ) of glibc 2.34
#endif
#include <sys/time.h>
long storm_work(long value);
long storm_inner(long value);
void storm_handler(void);
void storm_handler_inner(void);
#ifdef LIB_storm
EXPORT long storm_inner(long value) { return value * 7 + 1; }
EXPORT long storm_work(long value) { long result = storm_inner(value); OPAQUE(); return result ^ value; }
EXPORT void storm_handler_inner(void) { OPAQUE(); }
EXPORT void storm_handler(void) { storm_handler_inner(); OPAQUE(); }
#else
enum { WANTED = 1000 };
static volatile sig_atomic_t jumping, nested;
static _Atomic unsigned long handled, works;
static sigjmp_buf back;
static volatile sig_atomic_t jump_allowed;
static void handler(int signal) {
    handled++;
    storm_handler();
    if (nested && signal == SIGALRM) raise(SIGUSR1);
    if (jumping && jump_allowed && handled % 4 == 0) siglongjmp(back, 1);
}
static _Thread_local unsigned long own_works;
static void pause_a_little(void) { for (volatile int i = 0; i < 100; i++) {} } // bounds the number of events, not the time
static void work_until_done(void) {
    long expected, value = 1;
    while (handled < WANTED) {
        for (int i = 0; i < 50; i++) {
            own_works++;
            expected = (value * 7 + 1) ^ value;
            value = storm_work(value);
            CHECK(value == expected);
            value &= 0xffff;
            pause_a_little();
        }
    }
    works += own_works;
}
static void *thread_body(void *unused) { work_until_done(); return unused; }
int main(int argc, char **argv) {
    CHECK(argc == 2);
    const char *mode = argv[1];
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    if (!strcmp(mode, "altstack")) {
        static char stack[1 << 16];
        stack_t alternate = {.ss_sp = stack, .ss_size = (getauxval(AT_MINSIGSTKSZ) ? getauxval(AT_MINSIGSTKSZ) : MINSIGSTKSZ) + 512};
        CHECK(alternate.ss_size <= sizeof stack && !sigaltstack(&alternate, NULL));
        action.sa_flags |= SA_ONSTACK;
    }
    nested = !strcmp(mode, "nested");
    CHECK(!sigaction(SIGALRM, &action, NULL));
    CHECK(!sigaction(SIGUSR1, &action, NULL));
    struct itimerval timer = {{0, 100}, {0, 100}};
    CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
    volatile unsigned long interrupted = 0;
    if (!strcmp(mode, "jumping")) {
        // The value of a call that is left is lost; what matters is that every call entered has its event.
        jumping = 1;
        volatile unsigned long entered = 0;
        if (sigsetjmp(back, 1)) { interrupted++; }
        jump_allowed = 1;
        while (handled < WANTED) {
            jump_allowed = 0;
            entered++;
            jump_allowed = 1;
            storm_work((long)entered);
            pause_a_little();
        }
        jump_allowed = 0;
        works = entered;
        CHECK(interrupted > 50);
    } else if (!strcmp(mode, "threads")) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++) CHECK(!pthread_create(&threads[i], NULL, thread_body, NULL));
        work_until_done();
        for (int i = 0; i < 3; i++) CHECK(!pthread_join(threads[i], NULL));
    } else work_until_done();
    struct itimerval off = {{0, 0}, {0, 0}};
    CHECK(!setitimer(ITIMER_REAL, &off, NULL));
    // A signal may stand between `entered++` and the call, or between handled++ and the handler's call.
    if (jumping) {
        counted_between("storm_work", works - interrupted, works);
        counted_between("storm_inner", works > 2 * interrupted ? works - 2 * interrupted : 0, works);
    } else {
        counted("storm_work", works);
        counted("storm_inner", works);
    }
    counted("storm_handler", handled);
    counted("storm_handler_inner", handled);
    puts("storm over");
    return 0;
}
#endif
