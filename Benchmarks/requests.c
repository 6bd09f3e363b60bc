// Loads a server as scripts/server-latency wants it: sends one request over several connections, each as soon as the last was answered,
// and prints percentiles of how long answers took.
//
//     requests PORT CONNECTIONS COUNT < REQUEST
//
// Every answer must be as long as the first one, which is read until nothing has come for a fifth of a second.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct connection {
    int socket;
    size_t missing; // bytes of the answer
    uint64_t sent;
};

static char request[4096], answer[1 << 20];
static size_t request_bytes;

static void fail(const char *what) {
    fprintf(stderr, "requests: %s: %s\n", what, strerror(errno));
    exit(1);
}
static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
static int connect_to(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, made = socket(AF_INET, SOCK_STREAM, 0);
    if (made < 0 || connect(made, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return made;
}
static void send_request(struct connection *connection, size_t length) {
    connection->missing = length;
    connection->sent = now();
    if (send(connection->socket, request, request_bytes, MSG_NOSIGNAL) != (ssize_t)request_bytes) fail("send");
}
static size_t receive(int socket) {
    ssize_t got = recv(socket, answer, sizeof answer, 0);
    if (got <= 0) fail("the server has closed a connection");
    return (size_t)got;
}
static size_t length_of_answer(int port) {
    struct connection probe = {.socket = connect_to(port)};
    send_request(&probe, 0);
    size_t length = receive(probe.socket);
    while (poll(&(struct pollfd){.fd = probe.socket, .events = POLLIN}, 1, 200) > 0) length += receive(probe.socket);
    close(probe.socket);
    return length;
}
static int by_size(const void *a, const void *b) {
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return one < other ? -1 : one > other;
}

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: requests PORT CONNECTIONS COUNT < REQUEST\n");
        return 2;
    }
    int port = atoi(words[1]), connections = atoi(words[2]);
    size_t wanted = (size_t)atol(words[3]), sent = 0, done = 0;
    request_bytes = fread(request, 1, sizeof request, stdin);
    size_t length = length_of_answer(port);
    struct connection *all = calloc((size_t)connections, sizeof *all);
    uint64_t *times = malloc(wanted * sizeof *times);
    int poller = epoll_create1(0);
    if (!all || !times || poller < 0 || connections < 1 || wanted < 100) fail("nothing to do");
    uint64_t begun = now();
    for (int n = 0; n < connections; n++, sent++) {
        all[n].socket = connect_to(port);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[n]};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, all[n].socket, &event)) fail("epoll_ctl");
        send_request(&all[n], length);
    }
    while (done < wanted) {
        struct epoll_event events[64];
        int ready = epoll_wait(poller, events, 64, 10000);
        if (ready <= 0) fail("no answer within ten seconds");
        for (int n = 0; n < ready; n++) {
            struct connection *one = events[n].data.ptr;
            size_t got = receive(one->socket);
            if (got > one->missing) fail("a longer answer than the first");
            one->missing -= got;
            if (one->missing || done == wanted) continue;
            times[done++] = now() - one->sent;
            if (sent++ < wanted) send_request(one, length);
        }
    }
    double seconds = (double)(now() - begun) / 1e9;
    qsort(times, wanted, sizeof *times, by_size);
    printf("%.0f %lu %lu %lu %lu\n", (double)wanted / seconds, times[wanted / 2], times[wanted * 99 / 100], times[wanted * 999 / 1000],
           times[wanted - 1]);
    return 0;
}
