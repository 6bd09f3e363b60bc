// Note by which the tool recognizes this file as an agent of its own version (version.h; Recorder/Session/AgentLibrary.swift).
#include "version.h"
#include <stdint.h>

#define PADDED(bytes) (((bytes) + 3) & ~3)

__attribute__((section(".note.tracer"), used, aligned(4))) static const struct {
    uint32_t owner_bytes, version_bytes, type; // Elf64_Nhdr
    char owner[PADDED(sizeof TRACER_NOTE_OWNER)];
    char version[PADDED(sizeof TRACER_VERSION)];
} version_note = {sizeof TRACER_NOTE_OWNER, sizeof TRACER_VERSION, TRACER_NOTE_VERSION, TRACER_NOTE_OWNER, TRACER_VERSION};
