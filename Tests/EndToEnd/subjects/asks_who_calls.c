// compilers: gcc clang
// library: asks
// variant: O0 -O0
// variant: O2 -O2
// variant: Os -Os
// modes: functions arm arm_functions
// tree: none its calls are its own
//
// A library that finds out which module its return address is of, by dladdr and by the program headers, before or after other calls:
// it is the program's.
#define _GNU_SOURCE
#include "subject.h"
#include <link.h>
int asks_of_name(const char *name);
int asks_of_name_before(const char *name);
int asks_of_file(void **base);
int asks_of_headers(void);
int asks_after_others(void);
int asks_late(int depth);
int asks_by_frame(const char *name);
void asks_into_memory(uintptr_t *word);
#ifdef LIB_asks
#define WORD ((uintptr_t)__builtin_return_address(0))
static int is_of(uintptr_t address, const char *name) {
    Dl_info info;
    return dladdr((void *)address, &info) && strstr(info.dli_fname, name);
}
EXPORT int asks_of_name(const char *name) { return is_of(WORD, name); }
EXPORT int asks_of_name_before(const char *name) { return is_of(WORD - 1, name); }
EXPORT int asks_of_file(void **base) {
    Dl_info info;
    struct link_map *module;
    if (!dladdr1((void *)WORD, &info, (void **)&module, RTLD_DL_LINKMAP)) return 0;
    *base = info.dli_fbase;
    return module->l_name[0] == 0;
}
/// Nothing in its own code shows that this is a return address.
static NOINLINE uintptr_t word_above(void **frame) { return (uintptr_t)frame[1]; }
EXPORT int asks_by_frame(const char *name) {
    return is_of(word_above((void **)__builtin_frame_address(0)), name) && is_of(word_above((void **)__builtin_frame_address(0)) - 1, name);
}
#if __x86_64__
__asm__(".pushsection .text\n.globl asks_into_memory\n.type asks_into_memory, @function\nasks_into_memory: .cfi_startproc\npopq (%rdi)\n.cfi_adjust_cfa_offset -8\n"
        "jmpq *(%rdi)\n.cfi_endproc\n.size asks_into_memory, . - asks_into_memory\n.popsection");
#else
__asm__(".pushsection .text\n.globl asks_into_memory\n.type asks_into_memory, %function\nasks_into_memory: .cfi_startproc\nstr x30, [x0]\nret\n.cfi_endproc\n"
        ".size asks_into_memory, . - asks_into_memory\n.popsection");
#endif
struct question {
    uintptr_t address;
    int is_program;
};
static int look(struct dl_phdr_info *module, size_t size, void *data) {
    struct question *question = data;
    (void)size;
    for (int n = 0; n < module->dlpi_phnum; n++)
        if (module->dlpi_phdr[n].p_type == PT_LOAD
            && question->address - (module->dlpi_addr + module->dlpi_phdr[n].p_vaddr) < module->dlpi_phdr[n].p_memsz)
            question->is_program = module->dlpi_name[0] == 0;
    return 0;
}
EXPORT int asks_of_headers(void) {
    struct question question = {WORD, 0};
    dl_iterate_phdr(look, &question);
    return question.is_program;
}
EXPORT int asks_after_others(void) {
    if (getppid() < 0 || getuid() == (uid_t)-1) return 0;
    struct question question = {WORD, 0};
    dl_iterate_phdr(look, &question);
    return question.is_program && getppid() >= 0;
}
EXPORT int asks_late(int depth) {
    struct question question = {0, 0};
    if (depth < 0) return getppid() > 0;
    for (int n = 0; n < depth; n++) question.is_program += getppid() > 0;
    question.address = WORD;
    dl_iterate_phdr(look, &question);
    return question.is_program;
}
#else
extern char __executable_start[], etext[];
int main(void) {
    void *base = NULL;
    for (int n = 0; n < 3; n++) {
        CHECK(asks_of_name("asks_who_calls"));
        CHECK(asks_of_name_before("asks_who_calls"));
        CHECK(asks_of_file(&base));
        CHECK(base == __executable_start);
        CHECK(asks_of_headers());
        CHECK(asks_after_others());
        CHECK(asks_late(3));
        CHECK(asks_by_frame("asks_who_calls"));
        uintptr_t word = 0;
        asks_into_memory(&word);
        CHECK(word > (uintptr_t)__executable_start && word < (uintptr_t)etext);
    }
    puts("the program");
    return 0;
}
#endif
