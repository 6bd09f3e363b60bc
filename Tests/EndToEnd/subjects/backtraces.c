// backtrace(), _Unwind_Backtrace and the frames of an exception table walk through traced frames to main.
// compilers: gcc clang
// build: -O1 -fno-omit-frame-pointer -fexceptions -fno-optimize-sibling-calls
// library: walk
// link: -Wl,-z,now -rdynamic
#include "subject.h"
#include <dlfcn.h>
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
static _Unwind_Reason_Code each(struct _Unwind_Context *context, void *line) {
    int before;
    own_name((void *)(_Unwind_GetIPInfo(context, &before) - (before ? 0 : 1)), line);
    return _URC_NO_REASON;
}
EXPORT int walk_inner(int how) {
    char line[4096] = "";
    if (how == 0) {
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
int main(void) {
    for (int i = 0; i < 3; i++) CHECK(walk_outer(i & 1) == 3);
    int values[] = {3, 1, 2};
    qsort(values, 3, sizeof(int), compare);
    CHECK(values[0] == 1);
    return 0;
}
#endif
