// Reports of sanitizers name the program's own functions, also where these ask for their caller: in instrumentation
// (`__tsan_write4`), in interceptors (`malloc`), and for leaks, which a process on a borrowed stack looks for.
// compilers: gcc clang
// build: -O1 -g -fno-omit-frame-pointer
// variant: asan exe:-fsanitize=address
// variant: tsan@gcc exe:-fsanitize=thread
// memory: unlimited
// env: ASAN_OPTIONS=verify_asan_link_order=0:print_legend=0:symbolize=1:exitcode=23 TSAN_OPTIONS=exitcode=23
// tree: none what is compared is the output
#include "subject.h"
#include <string>
#include <thread>
#include <vector>
static void *volatile kept;
static int shared;
__attribute__((noinline)) static void write_behind(char *text, volatile int index) { text[index] = 1; }
__attribute__((noinline)) static void *allocate(size_t size) { void *p = malloc(size); memset(p, 1, size); return p; }
__attribute__((noinline)) static void leak() { kept = allocate(1234); kept = nullptr; }
__attribute__((noinline)) static void race() { for (int i = 0; i < 1000; i++) __atomic_signal_fence(__ATOMIC_SEQ_CST), shared++; }
__attribute__((noinline)) static void free_twice() { void *p = allocate(10); kept = p; free(p); free(kept); }

/// Prints the functions that a report names, in order. Frames of the agent would stand between them.
static void print_report(const char *program, const char *how) {
    FILE *report = popen((std::string("exec ") + program + " " + how + " 2>&1").c_str(), "r");
    char line[4096], function[4096];
    printf("%s:\n", how);
    for (bool any = false, done = false; fgets(line, sizeof line, report); ) {
        int frame;
        if (sscanf(line, " #%d 0x%*x in %4000[^ (\n]", &frame, function) == 2 || sscanf(line, " #%d %4000[^ (\n]", &frame, function) == 2) {
            any = true;
            if (strstr(function, "libc_start") || strstr(function, "std::") || !strcmp(function, "clone")) done = true; // their names depend on debug files
            if (!done) printf("  %d %s\n", frame, function);
            if (!strcmp(function, "main")) done = true; // what calls it is the C library's, and the agent's
        } else {
            if (any && !done && line[0] == '\n') puts("  end");
            any = done = false;
            if (char *summary = strstr(line, "SUMMARY")) printf("  %.60s %s", strstr(summary, " in ") ? "in" : summary, strstr(summary, " in ") ? strstr(summary, " in ") + 4 : "\n");
        }
    }
    int status = pclose(report);
    printf("  status %d\n", WEXITSTATUS(status));
}

int main(int count, char **arguments) {
    const std::string how = count > 1 ? arguments[1] : "";
    if (how == "behind") write_behind((char *)allocate(10), 12);
    if (how == "leak") leak();
    if (how == "twice") free_twice();
    if (how == "race") {
        std::thread one(race), two(race);
        one.join();
        two.join();
    }
    if (!how.empty()) return 0;
#ifdef __SANITIZE_THREAD__
    print_report(arguments[0], "race");
#else
    for (int i = 0; i < 3; i++) print_report(arguments[0], "leak"); // more than once: what may go wrong is a race
    print_report(arguments[0], "behind");
    print_report(arguments[0], "twice");
#endif
}
