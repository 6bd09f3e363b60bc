// Throw, catch, rethrow and cleanups through traced frames of two libraries; a throw as the last instruction of a try; exceptions of another
// language.
// compilers: gcc clang
// library: upper -Wl,--allow-shlib-undefined
// library: lower
// variant: plt
// variant: noplt@gcc -fno-plt
// variant: O0 -O0
// variant: signed@aarch64 -mbranch-protection=standard
// modes: functions counts instrumented call_sites arm_instrumented arm_functions
// modes: arm for *.signed
// modes: arm_counts arm_call_sites arm_large_pages for gcc.*
#include "subject.h"
#include <stdexcept>
#include <string>
#include <unwind.h>
EXPORT void low_throw(int value);
EXPORT void low_cleanup(int depth, int *cleaned);
EXPORT void low_rethrow(int value);
EXPORT int low_catch_all(int value);
EXPORT void low_raise(_Unwind_Exception *foreign);
EXPORT void up_through(int depth, int *cleaned);
EXPORT void up_return();
EXPORT int c_callback(int (*callback)(int), int value);
struct Cleanup {
    int *count;
    ~Cleanup() { ++*count; up_return(); } // a traced call while unwinding
};
#ifdef LIB_upper
void up_through(int depth, int *cleaned) {
    Cleanup cleanup{cleaned};
    low_cleanup(depth - 1, cleaned);
    OPAQUE();
}
void up_return() { OPAQUE(); }
#elif defined LIB_lower
void low_throw(int value) {
    OPAQUE();
    if (value & 1) throw value;
    throw std::runtime_error("value " + std::to_string(value));
}
void low_cleanup(int depth, int *cleaned) {
    Cleanup cleanup{cleaned};
    if (depth <= 0) low_throw(1);
    else up_through(depth - 1, cleaned);
    OPAQUE();
}
void low_rethrow(int value) {
    try { low_throw(value); }
    catch (...) { up_return(); throw; }
}
int low_catch_all(int value) {
    try { low_rethrow(value); }
    catch (const std::exception &e) { return (int)std::string(e.what()).size(); }
    catch (int thrown) { return -thrown; }
    return 0;
}
// As another language's runtime raises one (C++ ABI: Exception Handling, 1.6.4): C++ runs its cleanups, and catches it by catch (...) alone.
void low_raise(_Unwind_Exception *foreign) {
    int cleaned = 0;
    Cleanup cleanup{&cleaned};
    _Unwind_RaiseException(foreign);
    CHECK(!"raised");
}
int c_callback(int (*callback)(int), int value) { int result = callback(value); OPAQUE(); return result; }
#else
static int thrower(int value) { low_throw(value); return 1; }
static NOINLINE int last_instruction(int value) {
    // low_throw does not return as far as the caller's tables know: the call may end the range of the try.
    try { low_throw(value); __builtin_unreachable(); }
    catch (int thrown) { return thrown; }
}
static int deleted;
static void throw_and_catch() {
    int sum = 0, cleaned = 0;
    for (int i = 0; i < 100; i++) sum += low_catch_all(i);
    printf("catch and rethrow %d\n", sum);
    for (int i = 0; i < 10; i++)
        try { up_through(9, &cleaned); CHECK(!"not reached"); }
        catch (int one) { CHECK(one == 1); }
    CHECK(cleaned == 100);
    for (int i = 0; i < 10; i++)
        try { c_callback(thrower, 2 * i); CHECK(!"not reached"); }
        catch (std::runtime_error &e) { CHECK(e.what() == "value " + std::to_string(2 * i)); }
    for (int i = 1; i < 20; i += 2) CHECK(last_instruction(i) == i);
    // thrown out of a destructor's neighbour, caught inside another catch
    try { try { low_throw(3); } catch (int) { low_throw(4); } }
    catch (const std::runtime_error &e) { puts(e.what()); }
    try { try { low_throw(5); } catch (int x) { throw std::string("new"); } }
    catch (const std::string &s) { puts(s.c_str()); }
    for (int i = 0; i < 10; i++) {
        _Unwind_Exception foreign{};
        foreign.exception_class = 0x7472616365726c69;
        foreign.exception_cleanup = [](_Unwind_Reason_Code, _Unwind_Exception *) { deleted++; };
        try { low_raise(&foreign); CHECK(!"not reached"); }
        catch (const std::exception &) { CHECK(!"its own"); }
        catch (...) { CHECK(deleted == i); }
        CHECK(deleted == i + 1);
    }
    deleted = 0;
}
#ifndef OWN_MAIN
int main() {
    throw_and_catch();
    return 0;
}
#endif
#endif
