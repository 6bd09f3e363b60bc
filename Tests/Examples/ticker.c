// An event loop for docs/guide/commands/stalls.md: one of its turns computes, one waits for an answer that does not come.
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) void draw_chart(void) {
    struct timespec used;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_nsec < 90000000 && !used.tv_sec);
}

__attribute__((noinline)) int ask_server(int server) {
    struct pollfd one = {server, POLLIN, 0};
    return poll(&one, 1, 60);
}

__attribute__((noinline)) void on_tick(int turn, int server) {
    if (turn == 7) draw_chart();
    if (turn == 14) ask_server(server);
}

int main(void) {
    int server[2], timer = eventfd(0, 0), set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    uint64_t ticks = 1;
    if (pipe(server) || epoll_ctl(set, EPOLL_CTL_ADD, timer, &event)) return 1;
    for (int turn = 0; turn < 20; turn++) {
        if (write(timer, &ticks, sizeof ticks) < 0) return 1;
        epoll_wait(set, &event, 1, -1);
        if (read(timer, &ticks, sizeof ticks) < 0) return 1;
        on_tick(turn, server[0]);
    }
    return 0;
}
