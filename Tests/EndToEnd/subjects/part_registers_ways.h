// The ways to call probe, for registers.c and its twin for aarch64. PROBE: what it is called, as a text.
#ifndef PROBE
#define PROBE "probe"
#endif
static void prepare(unsigned seed) {
    fill(&in, seed * 2);
    fill(&give, seed * 2 + 1);
    memset(&seen, 0x55, sizeof seen);
    memset(&out, 0x55, sizeof out);
}
static void check_next(void) {
    if (calls < 64) prepare((unsigned)calls + 7);
    check(0);
}
static void *first_call(void *unused) {
    check(0); // nothing crosses a slot on this thread before
    return unused;
}
static void *limited(void *levels) {
    descend(*(int *)levels, check_next);
    return NULL;
}
static void on_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static ucontext_t own, other;
static int half;
static void inside(void) { // while the frame of a traced call is open on the other stack, there …
    for (int i = 0; i < half; i++) check_next();
    CHECK(!swapcontext(&other, &own));
}
static void other_body(void) { descend(1, inside); }

int main(int argc, char **argv) {
    if (MISSING) return puts(MISSING), 0;
    CHECK(argc == 3);
    const char *mode = argv[1];
    int count = atoi(argv[2]);
    probe_states(&give, &seen);
    prepare(1);
    if (!strcmp(mode, "thread")) {
        for (int i = 0; i < count; i++) {
            prepare((unsigned)i);
            on_thread(first_call, NULL);
        }
        counted(PROBE, (unsigned long)count);
    } else if (!strcmp(mode, "deep")) {
        on_thread(limited, &(int){1}); // the first call goes by
        descend(count, check_next);
        counted(PROBE, (unsigned long)count + 1);
        counted("descend", (unsigned long)count / 2 + 2);
        counted("descend_also", (unsigned long)count / 2 + 1);
    } else if (!strcmp(mode, "limited")) {
        on_thread(limited, &count); // on a thread of its own, so that nothing is open around it
        counted(PROBE, 1);
        counted("descend", 1);
        counted("descend_also", 1);
    } else if (!strcmp(mode, "stacks")) {
        check(1);
        half = count / 2;
        on_other_stack(&other, &own, other_body);
        CHECK(!swapcontext(&own, &other));
        for (int i = 0; i < half; i++) check_next(); // … and here
        CHECK(!swapcontext(&own, &other));
        check(0);
        counted(PROBE, (unsigned long)half * 2 + 2);
        counted("descend", 1);
        counted("descend_also", 1);
    } else {
        check(1);
        for (int i = 1; i < count; i++) check_next();
        if (!strcmp(mode, "fast")) counted(PROBE, (unsigned long)count);
        else if (!strcmp(mode, "excluded")) counted(PROBE, 0);
        else counted_between(PROBE, 0, 20); // one that the scheduler interrupted may be long enough
    }
    printf("%llu calls, every register as expected\n", (unsigned long long)calls);
    return 0;
}
