// The program that the pages show: calls some levels deep between a program and its library, and below them libc's; in threads, and
// twice with other amounts. Built in two parts, the library with -DLIBRARY. Not an interpreter: the number of its modules, and with
// it the number of calls that can be seen, depends on who built it.
//
//     work PRESS PARSE    that much of each
//     work                three threads that parse
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { blocks = 64, block_bytes = 1 << 16, numbers = 20000 };
void work_press(int times);
void work_block(unsigned char *to, const unsigned char *from);
void work_parse_text(int times);

#ifdef LIBRARY
static volatile unsigned long sum;

void work_block(unsigned char *to, const unsigned char *from) {
    memmove(to, from, block_bytes);
    unsigned long own = 0;
    for (int i = 0; i < block_bytes; i++) own = own * 31 + to[i];
    sum = own;
}

void work_press(int times) {
    unsigned char *from = malloc(block_bytes), *to = malloc(block_bytes);
    memset(from, 7, block_bytes);
    for (int i = 0; i < times * blocks; i++) work_block(to, from);
    free(from), free(to);
}

void work_parse_text(int times) {
    for (int i = 0; i < times * numbers; i++) sum = (unsigned long)strtol("123456789", 0, 10);
}
#else
static void *parse(void *unused) {
    work_parse_text(1);
    return unused;
}

int main(int count, char **arguments) {
    if (count == 3) {
        work_press(atoi(arguments[1]));
        work_parse_text(atoi(arguments[2]));
        return 0;
    }
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], 0, parse, 0)) return 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
#endif
