/* Memory whose only pointer is a variable of a function that is calling another one through a slot, which is no leak; with
 * the argument `leak` some is lost besides. With a second argument all of it happens on another thread. */
#include <pthread.h>
#include <sanitizer/lsan_interface.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *text(int n) {
    char *made = malloc(100);
    snprintf(made, 100, "held by a variable %d", n);
    return made;
}

static int compare(const void *exits, const void *leaks) {
    if (*(const int *)exits) exit(0);
    *(int *)leaks = __lsan_do_recoverable_leak_check();
    return 0;
}

/* Clears what a function has left in registers and on the stack. */
__attribute__((noinline)) static void overwrite(void) {
    volatile char much[65536];
    memset((void *)much, 1, sizeof much);
}

/* As many variables as there are registers that a call must leave alone; what is called checks, or ends the process, which
 * checks, too. No sanitizer has a lfind of its own. */
__attribute__((noinline)) static int while_called(int exits) {
    char *a = text(1), *b = text(2), *c = text(3), *d = text(4), *e = text(5);
    int leaks = 0;
    size_t count = 1;
    overwrite();
    lfind(&exits, &leaks, &count, sizeof exits, compare);
    printf("%s, %s, %s, %s, %s: %s\n", a, b, c, d, e, leaks ? "said to be lost" : "not lost");
    free(a), free(b), free(c), free(d), free(e);
    return leaks;
}

/* Many: to some of them a word may be left that is a pointer no more. */
__attribute__((noinline)) static void lose(void) {
    for (int n = 0; n < 50; n++) {
        char *lost = malloc(1234);
        snprintf(lost, 100, "to be lost %d", n);
        puts(lost);
    }
}

static void *work(void *argument) {
    if (argument) {
        lose();
        overwrite();
    } else if (while_called(0)) {
        _exit(1);
    }
    while_called(1);
    return NULL;
}

int main(int count, char **arguments) {
    void *leak = count > 1 && strcmp(arguments[1], "leak") == 0 ? arguments[1] : NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count < 3) work(leak);
    pthread_t thread;
    pthread_create(&thread, NULL, work, leak);
    pthread_join(thread, NULL);
}
