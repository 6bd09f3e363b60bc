// Exceptions across threads, in a static-local initializer, from static initialization, from a library's constructor,
// caught in the constructor that dlopen runs.
// compilers: gcc clang
// env: BUILD={build}
// library: source
// link: -ldl
// plugin: constructing -L{build} -lsource -Wl,-rpath,$ORIGIN
// modes: functions counts instrumented call_sites arm_instrumented arm_functions
#include "subject.h"
#include <exception>
#include <string>
#include <thread>
EXPORT int source_throw(int value);
EXPORT int source_value(int value);
#ifdef LIB_source
int source_throw(int value) {
    if (value) throw std::string("thrown ") + std::to_string(value);
    return 1;
}
int source_value(int value) { return value; }
static const int at_load = [] {
    try { return source_throw(1); }
    catch (const std::string &s) { return (int)s.size(); }
}();
EXPORT int source_at_load() { return at_load; }
#elif defined LIB_constructing
static const int at_load = [] {
    try { return source_throw(10); }
    catch (const std::string &s) { return source_value((int)s.size()); }
}();
EXPORT int constructed() { return at_load; }
#else
EXPORT int source_at_load();
static const int before_main = [] {
    try { return source_throw(100); }
    catch (const std::string &s) { return (int)s.size(); }
}();
static int attempts;
static int local() {
    static const int value = [] {
        int one = source_throw(++attempts < 3 ? attempts : 0);
        return one + source_value(6);
    }();
    return value;
}
int main() {
    CHECK(source_at_load() == 8 && before_main == 10);
    int failures = 0;
    for (int i = 0; i < 2; i++)
        try { local(); } catch (const std::string &) { failures++; }
    CHECK(failures == 2 && local() == 7 && local() == 7);
    std::exception_ptr carried;
    std::thread([&] {
        try { source_throw(1000); } catch (...) { carried = std::current_exception(); }
    }).join();
    try { std::rethrow_exception(carried); }
    catch (const std::string &s) { puts(s.c_str()); }
    void *library = dlopen("libconstructing.so", RTLD_NOW);
    if (!library) library = dlopen((std::string(getenv("BUILD")) + "/libconstructing.so").c_str(), RTLD_NOW);
    CHECK(library);
    CHECK(((int (*)())dlsym(library, "constructed"))() == 9);
    CHECK(!dlclose(library));
    return 0;
}
#endif
