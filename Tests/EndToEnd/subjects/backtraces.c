// backtrace(), _Unwind_Backtrace and the frames of an exception table walk through traced frames to main. `raw`: every
// frame is printed as it is, of whatever module: there must be no other ones, and none at another address.
// compilers: gcc clang
// build: -O1 -fno-omit-frame-pointer -fexceptions -fno-optimize-sibling-calls
// library: walk
// variant: plain
// variant: signed@aarch64 -mbranch-protection=standard
// case: names
// case: raw raw
// case: excluded TRACER_EXCLUDE=libc.so* raw
// link: -Wl,-z,now -rdynamic -ldl
// modes: functions counts arm
#include "subject.h"
#include <execinfo.h>
#include <unwind.h>
int walk_outer(int how);
int walk_middle(int how);
int walk_inner(int how);
#ifdef LIB_walk
static void own_name(void *pc, char *line) {
    Dl_info info;
    const char *file = dladdr(pc, &info) && info.dli_fname ? info.dli_fname : "";
    // Frames of other modules (libc's start, the agent's trampolines) are not this program's business.
    if (info.dli_sname && (strstr(file, "libwalk.so") || strstr(file, "backtraces"))) sprintf(line + strlen(line), " %s", info.dli_sname);
}
static void raw(void *pc, int index) {
    Dl_info info;
    CHECK(dladdr(pc, &info));
    printf("%d %s+%lx\n", index, strrchr(info.dli_fname, '/'), (unsigned long)((char *)pc - (char *)info.dli_fbase));
}
static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *index) {
    int before;
    uintptr_t pc = _Unwind_GetIPInfo(context, &before);
    if (++*(int *)index <= 6) { // 7 stops it
        if (pc) raw((void *)(pc + (before != 0)), *(int *)index);
        else printf("%d caller of the outermost\n", *(int *)index); // before glibc 2.34 main has one frame less above it
    }
    return *(int *)index == 7 ? _URC_NORMAL_STOP : _URC_NO_REASON;
}
static _Unwind_Reason_Code each(struct _Unwind_Context *context, void *line) {
    int before;
    own_name((void *)(_Unwind_GetIPInfo(context, &before) - (before ? 0 : 1)), line);
    return _URC_NO_REASON;
}
EXPORT int walk_inner(int how) {
    char line[4096] = "";
    if (how == 2) {
        void *frames[100];
        for (int size = 0; size <= 100; size += size < 6 ? 1 : 47) {
            int got = backtrace(frames, size);
            printf("%d of %d\n", got, size);
            for (int i = 0; i < got; i++) raw(frames[i], i);
        }
        int index = 0;
        printf("end %d", (int)_Unwind_Backtrace(count, &index));
        printf(" after %d\n", index);
    } else if (how == 0) {
        void *frames[100];
        int count = backtrace(frames, 100);
        for (int i = 0; i < count; i++) own_name((char *)frames[i] - 1, line);
    } else _Unwind_Backtrace(each, line);
    puts(line);
    return 1;
}
EXPORT int walk_middle(int how) { int r = walk_inner(how); OPAQUE(); return r + 1; }
EXPORT int walk_outer(int how) { int r = walk_middle(how); OPAQUE(); return r + 1; }
#else
static int compare(const void *a, const void *b) {
    static int once;
    if (!once++) walk_outer(1); // libc's qsort is among the frames
    return *(const int *)a - *(const int *)b;
}
static int main_of_raw(void) {
    CHECK(walk_outer(2) == 3);
    return walk_middle(2) == 2 ? 0 : 1;
}
int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "raw")) return main_of_raw();
    for (int i = 0; i < 3; i++) CHECK(walk_outer(i & 1) == 3);
    int values[] = {3, 1, 2};
    qsort(values, 3, sizeof(int), compare);
    CHECK(values[0] == 1);
    return 0;
}
#endif
