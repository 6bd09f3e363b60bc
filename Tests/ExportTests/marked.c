// Runs a start-up item, says when it is ready, names three stretches of its time and a moment in each, and one moment outside of them.
#include <stdio.h>
#include <tracer.h>
#include <unistd.h>

TRACER_STARTUP_ITEM(1, config) { getpid(); }

int main(void) {
    tracer_run_startup(1);
    tracer_ready();
    for (int round = 0; round < 3; round++) {
        tracer_begin("round");
        tracer_mark("inside");
        puts("inside");
        tracer_end("round");
    }
    tracer_mark("done");
    return 0;
}
