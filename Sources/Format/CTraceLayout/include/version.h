// The version of agent and tool, declared here alone.
#ifndef TRACER_VERSION_H
#define TRACER_VERSION_H

#define TRACER_VERSION "0.3.0"

// Note (ELF gABI, chapter 5) that identifies libtracer.so as an agent and gives its version; the tool looks for it before
// it preloads the file.
#define TRACER_NOTE_OWNER "tracer"
#define TRACER_NOTE_VERSION 1
// Note type 2: the section of a program's start-up items (tracer.h).

#endif
