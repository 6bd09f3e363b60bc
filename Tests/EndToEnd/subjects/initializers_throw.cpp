// A constructor that throws: nobody catches it, and the trace says in which one the program died.
// compilers: gcc
// status: signal 6
#include "subject.h"
#include <stdexcept>
extern "C" {
__attribute__((constructor(201))) void throws_and_catches() {
    try {
        throw std::runtime_error("caught");
    } catch (const std::exception &) {}
}
__attribute__((constructor(202))) void throws() { throw std::runtime_error("not caught"); }
}
int main() { return 0; }
