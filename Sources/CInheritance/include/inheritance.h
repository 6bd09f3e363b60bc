// What a program that the tool starts has of the tool's surroundings: what the tool was given when it was started itself, and nothing of
// what it, or a library in it, has added since.
#pragma once

/// Signal mask, dispositions and descriptors become those that the tool inherited: descriptors that it did not are closed by exec. In the
/// child, between fork and exec; dup2 makes descriptors for the program after it. No lock, no memory.
void inheritance_restore(void);
