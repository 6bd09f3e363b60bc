// A program that has little memory to itself, and enough, has enough with the agent. agent_memory.py runs it too: `resident`
// prints how many kilobytes of it are resident while that many threads wait in traced calls, after others, and `mappings` how many
// mappings it has while they do, each in its first traced call.
// library: memory
// case: leaves_space_in_a_small_address_space as
// case: leaves_space_in_a_small_data_segment data
// case: leaves_space_to_lock_all_memory locked
// native: leaves_space_in_a_small_address_space leaves_space_in_a_small_data_segment leaves_space_to_lock_all_memory because the emulator's own memory counts
// tree: none what is tested is that it goes on
#include "subject.h"
long memory_step(long value);
long memory_around(void (*body)(void));
#ifdef LIB_memory
EXPORT long memory_step(long value) { return value * 3 + 1; }
EXPORT long memory_around(void (*body)(void)) { body(); OPAQUE(); return 1; }
#else
#include <linux/capability.h>
#include <sys/resource.h>
enum { MEGABYTE = 1 << 20 };
static void work(void) {
    long value = 0;
    for (int n = 0; n < 3000; n++) value = memory_step(value) & 0xffff;
    CHECK(value);
}
static void fill_eight_megabytes(void) {
    char *all = malloc(8 * MEGABYTE);
    CHECK(all);
    memset(all, 1, 8 * MEGABYTE);
    work();
    free(all);
    puts("there is space");
}
/// The program begins again under the limit.
static void again(char **argv, int resource, size_t limit) {
    struct rlimit both = {limit, limit};
    CHECK(!setrlimit((__rlimit_resource_t)resource, &both));
    execv("/proc/self/exe", (char *[]){argv[0], argv[1], "limited", NULL});
    CHECK(0);
}
/// Not even root may then lock more than its limit.
static void forget_to_lock(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {0};
    CHECK(!syscall(SYS_capget, &header, data));
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    CHECK(!syscall(SYS_capset, &header, data));
}
static void lock(void) {
    struct rlimit limit = {8 * MEGABYTE, 8 * MEGABYTE};
    CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
    forget_to_lock();
    work();
    if (mlockall(MCL_CURRENT)) printf("not locked: %s\n", strerror(errno));
    else puts("locked");
    work();
}

static pthread_barrier_t all_are_inside, counted_all;
static void wait_inside(void) {
    pthread_barrier_wait(&all_are_inside);
    pthread_barrier_wait(&counted_all);
}
static void *in_thread(void *unused) {
    work();
    memory_around(wait_inside);
    return unused;
}
/// Prints kilobytes of resident memory outside the trace: dirty pages plus all of the agent's own file; then all pages.
static void print_resident(void) {
    FILE *file = fopen("/proc/self/smaps", "r");
    const char *preload = getenv("LD_PRELOAD");
    CHECK(file);
    char line[4096], path[4096] = "";
    long taken = 0, total = 0, kilobytes;
    unsigned long low, high;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2) {
            path[0] = 0;
            sscanf(line, "%*s %*s %*s %*s %*s %4000s", path);
            continue;
        }
        if (strstr(path, ".trace")) continue;
        int is_agents = preload && path[0] == '/' && strstr(preload, path);
        if (sscanf(line, "Rss: %ld", &kilobytes) == 1) total += kilobytes, taken += is_agents ? kilobytes : 0;
        else if (!is_agents && (sscanf(line, "Private_Dirty: %ld", &kilobytes) == 1 || sscanf(line, "Shared_Dirty: %ld", &kilobytes) == 1)) taken += kilobytes;
    }
    fclose(file);
    printf("%ld %ld\n", taken, total);
}
static void *in_its_first_call(void *unused) {
    memory_around(wait_inside);
    return unused;
}
static void print_mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file);
    long count = 0;
    for (int c = getc(file); c != EOF; c = getc(file)) count += c == '\n';
    fclose(file);
    printf("%ld\n", count);
}
static void beside(int count, void *(*body)(void *), void (*print)(void)) {
    pthread_t threads[1000];
    pthread_attr_t small;
    CHECK(count <= 1000 && !pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, 65536));
    CHECK(!pthread_barrier_init(&all_are_inside, NULL, (unsigned)count + 1) && !pthread_barrier_init(&counted_all, NULL, (unsigned)count + 1));
    work();
    for (int n = 0; n < count; n++) CHECK(!pthread_create(&threads[n], &small, body, NULL));
    pthread_barrier_wait(&all_are_inside);
    print();
    pthread_barrier_wait(&counted_all);
    for (int n = 0; n < count; n++) CHECK(!pthread_join(threads[n], NULL));
}
int main(int argc, char **argv) {
    CHECK(argc >= 2);
    if (!strcmp(argv[1], "resident")) return beside(atoi(argv[2]), in_thread, print_resident), 0;
    if (!strcmp(argv[1], "mappings")) return beside(atoi(argv[2]), in_its_first_call, print_mappings), 0;
    if (!strcmp(argv[1], "locked")) return lock(), 0;
    if (argc == 3) return fill_eight_megabytes(), 0;
    again(argv, !strcmp(argv[1], "as") ? RLIMIT_AS : RLIMIT_DATA, (!strcmp(argv[1], "as") ? 16 : 10) * MEGABYTE);
}
#endif
