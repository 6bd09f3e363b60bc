// Waits on descriptors of each kind, each of a thread that another one lets go on as soon as the kernel says that it waits. What the
// program knows goes to standard output, a line for each: case, thread that waited, thread that let it go on (0: the kernel), the
// function, and what the descriptor refers to by /proc.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int isGood, const char *what) {
    if (isGood) return;
    perror(what);
    exit(1);
}

struct wait {
    const char *name, *function;
    int from;   // what is waited for
    int to;     // what lets the thread go on
    int polled; // in a set
};
static int waiter;

/// Returns when the thread of this process, or of `pid`, is in that system call and waits.
static void untilIn(pid_t pid, int tid, long call) {
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", pid, tid);
    int file = open(path, O_RDONLY);
    check(file >= 0, path);
    do {
        ssize_t count = pread(file, text, sizeof text - 1, 0);
        check(count > 0, "pread");
        text[count] = 0;
    } while (text[0] == 'r' || strtol(text, 0, 10) != call);
    close(file);
}

static void *letGoOn(void *argument) {
    const struct wait *wait = argument;
    int isSocket = !strcmp(wait->name, "socket");
    untilIn(getpid(), waiter,
            !strcmp(wait->function, "poll") ? SYS_poll : !strcmp(wait->function, "epoll_wait") ? SYS_epoll_wait : isSocket ? SYS_recvfrom : SYS_read);
    uint64_t more = 1;
    struct itimerspec soon = {.it_value = {.tv_nsec = 1}};
    if (!strcmp(wait->name, "timer")) check(!timerfd_settime(wait->to, 0, &soon, 0), "timerfd_settime");
    else if (!strcmp(wait->name, "terminal")) check(write(wait->to, "x\n", 2) == 2, "write");
    else check((isSocket ? send(wait->to, &more, sizeof more, 0) : write(wait->to, &more, sizeof more)) == sizeof more, "write");
    return (void *)syscall(SYS_gettid);
}

static void await(struct wait wait) {
    char bytes[64], link[64], object[256];
    snprintf(link, sizeof link, "/proc/self/fd/%d", wait.from);
    ssize_t count = readlink(link, object, sizeof object - 1);
    check(count > 0, link);
    object[count] = 0;
    waiter = (int)syscall(SYS_gettid);
    pthread_t other;
    pthread_create(&other, 0, letGoOn, &wait);
    struct pollfd set = {.fd = wait.polled, .events = POLLIN};
    struct epoll_event event;
    if (!strcmp(wait.function, "poll")) check(poll(&set, 1, -1) == 1, "poll");
    else if (!strcmp(wait.function, "epoll_wait")) check(epoll_wait(wait.from, &event, 1, -1) == 1, "epoll_wait");
    else if (!strcmp(wait.function, "recv")) check(recv(wait.from, bytes, sizeof bytes, 0) > 0, "recv");
    else check(read(wait.from, bytes, sizeof bytes) > 0, "read");
    void *by;
    pthread_join(other, &by);
    int isNobodys = !strcmp(wait.name, "timer") || !strcmp(wait.name, "terminal");
    printf("%s %d %d %s %s\n", wait.name, waiter, isNobodys ? 0 : (int)(intptr_t)by, wait.function, object);
    fflush(stdout);
}

int main(void) {
    int ends[2], others[2];
    check(!pipe(ends), "pipe");
    await((struct wait){"pipe", "read", ends[0], ends[1]});
    check(!socketpair(AF_UNIX, SOCK_STREAM, 0, others), "socketpair");
    await((struct wait){"socket", "recv", others[0], others[1]});

    check(!mkfifo("named", 0600), "mkfifo");
    int from = open("named", O_RDONLY | O_NONBLOCK), to = open("named", O_WRONLY);
    check(from >= 0 && to >= 0 && !fcntl(from, F_SETFL, 0), "named");
    await((struct wait){"named", "read", from, to});
    unlink("named");

    int master = posix_openpt(O_RDWR | O_NOCTTY);
    check(master >= 0 && !grantpt(master) && !unlockpt(master), "posix_openpt");
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    check(terminal >= 0, "ptsname");
    await((struct wait){"terminal", "read", terminal, master});

    int timer = timerfd_create(CLOCK_MONOTONIC, 0), counter = eventfd(0, 0);
    check(timer >= 0 && counter >= 0, "timerfd_create");
    await((struct wait){"timer", "read", timer, timer});
    await((struct wait){"event", "read", counter, counter});

    await((struct wait){"polled", "poll", counter, counter, counter});
    uint64_t old;
    check(read(counter, &old, sizeof old) == sizeof old, "eventfd");
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    check(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event), "epoll_ctl");
    await((struct wait){"registered", "epoll_wait", set, ends[1]});
    check(read(ends[0], &old, sizeof old) == sizeof old, "read");

    // A pipe in the place of an open file, and with the number of one that was just closed.
    int file = open("/proc/self/maps", O_RDONLY);
    check(file >= 0 && dup2(ends[0], file) == file, "dup2");
    await((struct wait){"duplicate", "read", file, ends[1]});
    close(file);
    int again = open("/proc/self/maps", O_RDONLY);
    check(again == file, "open");
    close(again);
    int reused[2];
    check(!pipe(reused) && reused[0] == file, "pipe");
    await((struct wait){"reused", "read", reused[0], reused[1]});
    // The same by a stream: fclose is given no number.
    close(reused[0]);
    FILE *stream = fopen("/proc/self/maps", "r");
    check(stream && fileno(stream) == file, "fopen");
    fclose(stream);
    check(dup(ends[0]) == file, "dup");
    await((struct wait){"closed", "read", file, ends[1]});

    // A number that was a file's, of a pipe that came with a message: no call says what it is.
    close(file);
    again = open("/proc/self/maps", O_RDONLY);
    check(again == file, "open");
    char space[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &ends[0], sizeof(int));
    check(sendmsg(others[1], &message, 0) == 1, "sendmsg");
    close(again);
    check(recvmsg(others[0], &message, 0) == 1, "recvmsg");
    int received;
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
    check(received == file, "received");
    await((struct wait){"received", "read", received, ends[1]});

    // A descriptor that a child has from its parent.
    int inherited[2];
    check(!pipe(inherited), "pipe");
    pid_t child = fork();
    if (child == 0) {
        char bytes[8];
        close(inherited[1]);
        _exit(read(inherited[0], bytes, sizeof bytes) != sizeof bytes);
    }
    untilIn(child, child, SYS_read);
    uint64_t more = 1;
    check(write(inherited[1], &more, sizeof more) == sizeof more, "write");
    int status;
    check(waitpid(child, &status, 0) == child && !status, "waitpid");
    struct stat of;
    fstat(inherited[0], &of);
    printf("inherited %d %d read pipe:[%lu]\n", child, (int)syscall(SYS_gettid), (unsigned long)of.st_ino);
    return 0;
}
