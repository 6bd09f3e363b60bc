// The version of agent and tool: the one place where it stands.
#ifndef TRACER_VERSION_H
#define TRACER_VERSION_H

#define TRACER_VERSION "0.2.0"

// By this note (ELF gABI, chapter 5) libtracer.so says that it is an agent, and of which version; the tool looks for it
// before it preloads the file.
#define TRACER_NOTE_OWNER "tracer"
#define TRACER_NOTE_VERSION 1
// 2: where a program has its start-up items (tracer.h).

#endif
