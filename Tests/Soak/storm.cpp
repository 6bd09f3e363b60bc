// Everything at once, for as long as wanted: threads created and joined, signals, forks from threads, libraries opened
// and closed, exceptions and long jumps out of nested calls. Each does a computation whose result is known and ends the
// program with SIGABRT and a line when it differs. Counts lie in a file that soak.py shares.
//
//     storm COUNTS SECONDS THREADS SIGNALS_PER_SECOND ACTIVITY…    (threads exceptions longjmps forks dlopens)
#include "storm.h"
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cerrno>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

// In the order of soak.py's COUNTS.
struct Counts {
    std::atomic<long> begun, done; // storm_step, by threads that are not in a handler
    std::atomic<long> threads, signals, exceptions, longjmps, forks, dlopens, handled;
    std::atomic<long> quiet, measured; // no thread is left but the first; whoever measures it then has done so
};
static Counts *counts;
static bool does_exceptions, does_longjmps, does_forks, does_dlopens;
static volatile bool stopping;
static std::string folder;

#define CHECK(what) \
    do { \
        if (!(what)) fail(#what, __LINE__); \
    } while (0)
[[noreturn]] static void fail(const char *what, int line) {
    fprintf(stderr, "storm: line %d: %s is false, errno %d\n", line, what, errno);
    abort();
}

static void step(long value) {
    counts->begun++;
    long result = storm_step(value);
    counts->done++;
    CHECK(result == value + 1);
}

static void handler(int) {
    int saved = errno;
    counts->signals++;
    CHECK(storm_sum(3) == 3);
    counts->handled++;
    errno = saved;
}

struct Thrown {
    long value;
};
static long throws(void *argument) { throw Thrown{(long)argument}; }
static void try_exception(unsigned *seed) {
    int depth = rand_r(seed) % 20;
    long value = rand_r(seed);
    double kept = value * 0.5; // in a register that an unwinder must bring back
    try {
        storm_nest(depth, throws, (void *)value);
        CHECK(!"thrown");
    } catch (const Thrown &thrown) { CHECK(thrown.value == value); }
    CHECK(kept == value * 0.5);
    counts->exceptions++;
}

struct Target {
    jmp_buf point;
    long value;
};
static long jumps(void *argument) { longjmp(static_cast<Target *>(argument)->point, 1); }
static void try_longjmp(unsigned *seed) {
    Target target;
    target.value = rand_r(seed);
    long expected = target.value;
    if (!setjmp(target.point)) {
        storm_nest(rand_r(seed) % 20, jumps, &target);
        CHECK(!"jumped");
    }
    CHECK(target.value == expected);
    counts->longjmps++;
}

static long returns(void *argument) { return *static_cast<long *>(argument); }
static void try_fork(unsigned *seed) {
    long value = rand_r(seed) % 100;
    pid_t child = fork();
    CHECK(child >= 0 || errno == EAGAIN || errno == ENOMEM);
    if (child == 0) {
        bool right = storm_nest(7, returns, &value) == value + 7 && storm_sum(100) == 4950;
        _exit(right ? 40 + value : 1);
    }
    int status = 0;
    if (child < 0) return;
    while (waitpid(child, &status, 0) < 0) CHECK(errno == EINTR);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 40 + value) {
        fprintf(stderr, "storm: a forked child ended with wait status %x, expected exit %ld\n", status, 40 + value);
        abort();
    }
    counts->forks++;
}

static void *work(void *argument) {
    unsigned seed = (unsigned)(long)argument;
    for (int n = 1 + rand_r(&seed) % 30; n > 0; n--) {
        step(rand_r(&seed));
        long value = rand_r(&seed) % 1000;
        CHECK(storm_nest(rand_r(&seed) % 30, returns, &value) >= value);
        CHECK(storm_sum(50) == 1225);
        int choice = rand_r(&seed) % 100;
        if (choice < 20 && does_exceptions) try_exception(&seed);
        else if (choice < 40 && does_longjmps) try_longjmp(&seed);
        else if (choice == 40 && does_forks && rand_r(&seed) % 30 == 0) try_fork(&seed);
    }
    return argument;
}

static void *open_and_close(void *) {
    for (unsigned seed = 1; !stopping;) {
        int number = 1 + rand_r(&seed) % 3;
        std::string path = folder + "/storm_plugin" + std::to_string(number) + ".so";
        void *library = dlopen(path.c_str(), rand_r(&seed) % 2 ? RTLD_NOW : RTLD_LAZY);
        if (!library) fprintf(stderr, "storm: %s\n", dlerror());
        CHECK(library);
        long (*plugin)(long);
        *(void **)&plugin = dlsym(library, "storm_plugin");
        CHECK(plugin && plugin(10) == 10 * number + 1);
        CHECK(!dlclose(library));
        counts->dlopens++;
        usleep(5000);
    }
    return nullptr;
}

static double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    CHECK(argc > 4);
    double end = now() + atof(argv[2]);
    int most = atoi(argv[3]), rate = atoi(argv[4]);
    for (int n = 5; n < argc; n++) {
        std::string name = argv[n];
        does_exceptions |= name == "exceptions";
        does_longjmps |= name == "longjmps";
        does_forks |= name == "forks";
        does_dlopens |= name == "dlopens";
    }
    folder = argv[0];
    folder.resize(folder.rfind('/'));
    int file = open(argv[1], O_RDWR | O_CLOEXEC);
    CHECK(file >= 0);
    counts = static_cast<Counts *>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    CHECK(counts != MAP_FAILED);
    close(file);

    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    if (rate > 0) {
        itimerval interval = {{0, 1000000 / rate}, {0, 1000000 / rate}};
        setitimer(ITIMER_REAL, &interval, nullptr);
    }
    pthread_t opener;
    if (does_dlopens) CHECK(!pthread_create(&opener, nullptr, open_and_close, nullptr));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    std::vector<pthread_t> threads(most);
    long started = 0;
    // The oldest is joined and another one takes its place: all of `most` exist at any time.
    for (; now() < end; started++) {
        pthread_t &thread = threads[started % most];
        if (started >= most) {
            void *result;
            CHECK(!pthread_join(thread, &result) && (long)result == started - most + 1);
            counts->threads++;
        }
        CHECK(!pthread_create(&thread, &attributes, work, (void *)(started + 1)));
    }
    for (long n = started > most ? started - most : 0; n < started; n++) CHECK(!pthread_join(threads[n % most], nullptr));
    stopping = true;
    if (does_dlopens) pthread_join(opener, nullptr);
    // What the agent has mapped for threads can be distinguished from what it never releases only now that none lives. It notices the end of a
    // thread when others begin.
    for (int n = 0; n < 2 * most; n++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, &attributes, work, (void *)1) && !pthread_join(thread, nullptr));
    }
    counts->quiet = 1;
    for (double patience = now() + 60; !counts->measured && now() < patience;) usleep(10000);
    puts("storm: done");
    return 0;
}
