// Marks and spans (tracer.h): nested, unbalanced, with bad names, many names, in threads, handlers and children.
// compilers: gcc clang
// build: -O2 -I{source}/../../../CSupport/include
// library: inner
// case: nested nested
// case: unbalanced unbalanced
// case: names names
// case: threads threads
// case: forked forked
// case: handler handler
// case: many many
// case: filtered TRACER_MINMS=1000 nested
// case: depth TRACER_MAXDEPTH=1 nested
// case: chunks chunks
// forks: forked
#include "subject.h"
#include <tracer.h>
int leaf(int value);
#ifdef LIB_inner
EXPORT int leaf(int value) { return value + 1; }
#else
static void *worker(void *unused) {
    tracer_begin("work");
    leaf(1);
    tracer_mark("half");
    leaf(2);
    tracer_end("work");
    return unused;
}
static void handler(int number) {
    tracer_begin("handling");
    tracer_mark("arrived");
    leaf(number);
    tracer_end("handling");
}
int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (!strcmp(what, "nested")) {
        tracer_begin("outer");
        leaf(1);
        for (int i = 0; i < 3; i++) {
            tracer_begin("inner");
            leaf(2);
            tracer_mark("point");
            tracer_end("inner");
        }
        tracer_end("outer");
        tracer_flush();
    } else if (!strcmp(what, "unbalanced")) {
        tracer_end("never_begun");
        tracer_begin("twice");
        tracer_begin("twice");
        tracer_end("twice");
        tracer_end("twice");
        tracer_end("twice");
        tracer_begin("never_ended");
        leaf(1);
    } else if (!strcmp(what, "names")) {
        static char big[5000];
        memset(big, 'x', sizeof big - 1);
        tracer_mark(NULL);
        tracer_begin(NULL);
        tracer_end(NULL);
        tracer_mark(big);
        tracer_mark("\xff\xfe");
        tracer_begin("ok");
        tracer_end("ok");
    } else if (!strcmp(what, "threads")) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++) CHECK(!pthread_create(&threads[i], NULL, worker, NULL));
        for (int i = 0; i < 8; i++) CHECK(!pthread_join(threads[i], NULL));
    } else if (!strcmp(what, "forked")) {
        tracer_begin("around");
        pid_t child = fork();
        leaf(1);
        tracer_mark(child ? "parent" : "child");
        tracer_end("around");
        if (!child) _exit(0);
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    } else if (!strcmp(what, "handler")) {
        signal(SIGUSR1, handler);
        tracer_begin("raised");
        raise(SIGUSR1);
        tracer_end("raised");
    } else if (!strcmp(what, "many")) {
        char name[32];
        for (int i = 0; i < 100000; i++) {
            snprintf(name, sizeof name, "name%d", i);
            tracer_mark(name);
        }
        tracer_mark("last");
    } else if (!strcmp(what, "chunks")) { // open over many chunks
        tracer_begin("long");
        tracer_begin("inside");
        for (int i = 0; i < 100000; i++) leaf(i);
        tracer_end("inside");
        tracer_end("long");
    }
    return 0;
}
#endif
