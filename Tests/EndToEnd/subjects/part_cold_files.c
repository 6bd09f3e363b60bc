// Reads the beginning of many small files that are not in the page cache, as far as the file system has one.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 200, BYTES = 4000 };

int main(void) {
    char bytes[BYTES], path[32];
    memset(bytes, 'x', sizeof bytes);
    for (int isRead = 0; isRead < 2; isRead++)
        for (int n = 0; n < FILES; n++) {
            snprintf(path, sizeof path, "cold-%d", n);
            int file = open(path, isRead ? O_RDONLY : O_RDWR | O_CREAT | O_TRUNC, 0600);
            if (file < 0) return 1;
            if (isRead) {
                if (read(file, bytes, 100) != 100) return 1;
            } else if (pwrite(file, bytes, BYTES, 0) != BYTES || fsync(file) || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)) {
                return 1;
            }
            close(file);
        }
    return 0;
}
