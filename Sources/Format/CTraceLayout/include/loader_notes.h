// How `tracer startup --loader` instructs libtracer-audit.so where to write. The library is C and shares nothing else with the agent.
#ifndef LOADER_NOTES_H
#define LOADER_NOTES_H

/// The process id of the program's parent, the file's device and inode, its path, with ':' between them.
#define LOADER_NOTES_VARIABLE "TRACER_LOADER"
#define LOADER_NOTES_SUFFIX ".loader" // ends the name that the file has beside a trace

#endif
