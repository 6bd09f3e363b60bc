// Names as programmers wrote them, by the demanglers that are at hand: libiberty's for C++ and Rust, the Swift runtime's.
//
// A mangled name refers to its earlier parts, and each reference may double what it stands for: 420 bytes can be a name of 2^40 words.
// libiberty's demanglers are therefore read part by part and left when there is too much; the Swift runtime's cannot be left.
#ifndef TRACER_DEMANGLE_H
#define TRACER_DEMANGLE_H
#include <stddef.h>
#include <stdint.h>

/// Itanium C++ ABI, 5.1 (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling). The result is from malloc, of at most `most` bytes;
/// NULL: the name is not a mangled one, or there would be more.
char *_Nullable cxx_name(const char *_Nonnull mangled, size_t most);

/// Rust's v0 and legacy manglings, without their hashes. Likewise.
char *_Nullable rust_name(const char *_Nonnull mangled, size_t most);

/// libswiftCore, swift/Demangling/Demangle.h. The result is from malloc; NULL when the name is not a mangled one.
char *_Nullable swift_demangle(const char *_Nonnull name, size_t length, char *_Nullable buffer, size_t *_Nullable buffer_size,
                               uint32_t flags);
#endif
