// A library that should not have been added.
void spin(int microseconds);
#ifndef EXTRA_MICROSECONDS
#define EXTRA_MICROSECONDS 2000
#endif
__attribute__((constructor)) static void extra_init(void) { spin(EXTRA_MICROSECONDS); }
void extra(void) {}
