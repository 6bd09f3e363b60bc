// Start-up items (tracer.h): their order, circles, unknown names, the pool, other threads, items of items, of several modules. The
// program checks itself and prints what ran.
// compilers: gcc clang
// build: -Wl,--no-as-needed -I{source}/../../../CSupport/include -Wall -Wextra -Wshadow -Wconversion -Werror -pedantic
// sources: part_startup_items.c ../../../Sources/Program/CTracerAPI/tracer_startup.c
// library: first
// library: second
// plugin: late
// variant: c11 -std=c11 -O0 -DTHOUSANDS
// variant: sections -std=c11 -O2 -ffunction-sections -fdata-sections -Wl,--gc-sections
// variant: lto@gcc -std=c11 -O2 -DTHOUSANDS -flto -Wl,--gc-sections
// variant: lto@clang -std=c11 -O2 -flto -fuse-ld=lld -Wl,--gc-sections
// variant: lld@clang -std=c11 -O2 -fuse-ld=lld -ffunction-sections -fdata-sections -Wl,--gc-sections
// variant: mold@gcc -std=c11 -O2 -fuse-ld=mold -ffunction-sections -fdata-sections -Wl,--gc-sections
// variant: gold@gcc -std=c11 -O2 -fuse-ld=gold -ffunction-sections -fdata-sections -Wl,--gc-sections
// case: order order
// case: again again
// case: circle circle
// case: unknown unknown
// case: pool pool
// case: nested nested
// case: threads threads
// case: many many
// case: added added
// case: opened opened
// tree: none its spans have names of several words: the suites `startup` and ExportTests read them
#include "part_startup_items.h"
#if defined LIB_first
char said[512] = "";
EXPORT void say(const char *text) { strcat(strcat(said, text), " "); }
TRACER_STARTUP_ITEM(1, first_late, last) { say("first_late"); }
TRACER_STARTUP_ITEM(1, first_early) { say("first_early"); }
TRACER_STARTUP_ITEM(1, shared) { say("shared_of_first"); }
#elif defined LIB_second
TRACER_STARTUP_ITEM(1, second, first_late) { say("second"); }
TRACER_STARTUP_ITEM(1, shared) { say("shared_of_second"); }
#elif defined LIB_late
TRACER_STARTUP_ITEM(1, opened, last) { say("opened"); }
TRACER_STARTUP_ITEM(3, opened_elsewhere) { say("opened_elsewhere"); }
#else

static pthread_t main_thread;
static int count_of_runs, runs_at_return[4];
static pthread_barrier_t together;

// Declared before what it comes after, in this module and in others.
TRACER_STARTUP_ITEM(1, last, other_file, first_early, shared) { say("last"); }
TRACER_STARTUP_ITEM(1, free) { say("free"); }
TRACER_STARTUP_ITEM(1, also_free, free, free) { say("also_free"); }

TRACER_STARTUP_ITEM(2, behind_circle, b) { say("behind_circle"); }
TRACER_STARTUP_ITEM(2, a, c) { say("a"); }
TRACER_STARTUP_ITEM(2, b, a) { say("b"); }
TRACER_STARTUP_ITEM(2, c, in_front, b) { say("c"); }
TRACER_STARTUP_ITEM(2, in_front) { say("in_front"); }
TRACER_STARTUP_ITEM(2, itself, itself) { say("itself"); }

TRACER_STARTUP_ITEM(3, hopeful, nobody, never_run) { say("hopeful"); }
TRACER_STARTUP_ITEM(3, calm) { say("calm"); }
TRACER_STARTUP_ITEM(99, never_run) { CHECK(0); }

static int pooled;
TRACER_STARTUP_ITEM(4, joins, sums_a, sums_b) {
    CHECK(pthread_equal(pthread_self(), main_thread));
    CHECK(__atomic_load_n(&pooled, __ATOMIC_RELAXED) == 3);
}
TRACER_STARTUP_POOL_ITEM(4, sums_a, prepares) {
    CHECK(!pthread_equal(pthread_self(), main_thread));
    CHECK(__atomic_fetch_add(&pooled, 1, __ATOMIC_RELAXED) >= 1);
}
TRACER_STARTUP_POOL_ITEM(4, sums_b, prepares) {
    CHECK(!pthread_equal(pthread_self(), main_thread));
    CHECK(__atomic_fetch_add(&pooled, 1, __ATOMIC_RELAXED) >= 1);
}
TRACER_STARTUP_ITEM(4, prepares) {
    CHECK(pthread_equal(pthread_self(), main_thread));
    CHECK(__atomic_fetch_add(&pooled, 1, __ATOMIC_RELAXED) == 0);
}

