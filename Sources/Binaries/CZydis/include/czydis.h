// Zydis, cut down to what relocating the first instructions of a function needs: an instruction's length and target, and the bytes
// in it that depend on its address.
//
// The library is loaded when a plan is made, or a stack unwound whose frame pointer is not known, and never linked: its soname changes
// with its minor version (Debian 12 has libZydis.so.4.0, 13 has 4.1) and a tool that needed one of them would not start beside the other.
// The structures of the headers belong to one soname, so that one alone is loaded. scripts/install puts the file beside the tool's own
// libraries.
#ifndef CZYDIS_H
#define CZYDIS_H

#include <stddef.h>
#include <stdint.h>

enum x86_kind {
    X86_OTHER,
    X86_JUMP,           // to target
    X86_CONDITIONAL,    // to target; jrcxz and loop have X86_SHORT_ONLY
    X86_CALL,           // to target
    X86_INDIRECT_JUMP,
    X86_INDIRECT_CALL,
    X86_RETURN,
    X86_STOP,           // ud2, hlt, int3: what comes after it is not reached from here
    X86_NOP,
    X86_ENDBR,          // endbr64
    X86_LEA,            // its address is relative to rip: target
    X86_TRANSACTION,    // xbegin
    X86_SYSTEM,         // syscall, sysenter, int
};
enum { X86_NO_BASE = 255 };
enum {
    X86_SHORT_ONLY = 1,      // has no form with 32 bits
    X86_ATOMIC = 2,          // the processor locks memory for it: a lock prefix, or xchg with memory
    X86_STACK_BASE = 4,      // an operand is in memory, and its base is rsp
    X86_REPEATS = 8,         // a string instruction that repeats itself
    X86_BY_TABLE = 16,       // an indirect jump by [… + register * 8], or by a register
    X86_LEGACY = 32,         // neither VEX nor EVEX, and the opcode is of the first map
    X86_PAUSES = 64,         // pause, tpause, umwait, mwaitx: what code that waits for another thread has
};
struct x86_instruction {
    uint8_t length, kind, flags;
    uint8_t opcode;          // its last byte of opcode
    uint8_t modrm;           // offset of its ModRM byte, 0 none
    uint8_t displacement;    // offset of the 32 bits relative to rip, 0 none
    uint8_t immediate;       // offset of the relative immediate, 0 none
    uint8_t base;            // base register of a memory operand without index (Intel SDM volume 2, 3.1.1.1); X86_NO_BASE
    int32_t distance;        // from that base
    int64_t target;          // target of a branch, or rip plus displacement: less the instruction's address
};

// NULL, or why there is no decoder: one line. `folder` is looked into first; NULL: only where the loader looks. Any number of times.
const char *x86_decoder_open(const char *folder);
// The instruction at `code`; 0: its bytes are none. Any number of threads.
int x86_decode(const uint8_t *code, size_t byte_count, struct x86_instruction *out);

#endif
