// An exception that nobody catches, and one that leaves a noexcept function, end in SIGABRT with the runtime's message.
// compilers: gcc clang
// library: bad
// status: signal 6
// case: uncaught uncaught
// case: noexcept noexcept
// case: thread thread
// case: handler handler
// modes: functions instrumented
#include "subject.h"
#include <stdexcept>
#include <string>
#include <thread>
EXPORT void bad_throw();
EXPORT void bad_noexcept() noexcept;
EXPORT void bad_handler();
#ifdef LIB_bad
void bad_throw() { OPAQUE(); throw std::runtime_error("nobody wants it"); }
void bad_noexcept() noexcept { bad_throw(); OPAQUE(); }
void bad_handler() { fputs("own handler\n", stderr); abort(); }
#else
int main(int, char **argv) {
    std::string mode = argv[1];
    puts("before");
    fflush(stdout);
    if (mode == "handler") std::set_terminate([] { bad_handler(); });
    if (mode == "noexcept") bad_noexcept();
    else if (mode == "thread") std::thread([] { bad_throw(); OPAQUE(); }).join();
    else bad_throw();
    puts("not reached");
}
#endif
