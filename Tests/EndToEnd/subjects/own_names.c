// Functions of the program that have the names of known ones and other arguments: each is an ordinary call.
// compilers: gcc clang
// library: names -fno-builtin
// link: -fno-builtin
// modes: functions counts call_sites
#ifdef LIB_names
#define EXPORT __attribute__((visibility("default"), noinline))
EXPORT long backtrace(long a, long b) { return a * 3 + b; }
EXPORT long sd_notify(long a, long b) { return a * 5 + b; }
EXPORT long sd_pid_notify(long a, long b, long c) { return a * 7 + b + c; }
EXPORT long pthread_setname_np(long a, long b) { return a * 11 + b; }
EXPORT long pthread_once(long a, long b) { return a * 13 + b; }
EXPORT long dlopen(long a, long b) { return a * 17 + b; }
EXPORT long writev(long a, long b) { return a * 19 + b; }
EXPORT long _Unwind_Backtrace(long a, long b) { return a * 23 + b; }
#else
// Not subject.h, whose headers declare some of them.
int printf(const char *, ...);
long backtrace(long, long), sd_notify(long, long), sd_pid_notify(long, long, long), pthread_setname_np(long, long);
long pthread_once(long, long), dlopen(long, long), writev(long, long), _Unwind_Backtrace(long, long);
int main(void) {
    for (long n = 1; n < 4; n++) {
        printf("%ld %ld %ld %ld\n", backtrace(n, 8), sd_notify(n, n), sd_pid_notify(n, 2, n), pthread_setname_np(n, n));
        printf("%ld %ld %ld %ld\n", pthread_once(n, 1), dlopen(n, 2), writev(n, 3), _Unwind_Backtrace(n, 4));
    }
    return 0;
}
#endif
