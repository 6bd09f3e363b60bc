// A program whose start calls functions in an order that it is given, and then does rounds of work. Each function notes its first call.
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <vector>

static const char *noted[64];
static int count;
#define NOTE note(__func__)

extern "C" {

static void note(const char *name) {
    for (int n = 0; n < count; n++) {
        if (noted[n] == name) return;
    }
    noted[count++] = name;
}

void read_options(void) { NOTE; }
void open_files(void) { NOTE; }
void connect_all(void) { NOTE; }
void rarely_needed(void) { NOTE; }
void never_needed(void) { NOTE; }
void *in_a_thread(void *) {
    NOTE;
    connect_all();
    return nullptr;
}
void announce_ready(void) { NOTE; }
int one_of_two_alike(int n) { return n * 3 + 1; }
int other_of_two_alike(int n) { return n * 3 + 1; }

void warm_leaf(int n) {
    static volatile int sum;
    sum = sum + n;
}
void hot_leaf(int n) {
    static volatile int sum;
    sum = sum + n;
}
void warm_work(int n) {
    for (int k = 0; k < 2; k++) warm_leaf(n);
}
void hot_work(int n) {
    for (int k = 0; k < 2; k++) hot_leaf(n);
}
void say_goodbye(void) {
    for (int n = 0; n < count; n++) fprintf(stderr, "%s\n", noted[n]);
}

}

struct Thing {
    explicit Thing(int value) : value(value) {}
    virtual ~Thing() {}
    virtual int get() const { return value; }
    int value;
};

template <class T> T largest(const std::vector<T> &values) {
    T found{};
    for (T value : values) found = value > found ? value : found;
    return found;
}

int main(int argc, char **argv) {
    NOTE;
    for (int n = 1; n < argc; n++) {
        if (strcmp(argv[n], "options") == 0) read_options();
        if (strcmp(argv[n], "files") == 0) open_files();
        if (strcmp(argv[n], "rare") == 0) rarely_needed();
        if (strcmp(argv[n], "never") == 0) never_needed();
    }
    pthread_t thread;
    pthread_create(&thread, nullptr, in_a_thread, nullptr);
    pthread_join(thread, nullptr);
    static volatile int numbers[2];
    numbers[0] = one_of_two_alike(argc);
    numbers[1] = other_of_two_alike(argc);
    Thing thing(largest(std::vector<int>{1, 2, 3}));
    announce_ready();
    for (int n = 0; n < 10; n++) warm_work(n);
    for (int n = 0; n < 1000; n++) hot_work(n);
    say_goodbye();
    return thing.get() == 3 ? 0 : 1;
}
