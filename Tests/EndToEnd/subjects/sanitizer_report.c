// AddressSanitizer finds a read after the end inside a traced call, and says which function it is in.
// compilers: gcc clang
// library: behind
// build: -O1 -fsanitize=address -fno-omit-frame-pointer
// memory: unlimited
// env: ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:print_legend=0:symbolize=0:print_cmdline=0:log_to_syslog=0:halt_on_error=1:exitcode=23:log_path=report
// status: 23
#include "subject.h"
int behind(const char *text, int index);
#ifdef LIB_behind
EXPORT int behind(const char *text, int index) { return text[index]; }
#else
int main(void) {
    char *text = malloc(10);
    memset(text, 1, 10);
    for (int i = 0; i < 10; i++) CHECK(behind(text, i) == 1);
    puts("inside");
    fflush(stdout);
    return behind(text, 10);
}
#endif
