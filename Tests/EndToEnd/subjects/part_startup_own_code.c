// Computes for 50 ms of CPU time, and then sleeps for 80 ms by a system call that is in no library. Prints the CPU time.
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void sleep_by_itself(const struct timespec *length) {
#if defined(__x86_64__)
    long number = SYS_nanosleep;
    __asm__ volatile("syscall" : "+a"(number) : "D"(length), "S"(0L) : "rcx", "r11", "memory");
#else
    register long number __asm__("x8") = SYS_nanosleep, first __asm__("x0") = (long)length, second __asm__("x1") = 0;
    __asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second) : "memory");
#endif
}

int main(void) {
    long begin = now(), ran;
    do {
        for (volatile int i = 0; i < 1000000; i++) {}
        ran = now() - begin;
    } while (ran < 50000000);
    sleep_by_itself(&(struct timespec){.tv_nsec = 80000000});
    printf("%ld\n", ran);
    return 0;
}
