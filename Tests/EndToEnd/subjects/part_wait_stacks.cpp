// Threads that wait in many ways, each for as long as the argument says, in milliseconds. Each notes in which stack, by backtrace() in the
// function that is about to wait: "wait NAME TID END ADDRESS…", innermost first, the first of them in that function. END: "whole", "cut"
// where nobody can know the last one's caller, "any" where that depends on libc. One thread naps for 12 ms in different places in turn:
// "nap BEGIN END PLACE", in ns of CLOCK_MONOTONIC, PLACE where the nap's function returns to.
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <execinfo.h>
#include <linux/futex.h>
#include <mutex>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define STAYS __asm__ volatile("" ::: "memory") // the call before it is no jump

struct Thread {
    const char *name;
    void (*body)(Thread *);
    const char *end = "whole";
    pthread_t thread = {};
    pid_t tid = 0;
    int count = 0;
    void *addresses[64] = {};
};
struct Nap {
    int64_t begin, end;
    void *place;
};

static timespec length;
static int never[2]; // nobody writes to this pipe before the end
static std::mutex mutex;
static std::condition_variable condition;
static bool isOver;
static Nap naps[4096];
static int napCount;

static int64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

#define NOTE(self) ((self)->tid = gettid(), (self)->count = backtrace((self)->addresses, 64))

// What each of them waits in, three static functions deep; the outer ones have frames of different sizes.
#define DEEP(NAME, WAITS)                                                                                                                    \
    static APART void NAME##_inner(Thread *self) {                                                                                          \
        NOTE(self);                                                                                                                         \
        WAITS;                                                                                                                              \
        STAYS;                                                                                                                              \
    }                                                                                                                                       \
    static APART void NAME##_middle(Thread *self, int depth) {                                                                              \
        __attribute__((unused)) volatile char space[40 + sizeof #NAME * 8];                                                                                         \
        space[depth] = 1;                                                                                                                   \
        if (depth > 0) NAME##_middle(self, depth - 1);                                                                                      \
        else NAME##_inner(self);                                                                                                            \
        space[depth] = 2;                                                                                                                   \
        STAYS;                                                                                                                              \
    }                                                                                                                                       \
    static APART void NAME##_outer(Thread *self) {                                                                                          \
        NAME##_middle(self, 3);                                                                                                             \
        STAYS;                                                                                                                              \
    }

static void wait_for_pipe() {
    char byte;
    if (read(never[0], &byte, 1) != 0) abort();
}

static void wait_for_condition() {
    std::unique_lock<std::mutex> lock(mutex);
    while (!isOver) condition.wait(lock);
}

DEEP(sleeps, nanosleep(&length, nullptr))
DEEP(small, nanosleep(&length, nullptr))
DEEP(handled, nanosleep(&length, nullptr))
DEEP(switched, nanosleep(&length, nullptr))
DEEP(reads, wait_for_pipe())
DEEP(conditional, wait_for_condition())
DEEP(futex, static uint32_t word; syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &length, nullptr, 0))
DEEP(compared, nanosleep(&length, nullptr))
DEEP(bare, nanosleep(&length, nullptr))
DEEP(made, nanosleep(&length, nullptr))

// Through a recorded call that calls back.
static Thread *compares;
static APART int compare(const void *, const void *) {
    if (compares) {
        Thread *self = compares;
        compares = nullptr;
        compared_outer(self);
    }
    return 0;
}
static APART void sorts(Thread *self) {
    int numbers[2] = {2, 1};
    compares = self;
    qsort(numbers, 2, sizeof *numbers, compare);
    STAYS;
}

// On an alternate signal stack, which lies below the thread's in memory, and in a handler.
static __thread Thread *interrupted;
static APART void handler(int) {
    handled_outer(interrupted);
    STAYS;
}
static APART void is_interrupted(Thread *self) {
    static char space[64 << 10];
    stack_t stack = {};
    stack.ss_sp = space;
    stack.ss_size = sizeof space;
    sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    interrupted = self;
    pthread_kill(pthread_self(), SIGUSR1);
    STAYS;
}

