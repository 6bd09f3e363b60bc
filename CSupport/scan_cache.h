// The file in which the agent remembers what the search of texts has found (ELF/ScanFile.swift): $XDG_CACHE_HOME/tracer/scans.ARCH.
// A header, a row for each module in the order of the first words of their identities, and the bits that rows point to. All
// of it is little-endian; 0 is in what is not used.
// An identity is NT_GNU_BUILD_ID, up to twenty bytes and zeros, with its length in the upper half of the last word; length 0: a
// hash of the file's device, inode, size and times.
#ifndef TRACER_SCAN_CACHE_H
#define TRACER_SCAN_CACHE_H

#include <stdint.h>

#define SCAN_MAGIC 0x656c69666e616373 /* "scanfile" */
#define SCAN_VERSION 1
#define SCAN_MOST_BYTES 262144  /* a longer file is not read, nor written */
#define SCAN_MOST_MODULES 1024
#define SCAN_MOST_SLOTS 262144  /* per module; one that has more is not remembered */

struct scan_file {
    uint64_t magic;
    uint32_t version;
    uint32_t byte_count;   // size of the file
    uint64_t agent[3];     // identity of the agent that wrote it: another one may search in another way
    uint32_t module_count;
    uint32_t generation;   // 1 in the first file, one more each time it is written
    uint64_t unused;
    uint64_t checksum;     // over everything above (ScanFile.checksum)
};

struct scan_module {
    uint64_t identity[3];  // the module's file
    uint64_t layout;       // a hash of the program headers
    uint64_t low;          // the first GLOB_DAT slot, by its address in the file
    uint32_t slot_count;   // words from there to the last one
    uint32_t bits;         // offset in the file of one bit for each of them, set when it is used for calls alone; 0: none is
    uint32_t generation;   // in which it came: what came first goes first
    uint32_t unused;
    uint64_t checksum;     // over everything above, `bits` as 0, and over the bits
};

_Static_assert(sizeof(struct scan_file) == 64 && sizeof(struct scan_module) == 64, "scan cache");
_Static_assert(sizeof(struct scan_file) + SCAN_MOST_MODULES * sizeof(struct scan_module) + SCAN_MOST_SLOTS / 8 <= SCAN_MOST_BYTES,
               "scan cache");
#endif
