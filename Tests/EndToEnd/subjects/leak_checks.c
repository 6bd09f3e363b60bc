// LeakSanitizer looks for pointers in registers and on stacks, by a process that stops all threads. What one callee-saved
// register of a caller holds is no leak: not while the check runs inside traced calls of that caller, nor while another
// thread that is stopped in a traced call holds it. A block that nothing holds is found all the same. (gcc 14's runtime looks at
// the checking thread's stack from its own frames upward only, and reports what they have saved of r13, bare too: so what counts
// is that both runs find the same. Reports go to a file: their stacks have other frames.)
// compilers: gcc clang
// build: -O1 -fno-omit-frame-pointer
// variant: asan exe:-fsanitize=address
// variant: lsan exe:-fsanitize=leak
// library: around
// memory: unlimited
// env: ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=1:exitcode=23:log_path=leaks LSAN_OPTIONS=exitcode=23:report_objects=0:log_path=leaks
// case: inside_a_traced_call inside
// case: in_a_thread_inside_a_traced_call thread
// case: at_the_end_of_the_program end
// case: of_what_is_lost lost
// native: * because the check stops threads by ptrace
// tree: none what is compared is the output
#include "subject.h"
void around(void (*body)(void));
#ifdef LIB_around
EXPORT void around(void (*body)(void)) { body(); OPAQUE(); }
#else
int __lsan_do_recoverable_leak_check(void);
void __lsan_do_leak_check(void);
static int found;
static int is_inside, is_over;
static void check(void) { found += __lsan_do_recoverable_leak_check() != 0; }
static void check_for_good(void) { around(__lsan_do_leak_check); } // ends the program when it finds one
static void wait_inside(void) {
    __atomic_store_n(&is_inside, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {}
}
static NOINLINE void wipe(void) {
    char old[16384];
    memset(old, 0, sizeof old);
    __asm__ volatile("" :: "r"(old) : "memory");
}
#define HOLD(name)                                                                                                       \
    static NOINLINE void hold_##name(void (*body)(void)) {                                                               \
        register void *block __asm__(#name) = malloc(1234);                                                              \
        __asm__ volatile("" : "+r"(block));                                                                              \
        wipe();                                                                                                          \
        around(body);                                                                                                    \
        __asm__ volatile("" : "+r"(block));                                                                              \
        free(block);                                                                                                     \
    }
#define NAMED(name) hold_##name,
#if defined __x86_64__
#define EACH(DO) DO(rbx) DO(r12) DO(r13) DO(r14) DO(r15)
#else
#define EACH(DO) DO(x19) DO(x20) DO(x21) DO(x22) DO(x23) DO(x24) DO(x25) DO(x26) DO(x27) DO(x28)
#endif
EACH(HOLD)
static void (*const holders[])(void (*)(void)) = {EACH(NAMED)};
static void *in_thread(void *hold) {
    (*(void (*const *)(void (*)(void)))hold)(wait_inside);
    return NULL;
}
static NOINLINE void lose(void) {
    void *volatile block = malloc(4321);
    block = NULL;
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    for (size_t n = 0; n < sizeof holders / sizeof *holders; n++) {
        if (!strcmp(argv[1], "inside")) {
            holders[n](check);
            holders[n](check_for_good);
        } else if (!strcmp(argv[1], "thread")) {
            pthread_t thread;
            is_inside = is_over = 0;
            CHECK(!pthread_create(&thread, NULL, in_thread, (void *)&holders[n]));
            while (!__atomic_load_n(&is_inside, __ATOMIC_ACQUIRE)) {}
            check();
            __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
            CHECK(!pthread_join(thread, NULL));
        } else if (!strcmp(argv[1], "end")) {
            holders[n](wipe);
        }
    }
    if (!strcmp(argv[1], "lost")) {
        lose();
        wipe();
        close(2); // the leak report on stderr names addresses
        check();
    }
    printf("%d leaks\n", found);
    if (!strcmp(argv[1], "lost")) fflush(stdout), _exit(0);
    return 0;
}
#endif