// On a stack that the program has made.
static ucontext_t back, there;
static Thread *switching;
static APART void other_stack() {
    switched_outer(switching);
    STAYS;
}
static APART void switches(Thread *self) {
    const size_t bytes = 64 << 10;
    switching = self;
    getcontext(&there);
    there.uc_stack.ss_sp = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    there.uc_stack.ss_size = bytes;
    there.uc_link = &back;
    makecontext(&there, other_stack, 0);
    swapcontext(&back, &there);
    STAYS;
}

#ifdef __x86_64__
// A system call of the program's own, as the last instruction of what was inlined.
static APART void own_call(Thread *self) {
    NOTE(self);
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(SYS_nanosleep), "D"(&length), "S"(nullptr) : "rcx", "r11", "memory");
    STAYS;
}

// Code of the file that nobody describes, and which leaves the frame pointer of its caller where it is.
extern "C" void undescribed(Thread *, void (*)(Thread *));
__asm__(".text\n.type undescribed, @function\nundescribed:\nsub $24, %rsp\ncall *%rsi\nadd $24, %rsp\nret\n.size undescribed, . - undescribed\n");
static APART void calls_undescribed(Thread *self) {
    undescribed(self, bare_outer);
    STAYS;
}

// Code of no file.
static APART void calls_made(Thread *self) {
    static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd6, 0x48, 0x83, 0xc4, 0x08, 0xc3}; // as above
    void *space = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(space, code, sizeof code);
    reinterpret_cast<void (*)(Thread *, void (*)(Thread *))>(space)(self, made_outer);
    STAYS;
}
#endif

// Naps, of which the recorder sees some only when they are over.
static APART void nap() {
    if (napCount == sizeof naps / sizeof *naps) return;
    Nap *one = &naps[napCount++];
    const timespec brief = {0, 12000000};
    one->place = __builtin_return_address(0);
    one->begin = now();
    nanosleep(&brief, nullptr);
    one->end = now();
}
template <int N> static APART void place() {
    __attribute__((unused)) volatile char space[16 + N * 48];
    space[0] = N;
    nap();
    space[1] = N;
    STAYS;
}
static APART void naps_in_turn(Thread *) {
    const int64_t end = now() + length.tv_sec * 1000000000LL + length.tv_nsec;
    for (int n = 0; now() < end; n++) {
        switch (n * 7 % 5) {
        case 0: place<0>(); break;
        case 1: place<1>(); break;
        case 2: place<2>(); break;
        case 3: place<3>(); break;
        default: place<4>();
        }
        STAYS;
    }
}

static Thread threads[] = {
    {"sleeps", sleeps_outer}, {"small", small_outer}, {"reads", reads_outer}, {"conditional", conditional_outer}, {"futex", futex_outer},
    {"compared", sorts}, {"handled", is_interrupted}, {"switched", switches, "any"},
#ifdef __x86_64__
    {"own_call", own_call}, {"bare", calls_undescribed, "cut"}, {"made", calls_made, "cut"},
#endif
    {"naps", naps_in_turn},
};

static APART void *start(void *argument) {
    Thread *self = static_cast<Thread *>(argument);
    self->body(self);
    return nullptr;
}

int main(int, char **words) {
    long milliseconds = strtol(words[1], nullptr, 10);
    length = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    void *warm[1];
    backtrace(warm, 1); // loads libgcc
    if (pipe(never)) return 1;
    for (Thread &one : threads) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        if (!strcmp(one.name, "small")) { // its stack ends with the mapping
            const size_t bytes = 64 << 10;
            pthread_attr_setstack(&attributes, mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes);
        }
        if (pthread_create(&one.thread, &attributes, start, &one)) return 1;
    }
    nanosleep(&length, nullptr);
    close(never[1]);
    {
        std::lock_guard<std::mutex> lock(mutex);
        isOver = true;
    }
    condition.notify_all();
    for (Thread &one : threads) pthread_join(one.thread, nullptr);
    for (Thread &one : threads) {
        if (!one.count) continue;
        printf("wait %s %d %s", one.name, one.tid, one.end);
        for (int n = 0; n < one.count; n++) printf(" %p", one.addresses[n]);
        printf("\n");
    }
    for (int n = 0; n < napCount; n++)
        printf("nap %lld %lld %p\n", (long long)naps[n].begin, (long long)naps[n].end, naps[n].place);
}
