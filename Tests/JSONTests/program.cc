// Something of all that JSON shows: a constructor, threads, an exception, a library that is opened, a child by fork and one by exec.
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <tracer.h>
#include <unistd.h>
#include <vector>

struct Greeting {
    Greeting() {
        std::string text(100, 'x');
        puts(text.c_str());
    }
} greeting;

TRACER_STARTUP_ITEM(1, greeted) { std::string text(100, 'y'); }
TRACER_STARTUP_POOL_ITEM(1, beside, greeted) { free(malloc(1)); }

int main() {
    tracer_run_startup(1);
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back([] {
            for (int size = 1; size < 1000; size++) free(malloc(size));
        });
    for (auto &thread : threads) thread.join();
    try {
        throw std::runtime_error("nothing");
    } catch (const std::exception &) {
    }
    if (!dlopen("libm.so.6", RTLD_NOW)) return 1;
    fflush(stdout);
    if (pid_t child = fork(); child == 0) _exit(3);
    wait(nullptr);
    if (pid_t child = fork(); child == 0) execl("/bin/true", "true", nullptr);
    wait(nullptr);
    return 0;
}
