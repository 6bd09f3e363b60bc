// Opened and closed in a loop. Built as plugin 1, 2 and 3 with -DNUMBER.
#include "storm.h"
static int ready;
__attribute__((constructor)) static void begin(void) { ready = storm_step(0); }
__attribute__((destructor)) static void end(void) { ready = storm_step(-1); }
long storm_plugin_inner(long value) { return value * NUMBER; }
long storm_plugin(long value) { return ready ? storm_plugin_inner(value) + storm_step(0) : -1; }
