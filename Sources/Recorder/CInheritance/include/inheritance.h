// Gives programs that the tool starts the process state that the tool was started with itself, without anything that the tool or a
// library in it has added since.
#pragma once

/// Resets signal mask, dispositions and descriptors to those that the tool inherited: exec closes all other descriptors. Call it in the
/// child, between fork and exec, and make descriptors for the program by dup2 after it. Takes no lock, allocates nothing.
void inheritance_restore(void);
