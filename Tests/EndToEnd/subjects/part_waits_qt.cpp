// Waits for Qt's locks, of which some are futexes, one after the other. A line for each: case, thread that waited, nanoseconds, the
// object (0: another), the thread that let it go on.
#include <QtCore>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <functional>
#include <sys/syscall.h>
#include <unistd.h>

static quint64 now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return quint64(time.tv_sec) * 1000000000 + quint64(time.tv_nsec);
}
static int tid() { return int(syscall(SYS_gettid)); }

static QMutex mutex;
static QWaitCondition condition;
static QSemaphore semaphore;
static bool isDone;
static int other;
static std::atomic<int> begun;

static void work() {
    other = tid();
    begun = 1;
    for (quint64 begin = now(); now() - begin < 30000000;);
}
static void run(const char *name, const void *object, std::function<void()> first, std::function<void()> waits) {
    QThread *thread = QThread::create(first);
    thread->start();
    while (!begun.exchange(0));
    quint64 begin = now();
    waits();
    printf("%s %d %llu %p %d\n", name, tid(), now() - begin, object, other);
    thread->wait();
    delete thread;
}

int main() {
    run("mutex", &mutex, [] { mutex.lock(), work(), mutex.unlock(); }, [] { mutex.lock(), mutex.unlock(); });
    run("condition", nullptr, [] { work(), mutex.lock(), isDone = true, condition.wakeOne(), mutex.unlock(); },
        [] {
            mutex.lock();
            while (!isDone) condition.wait(&mutex);
            mutex.unlock();
        });
    run("semaphore", &semaphore, [] { work(), semaphore.release(); }, [] { semaphore.acquire(); });
}
