// The demanglers that every Swift program on Linux has at hand, libstdc++'s and the Swift runtime's, and libiberty's for Rust.
#ifndef TRACER_DEMANGLE_H
#define TRACER_DEMANGLE_H
#include <stddef.h>
#include <stdint.h>

/// libstdc++ (Itanium C++ ABI, 3.4: https://itanium-cxx-abi.github.io/cxx-abi/abi.html#demangler). The result is
/// from malloc; NULL when the name is not a mangled one.
char *_Nullable __cxa_demangle(const char *_Nonnull name, char *_Nullable buffer, size_t *_Nullable length, int *_Nullable status);

/// libswiftCore, swift/Demangling/Demangle.h. The result is from malloc; NULL when the name is not a mangled one.
char *_Nullable swift_demangle(const char *_Nonnull name, size_t length, char *_Nullable buffer, size_t *_Nullable buffer_size,
                               uint32_t flags);

/// libiberty, demangle.h (declared here for its nullability): Rust's v0 and legacy manglings; hashes are omitted unless
/// options ask for them. The result is from malloc; NULL when the name is not a mangled one.
char *_Nullable rust_demangle(const char *_Nonnull name, int options);
#endif
