// A process that may not write a byte to any file, nor open one, like the part of sshd that handles untrusted connections: the
// agent's own line that says why it stops cannot be written either, and the SIGXFSZ of that write is not the program's.
// library: inside
// unsaid: standard error is a file too
// tree: none which calls are lost is a matter of chunks
#include "subject.h"
#include <sys/resource.h>
int inside(int value);
#ifdef LIB_inside
EXPORT int inside(int value) { return value + 1; }
#else
int main(void) {
    struct rlimit size, files;
    CHECK(!getrlimit(RLIMIT_FSIZE, &size) && !getrlimit(RLIMIT_NOFILE, &files));
    struct rlimit no_size = {0, size.rlim_max}, no_files = {0, files.rlim_max};
    CHECK(!setrlimit(RLIMIT_FSIZE, &no_size) && !setrlimit(RLIMIT_NOFILE, &no_files));
    for (int i = 0; i < 300000; i++) CHECK(inside(i) == i + 1); // enough for several chunks
    CHECK(!setrlimit(RLIMIT_FSIZE, &size) && !setrlimit(RLIMIT_NOFILE, &files));
    puts("went on");
    return 0;
}
#endif
