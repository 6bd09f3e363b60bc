// Throws, catches and cleans up as exceptions.cpp does, on a coroutine's stack.
// compilers: gcc clang
// library: upper -Wl,--allow-shlib-undefined
// library: lower
// variant: plt
// variant: libunwind@x86_64 -Wl,--no-as-needed /usr/lib/x86_64-linux-gnu/libunwind.so.8
// variant: llvm@x86_64 -Wl,--no-as-needed /usr/lib/x86_64-linux-gnu/libunwind.so.1
// tree: none calls that cleanups make are inside those that the exception has left, until it is caught
// modes: functions counts instrumented call_sites
// modes: arm arm_functions for *.plt
#define OWN_MAIN
#include "exceptions.cpp"
#if !defined LIB_upper && !defined LIB_lower
#include <sys/mman.h>
#include <ucontext.h>
static ucontext_t thread_itself, coroutine;
static void there() {
    throw_and_catch();
    swapcontext(&coroutine, &thread_itself);
}
int main() {
    size_t bytes = 1 << 20;
    for (int i = 0; i < 3; i++) {
        void *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(stack != MAP_FAILED);
        getcontext(&coroutine);
        coroutine.uc_stack.ss_size = bytes, coroutine.uc_stack.ss_sp = stack;
        makecontext(&coroutine, there, 0);
        swapcontext(&thread_itself, &coroutine);
        CHECK(!munmap(stack, bytes));
        throw_and_catch();
    }
    return 0;
}
#endif
