// kill -9 in a constructor: the trace says where.
// compilers: gcc
// status: signal 9
#include "subject.h"
__attribute__((constructor(201))) static void lives(void) { OPAQUE(); }
__attribute__((constructor(202))) static void dies(void) { raise(SIGKILL); }
int main(void) { return 0; }
