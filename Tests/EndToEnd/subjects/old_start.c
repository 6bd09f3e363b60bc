// An executable of the time before glibc 2.34. Its start-up code hands libc an initializer of its own, which was linked
// into it (__libc_csu_init): that one runs its DT_INIT, by name, and its DT_INIT_ARRAY. The loader runs what is left.
// link: -nostartfiles -Wl,-init,own_init -Wl,-fini,own_fini
// variant: got
// variant: plt -DPLT
// variant: nopie exe:-no-pie exe:-fno-pie
#include "subject.h"
#define VERSION_X86 "GLIBC_2.2.5"
#define VERSION_ARM "GLIBC_2.17"
#if defined __x86_64__
#ifdef PLT
#define START "__libc_start_main@PLT"
#else
#define START "*__libc_start_main@GOTPCREL(%rip)"
#endif
__asm__(".symver __libc_start_main, __libc_start_main@" VERSION_X86 "\n"
        ".globl _start\n"
        "_start: xorl %ebp, %ebp\n"
        "movq %rdx, %r9\n" // rtld_fini
        "popq %rsi\n"
        "movq %rsp, %rdx\n"
        "andq $-16, %rsp\n"
        "pushq %rax\n"
        "pushq %rsp\n" // stack_end
        "leaq __libc_csu_fini(%rip), %r8\n"
        "leaq __libc_csu_init(%rip), %rcx\n"
        "leaq main(%rip), %rdi\n"
        "call " START "\n"
        "hlt\n");
#elif defined __aarch64__
__asm__(".symver __libc_start_main, __libc_start_main@" VERSION_ARM "\n"
        ".globl _start\n"
        "_start: mov x29, #0\n"
        "mov x30, #0\n"
        "mov x5, x0\n" // rtld_fini
        "ldr x1, [sp]\n"
        "add x2, sp, #8\n"
        "mov x6, sp\n" // stack_end
        "adrp x0, main\n"
        "add x0, x0, :lo12:main\n"
        "adrp x3, __libc_csu_init\n"
        "add x3, x3, :lo12:__libc_csu_init\n"
        "adrp x4, __libc_csu_fini\n"
        "add x4, x4, :lo12:__libc_csu_fini\n"
        "bl __libc_start_main\n"
        "brk #1\n");
#endif
static int order;
static void preinit(int count, char **arguments, char **environment) {
    CHECK(order++ == 0 && count == 1 && arguments[0] && environment);
}
__attribute__((section(".preinit_array"), used)) static void (*preinit_entry)(int, char **, char **) = preinit;
void own_init(void) { CHECK(order++ == 1); }
__attribute__((constructor(201))) static void first(int count, char **arguments) { CHECK(order++ == 2 && count == 1 && arguments[0]); }
__attribute__((constructor(202))) static void second(void) { CHECK(order++ == 3); }
typedef void initializer(int, char **, char **);
extern initializer *__init_array_start[] __attribute__((visibility("hidden")));
extern initializer *__init_array_end[] __attribute__((visibility("hidden")));
__attribute__((used)) void __libc_csu_init(int count, char **arguments, char **environment) {
    own_init();
    for (initializer **entry = __init_array_start; entry < __init_array_end; entry++) (*entry)(count, arguments, environment);
}
__attribute__((used)) void __libc_csu_fini(void) {}
__attribute__((destructor)) static void last(void) { CHECK(order++ == 5); }
void own_fini(void) { CHECK(order++ == 6); }
int main(void) {
    CHECK(order++ == 4);
    puts("main");
    return 0;
}
