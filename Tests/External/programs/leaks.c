/* Memory whose only pointer is a variable of a function that is calling another one through a slot, which is no leak; with
 * the argument `leak` there is one besides. With a second argument all of it happens on another thread. */
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

/* As many variables as there are registers that a call must leave alone; what is called checks, or ends the process, which
 * checks, too. No sanitizer has a lfind of its own. */
__attribute__((noinline)) static int while_called(char *a, char *b, char *c, char *d, char *e, int exits) {
    int leaks = 0;
    size_t count = 1;
    lfind(&exits, &leaks, &count, sizeof exits, compare);
    printf("%s, %s, %s, %s, %s: %s\n", a, b, c, d, e, leaks ? "said to be lost" : "not lost");
    free(a), free(b), free(c), free(d), free(e);
    return leaks;
}

__attribute__((noinline)) static void lose(void) {
    char *lost = malloc(1234);
    snprintf(lost, 100, "to be lost");
    puts(lost);
}

/* So that what lose() left in registers and on the stack is gone. */
__attribute__((noinline)) static int overwrite(void) {
    volatile char much[4096];
    memset((void *)much, 1, sizeof much);
    return printf("%d\n", much[100]);
}

static void *work(void *argument) {
    if (argument) {
        lose();
        overwrite();
    } else if (while_called(text(1), text(2), text(3), text(4), text(5), 0)) {
        _exit(1);
    }
    while_called(text(6), text(7), text(8), text(9), text(10), 1);
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
