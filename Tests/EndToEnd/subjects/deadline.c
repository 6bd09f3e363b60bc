// A thread of SCHED_DEADLINE, which cannot make a task: its calls are recorded, in the file as it was made longer before.
// library: deadline
// link: -pthread
// needs: realtime
// native: * because an emulator has no such threads
// tree: none the subject counts its calls
#include "subject.h"
long deadline_step(long value);
unsigned long deadline_calls(void);
#ifdef LIB_deadline
static unsigned long calls;
EXPORT unsigned long deadline_calls(void) { return calls; }
EXPORT long deadline_step(long value) { return calls++, value * 3 + 1; }
#else
struct attributes { // struct sched_attr (sched_setattr(2))
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};
static void *work(void *unused) {
    struct attributes attributes = {.size = sizeof attributes, .policy = 6, .runtime = 20000000, .deadline = 100000000, .period = 100000000};
    syscall(SYS_sched_setattr, 0, &attributes, 0); // without permission it stays an ordinary thread
    long value = 1;
    for (int n = 0; n < 300000; n++) value = deadline_step(value) & 0xffff;
    CHECK(value);
    return unused;
}
int main(void) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, work, NULL) && !pthread_join(thread, NULL));
    counted_between("deadline_step", deadline_calls(), deadline_calls());
    puts("in time");
    return 0;
}
#endif
