// A daemon: double fork, setsid, chdir to /, every descriptor closed, /dev/null on 0-2, then work.
// library: served
// forks: *
// modes: functions arm
#include "subject.h"
#include <sys/stat.h>
int served(int value);
#ifdef LIB_served
EXPORT int served(int value) { return value + 1; }
#else
int main(void) {
    char directory[4096], path[4200];
    CHECK(getcwd(directory, sizeof directory));
    snprintf(path, sizeof path, "%s/fifo", directory);
    CHECK(!mkfifo(path, 0600));
    puts("starting");
    fflush(stdout);
    served(0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        CHECK(setsid() > 0);
        for (int i = 0; i < 10; i++) served(i);
        if (fork()) _exit(0);
        CHECK(!chdir("/"));
        umask(0);
        for (int n = (int)sysconf(_SC_OPEN_MAX) < 4096 ? (int)sysconf(_SC_OPEN_MAX) : 4096; n >= 0; n--) close(n); // closefrom: glibc 2.34
        CHECK(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
        unsigned long bad = 0;
        for (int i = 0; i < 300000; i++) bad += served(i) != i + 1; // enough for several chunks
        int out = open(path, O_WRONLY);
        dprintf(out, "daemon %lu %d\n", bad, out);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    FILE *in = fopen(path, "r");
    char line[100];
    CHECK(fgets(line, sizeof line, in));
    fputs(line, stdout);
    while (fgets(line, sizeof line, in)) {} // until the daemon is gone
    return 0;
}
#endif