TRACER_STARTUP_ITEM(5, outer) {
    say("outer_begins");
    tracer_run_startup(5); // at once: it is what runs this
    tracer_run_startup(6);
    say("outer_ends");
}
TRACER_STARTUP_ITEM(5, beside, inner) { say("beside"); }
TRACER_STARTUP_ITEM(6, inner, free_of_stage_6) {
    say("inner");
    tracer_run_startup(5);
}
TRACER_STARTUP_POOL_ITEM(6, free_of_stage_6) { tracer_run_startup(5); }

TRACER_STARTUP_ITEM(7, once_a) { __atomic_add_fetch(&count_of_runs, 1, __ATOMIC_RELAXED); }
TRACER_STARTUP_POOL_ITEM(7, once_b, once_a) { __atomic_add_fetch(&count_of_runs, 1, __ATOMIC_RELAXED); }
TRACER_STARTUP_ITEM(7, once_c, once_b) { __atomic_add_fetch(&count_of_runs, 1, __ATOMIC_RELAXED); }
static void *runs_stage_7(void *returned) {
    pthread_barrier_wait(&together);
    tracer_run_startup(7);
    *(int *)returned = __atomic_load_n(&count_of_runs, __ATOMIC_RELAXED);
    return NULL;
}

static int added_runs[2];
static void run_added(void *context) {
    CHECK(context == &added_runs[1] || added_runs[1] == 1);
    ++*(int *)context;
}

/// Runs a stage and takes what it says on standard error.
static const char *complaints(int stage) {
    static char text[2048];
    FILE *file = tmpfile();
    const int kept = dup(2);
    CHECK(file && kept >= 0 && dup2(fileno(file), 2) == 2);
    tracer_run_startup(stage);
    CHECK(dup2(kept, 2) == 2);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    close(kept);
    return text;
}
static void expect(const char *text, const char *wanted) {
    if (!strcmp(text, wanted)) return;
    fprintf(stderr, "%s\nand should be\n%s\n", text, wanted);
    _exit(99);
}
#define STAGE_1 "other_file free also_free first_early shared_of_first shared_of_second last first_late second "

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    main_thread = pthread_self();
    if (!strcmp(what, "order")) {
        expect(complaints(1), "");
        expect(said, STAGE_1);
    }
    if (!strcmp(what, "again")) {
        for (int i = 0; i < 3; i++) tracer_run_startup(1);
        expect(said, STAGE_1);
    }
    if (!strcmp(what, "circle")) {
        expect(complaints(2), "tracer_run_startup: items of stage 2 depend on each other in a circle, and run as declared: "
                              "a after c after b after a\n");
        expect(said, "in_front behind_circle a b c itself ");
    }
    if (!strcmp(what, "unknown")) {
        expect(complaints(3), "tracer_run_startup: item \"hopeful\" of stage 3 should run after \"nobody\", but no item has that name\n"
                              "tracer_run_startup: item \"hopeful\" of stage 3 should run after \"never_run\", whose stage has not run\n");
        expect(said, "hopeful calm ");
    }
    if (!strcmp(what, "pool")) {
        tracer_run_startup(4);
        CHECK(pooled == 3);
    }
    if (!strcmp(what, "nested")) {
        tracer_run_startup(5);
        tracer_run_startup(6);
        expect(said, "outer_begins inner outer_ends beside ");
    }
    if (!strcmp(what, "threads")) {
        pthread_t threads[4];
        CHECK(!pthread_barrier_init(&together, NULL, 4));
        for (int i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, runs_stage_7, &runs_at_return[i]));
        for (int i = 0; i < 4; i++) CHECK(!pthread_join(threads[i], NULL));
        for (int i = 0; i < 4; i++) CHECK(runs_at_return[i] == 3);
    }
    if (!strcmp(what, "many")) check_many();
    if (!strcmp(what, "added")) {
        static struct tracer_startup_item one = {run_added, &added_runs[0], "one, two words", "b", 1, 8, 0, 0, NULL};
        static struct tracer_startup_item two = {run_added, &added_runs[1], "two words", "b", 2, 8, 0, 0, NULL};
        tracer_run_startup(8);
        tracer_add_startup_item(&one);
        tracer_add_startup_item(&two);
        for (int i = 0; i < 2; i++) tracer_run_startup(8);
        CHECK(added_runs[0] == 1 && added_runs[1] == 1);
    }
    if (!strcmp(what, "opened")) {
        tracer_run_startup(1);
        CHECK(dlopen("liblate.so", RTLD_NOW | RTLD_LOCAL));
        tracer_run_startup(1); // what has come since; "last" has ended long ago
        expect(said, STAGE_1 "opened ");
    }
    puts("done");
    return 0;
}
#endif
