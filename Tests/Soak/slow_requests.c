// A server on a socket of the file system, with a thread for each of as many clients as it is given. A line is a request, "ID STEPS PAUSE_US": so
// many calls, and a pause in the middle. The answer says how long the request took, within its function and around its call, in nanoseconds.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

__attribute__((noinline)) long step(long n) {
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}

__attribute__((noinline)) long long handle_request(long id, int steps, int pause_us) {
    long long begun = now();
    long sum = id;
    for (int n = 0; n < steps / 2; n++) sum = step(sum);
    struct timespec left = {pause_us / 1000000, pause_us % 1000000 * 1000l};
    while (pause_us && nanosleep(&left, &left) && errno == EINTR) {}
    for (int n = steps / 2; n < steps; n++) sum = step(sum);
    return sum == id + steps ? now() - begun : -1;
}

static void *serve(void *client) {
    FILE *in = fdopen((int)(long)client, "r+");
    long id;
    int steps, pause_us;
    char line[100];
    while (fgets(line, sizeof line, in) && sscanf(line, "%ld %d %d", &id, &steps, &pause_us) == 3) {
        long long begun = now(), inside = handle_request(id, steps, pause_us), around = now() - begun;
        if (fprintf(in, "%ld %lld %lld\n", id, inside, around) < 0 || fflush(in)) abort();
    }
    fclose(in);
    return NULL;
}

int main(int count, char **words) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (count != 3 || strlen(words[1]) >= sizeof at.sun_path) return 2;
    strcpy(at.sun_path, words[1]);
    int clients = atoi(words[2]), socket_ = socket(AF_UNIX, SOCK_STREAM, 0);
    if (socket_ < 0 || bind(socket_, (struct sockaddr *)&at, sizeof at) || listen(socket_, clients)) return 3;
    pthread_t threads[64];
    for (int n = 0; n < clients && n < 64; n++) {
        int client = accept(socket_, NULL, NULL);
        if (client < 0 || pthread_create(&threads[n], NULL, serve, (void *)(long)client)) return 4;
    }
    for (int n = 0; n < clients && n < 64; n++) pthread_join(threads[n], NULL);
    return 0;
}
