// The program's descriptors stay its own at every moment: while threads record, others fork, close what they do not know,
// open files of their own, and use up all numbers.
// library: inside
// link: -lpthread
// case: forked forked
// case: closed closed
// case: used_up used_up
// case: forbidden forbidden
// case: forbidden_at_first forbidden_at_first
// forks: forked
// native: * because an emulator knows threads only as libc makes them, and the file is opened in the program's own table
// unsaid: what is lost while no file may be opened comes back
// tree: none the subject counts its calls
#include "subject.h"
#include <dirent.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
int inside(int value);
#ifdef LIB_inside
EXPORT int inside(int value) { return value + 1; }
#else
enum { CALLS = 300000, THREADS = 3, FORKS = 60, ROUNDS = 20000, FIRST = 3, LAST = 12 };
static atomic_int working = THREADS;
static pthread_barrier_t half;
static void work(int calls) {
    int wrong = 0;
    for (int i = 0; i < calls; i++) wrong += inside(i) != i + 1;
    CHECK(!wrong);
}
static void *body(void *unused) {
    work(CALLS);
    working--;
    return unused;
}
static void *body_of_halves(void *unused) {
    work(CALLS / 2);
    pthread_barrier_wait(&half); // all are done …
    pthread_barrier_wait(&half); // … and files can be opened
    work(CALLS / 2);
    return unused;
}
static int is_open(int number) { return fcntl(number, F_GETFD) >= 0; }
static void fork_often(void) {
    int inherited = 0;
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            for (int number = FIRST; number < 64; number++) if (is_open(number)) _exit(1);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        inherited += status != 0;
    }
    printf("%d children inherited a descriptor that is not the program's\n", inherited);
}
// Closes descriptors that it does not know, all the time, as a daemon does that trusts nobody.
static void close_and_open(void) {
    int wrong = 0, others = 0;
    for (int round = 0; working && round < ROUNDS; round++) {
        for (int number = FIRST; number <= LAST; number++) others += close(number) == 0;
        int file = open("own", O_RDWR | O_CREAT, 0600);
        CHECK(file >= 0);
        char text[8];
        CHECK(pwrite(file, "program", 8, 0) == 8);
        wrong += pread(file, text, 8, 0) != 8 || memcmp(text, "program", 8);
        struct stat status;
        if (fstat(file, &status) || status.st_size != 8) wrong++;
        if (close(file)) wrong++;
    }
    printf("%d descriptors of somebody else's, the program's file was wrong %d times\n", others, wrong);
}
static void use_up(void) {
    struct rlimit limit;
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 16;
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    while (open("/dev/null", O_RDONLY) >= 0) {}
    CHECK(errno == EMFILE);
    while (working) CHECK(open("/dev/null", O_RDONLY) < 0 && errno == EMFILE);
    puts("no number was left");
}
// RLIMIT_NOFILE 0: the file may not be opened even in a table of its own. What is lost then is counted, and it comes back.
static void forbid_for_a_while(void) {
    struct rlimit limit;
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
    rlim_t before = limit.rlim_cur;
    for (int round = 0; working; round++) {
        limit.rlim_cur = round & 1 ? before : 0;
        CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
        for (int i = 0; i < 1000; i++) {
            int file = open("/dev/null", O_RDONLY);
            CHECK(round & 1 ? !close(file) : file < 0 && errno == EMFILE);
        }
    }
    limit.rlim_cur = before;
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    puts("no file was to be had at times");
}
// A chunk that cannot be written takes no space in the file, however often it is tried.
static void forbid_at_first(void) {
    counted_between("inside", CALLS / 4 * (unsigned long)THREADS, CALLS * (unsigned long)THREADS);
    struct rlimit limit, most = {64 << 20, 64 << 20};
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit) && !setrlimit(RLIMIT_FSIZE, &most) && !pthread_barrier_init(&half, NULL, THREADS + 1));
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 0;
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    pthread_t all[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&all[i], NULL, body_of_halves, NULL));
    pthread_barrier_wait(&half);
    limit.rlim_cur = before;
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    pthread_barrier_wait(&half);
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(all[i], NULL));
    puts("no file was to be had at first");
}
int main(int count, char **arguments) {
    CHECK(count == 2);
    if (!strcmp(arguments[1], "forbidden_at_first")) {
        forbid_at_first();
        return 0;
    }
    if (!strcmp(arguments[1], "forbidden")) counted_between("inside+dropped", CALLS * (unsigned long)THREADS, ~0ul);
    else counted("inside", CALLS * (unsigned long)THREADS);
    pthread_t all[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&all[i], NULL, body, NULL));
    if (!strcmp(arguments[1], "forked")) fork_often();
    else if (!strcmp(arguments[1], "closed")) close_and_open();
    else if (!strcmp(arguments[1], "forbidden")) forbid_for_a_while();
    else use_up();
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(all[i], NULL));
    return 0;
}
#endif
