// C that the trampolines call: without a vector register, which they do not save.
#ifndef TRACER_SCALAR_H
#define TRACER_SCALAR_H
#if defined(__x86_64__) || !defined(__clang__)
#define SCALAR __attribute__((target("general-regs-only")))
#else
#define SCALAR // LLVM has no such attribute on aarch64, and nothing that has it is a loop that LLVM makes one of vectors of
#endif
#endif
