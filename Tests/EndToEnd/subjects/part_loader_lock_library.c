// Its constructor lasts until the program's main thread waits in the kernel for the loader's lock.
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

void constructorBegins(void);
__attribute__((constructor)) static void begin(void) {
    constructorBegins(); // it has the loader's lock
    char text[64], path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", getpid());
    int file = open(path, O_RDONLY);
    do {
        ssize_t count = pread(file, text, sizeof text - 1, 0);
        if (count <= 0) abort();
        text[count] = 0;
    } while (text[0] == 'r' || strtol(text, 0, 10) != SYS_futex);
    close(file);
    usleep(30000); // the wait would be worth a line of advice
}
int library(void) { return 1; }
