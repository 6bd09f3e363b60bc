// Gives programs that the tool starts the process state that the tool was started with itself, without anything that the tool or a
// library in it has added since.
#pragma once
#include <stdint.h>

/// Resets signal mask, dispositions and descriptors to those that the tool inherited: exec closes all other descriptors. Call it in the
/// child, between fork and exec, and make descriptors for the program by dup2 after it. Takes no lock, allocates nothing.
void inheritance_restore(void);

/// Call it in the child, just before exec: returns CLOCK_MONOTONIC in nanoseconds. If the variable `name` of the environment is digits, '-'
/// and digits, these become that time and the child's process id. The agent cannot know when its image was started: it is told there, as late
/// as that can be written (docs/reference/format.md, PHASE). In the place of a value of the right length, since the child must not allocate.
uint64_t inheritance_stamp_exec(char *const environment[], const char *name);
