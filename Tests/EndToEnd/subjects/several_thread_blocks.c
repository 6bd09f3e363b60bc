// One thread of the kernel with several thread blocks in turn, as user-level threads have them: each block has its own calls, and all are
// recorded.
// library: blocks
// architecture: x86_64 by arch_prctl, which is its own
// tree: none the subject counts its calls
// modes: functions counts
#include "subject.h"
int blocks_outer(int value);
int blocks_inner(int value);
unsigned long blocks_calls(int which);
#ifdef LIB_blocks
static unsigned long calls[2];
EXPORT unsigned long blocks_calls(int which) { return calls[which]; }
EXPORT int blocks_inner(int value) { return calls[1]++, value * 3 + 1; }
EXPORT int blocks_outer(int value) { return calls[0]++, blocks_inner(value) ^ 5; }
#else
#include <asm/prctl.h>
enum { BLOCKS = 4, ROUNDS = 1000 };
static unsigned long *current(void) {
    unsigned long *block;
    __asm__ volatile("mov %%fs:0, %0" : "=r"(block));
    return block;
}
/// A system call without libc, whose errno would be in the block.
static void become(unsigned long *block) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(SYS_arch_prctl), "D"(ARCH_SET_FS), "S"(block) : "rcx", "r11", "memory");
    CHECK(result == 0);
}
int main(void) {
    void *(*allocate)(void *) = (void *(*)(void *))dlsym(RTLD_DEFAULT, "_dl_allocate_tls");
    CHECK(allocate);
    unsigned long *blocks[BLOCKS];
    blocks[0] = current();
    for (int n = 1; n < BLOCKS; n++) { // tcbhead_t (glibc sysdeps/x86_64/nptl/tls.h): tcb, dtv, self, multiple_threads, sysinfo, guards
        unsigned long *block = blocks[n] = allocate(NULL);
        CHECK(block);
        block[0] = block[2] = (unsigned long)block;
        block[5] = blocks[0][5];
        block[6] = blocks[0][6];
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int n = 0; n < BLOCKS; n++) {
            become(blocks[n]);
            CHECK(blocks_outer(round) == ((round * 3 + 1) ^ 5));
        }
    }
    become(blocks[0]);
    counted_between("blocks_outer", blocks_calls(0), blocks_calls(0));
    counted_between("blocks_inner", blocks_calls(1), blocks_calls(1));
    puts("four blocks");
    return 0;
}
#endif
