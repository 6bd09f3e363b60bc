// bench_leaf again, by the name of a function of libdispatch and in a library of that name: its calls are recorded with their object.
#include "library.h"

unsigned long dispatch_semaphore_signal(unsigned long x) { return x * 3 + 1; }
