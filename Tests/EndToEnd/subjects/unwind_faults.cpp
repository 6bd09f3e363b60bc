// A signal handler unwinds from the first instruction of a function, which has faulted: it lists the frames, throws an exception, ends
// its thread. Where functions are patched, that instruction has been executed elsewhere.
// build: -O2 -fnon-call-exceptions -fno-optimize-sibling-calls -fno-delete-null-pointer-checks
// link: -rdynamic -pthread
// case: lists lists
// case: throws throws
// case: ends ends
// case: modules modules
// tree: none it is about what the program finds
// modes: functions counts call_sites
#include "subject.h"
#include <execinfo.h>
#include <link.h>
#include <unwind.h>
#define AROUND(value) ({ auto result_ = (value); OPAQUE(); result_; })
EXPORT int load(volatile int *address) { return *address; }
EXPORT int store(volatile int *address) { *address = 7; return 7; }
EXPORT int guarded(volatile int *address) {
    try { return *address; } catch (int number) { return number; }
}
#if defined(__x86_64__)
// The same where the very first instruction is in the `try`, with nothing before it: catches all, and returns 43. (On
// aarch64 the unwinder comes to a handler with its address in x30, so a function must have saved x30 first.)
extern "C" int caught_at_once(volatile int *address);
#define CODE "mov (%rdi),%eax\n2: nop\n nop\n nop\n ret\n3: sub $8,%rsp\n .cfi_def_cfa_offset 16\n mov %rax,%rdi\n" \
             " call __cxa_begin_catch@PLT\n call __cxa_end_catch@PLT\n mov $43,%eax\n add $8,%rsp\n .cfi_def_cfa_offset 8\n ret\n"
// Its exception table: of what is from 1 to 2, the handler is at 3, for any type (Itanium C++ ABI, exception handling tables).
__asm__(".text\n.p2align 4\n.globl caught_at_once\n.type caught_at_once,%function\ncaught_at_once:\n.cfi_startproc\n"
        ".cfi_personality 0x9b,personality_word\n.cfi_lsda 0x1b,caught_table\n1: " CODE ".cfi_endproc\n.size caught_at_once,.-caught_at_once\n"
        ".section .gcc_except_table,\"a\",%progbits\n.p2align 2\ncaught_table: .byte 0xff,0x9b\n.uleb128 7f-4f\n4: .byte 1\n.uleb128 6f-5f\n"
        "5: .uleb128 1b-1b\n.uleb128 2b-1b\n.uleb128 3b-1b\n.uleb128 1\n6: .byte 1,0\n.p2align 2\n.long 0\n7:\n"
        ".data\n.p2align 3\npersonality_word: .quad __gxx_personality_v0\n.text\n");
#endif
EXPORT int push(volatile int *address, int (*function)(volatile int *)) { return AROUND(function(address)) + AROUND(function(address)); }
struct Cleanup {
    const char *name;
    ~Cleanup() { printf("left %s\n", name); }
};
EXPORT int kept(volatile int *address, int (*function)(volatile int *)) {
    Cleanup cleanup = {"kept"};
    return AROUND(function(address)) + 1;
}
static const char *what;
static volatile int sum;
static int sum_of_thread;
static volatile int *nowhere;
static void protect(int protection) { CHECK(!mprotect((void *)nowhere, 65536, protection)); }

static void print_address(const char *how, int n, void *address) {
    Dl_info info;
    if (!dladdr(address, &info)) printf("%s %d nowhere\n", how, n);
    else printf("%s %d %s+%lx\n", how, n, strrchr(info.dli_fname, '/'), (unsigned long)((char *)address - (char *)info.dli_fbase));
}
struct walk { int count; };
static _Unwind_Reason_Code each(struct _Unwind_Context *context, void *data) {
    struct walk *walk = (struct walk *)data;
    int before = 0;
    char *address = (char *)_Unwind_GetIPInfo(context, &before);
    if (!address) return _URC_NO_REASON;
    // Above a call of a function that is traced it is less by one, and says so.
#if defined(__aarch64__)
    print_address("frame", walk->count++, (char *)(((uintptr_t)address + 3) & ~(uintptr_t)3));
#else
    print_address("frame", walk->count++, address - !before);
#endif
    return _URC_NO_REASON;
}
/// The address is among the first words that it is given, as unwinders have it there.
static int module(struct dl_phdr_info *info, size_t size, void *data) {
    (void)data;
    const char *name = strrchr(info->dlpi_name, '/');
    if (name && !strncmp(name, "/libtracer", 10)) return 0;
    printf("module %s %d segments, %zu bytes\n", name ? name : info->dlpi_name, info->dlpi_phnum, size);
    return 0;
}
static void handler(int number, siginfo_t *, void *interrupted) {
    CHECK(number == SIGSEGV);
    const ucontext_t *context = (const ucontext_t *)interrupted;
#if defined(__x86_64__)
    uintptr_t pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    uintptr_t pc = (uintptr_t)context->uc_mcontext.pc;
#endif
    if (!strcmp(what, "throws")) throw 42;
    if (!strcmp(what, "ends")) pthread_exit(&sum_of_thread);
    protect(PROT_READ | PROT_WRITE); // for who returns
    if (!strcmp(what, "modules")) {
        uintptr_t words[4] = {pc, pc, pc, pc};
        dl_iterate_phdr(module, words);
        return;
    }
    void *found[64];
    int count = backtrace(found, 64);
    for (int n = 0; n < count; n++) print_address("list", n, found[n]);
    struct walk walk = {0};
    _Unwind_Backtrace(each, &walk);
    printf("%d frames, %d listed\n", walk.count, count);
}
static void *thread_body(void *unused) {
    Cleanup cleanup = {"thread_body"};
    sum = kept(nowhere, load);
    return unused;
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    what = argv[1];
    setvbuf(stdout, NULL, _IONBF, 0);
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    CHECK(!sigaction(SIGSEGV, &action, NULL));
    nowhere = (volatile int *)mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(nowhere != MAP_FAILED);
    if (!strcmp(what, "ends")) {
        for (int n = 0; n < 3; n++) {
            pthread_t thread;
            void *result = NULL;
            CHECK(!pthread_create(&thread, NULL, thread_body, NULL) && !pthread_join(thread, &result));
            printf("ended %d\n", result == &sum_of_thread);
        }
        return 0;
    }
    int (*const functions[])(volatile int *) = {load, store, guarded,
#if defined(__x86_64__)
                                                caught_at_once,
#endif
    };
    for (auto function : functions) {
        protect(PROT_NONE);
        try { printf("returned %d\n", kept(nowhere, function)); } catch (int number) { printf("caught %d\n", number); }
        protect(PROT_NONE);
        try { printf("returned %d\n", push(nowhere, function)); } catch (int number) { printf("caught %d\n", number); }
    }
    return 0;
}
