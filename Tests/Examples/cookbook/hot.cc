// A hot function of its own code, and a mutex that four threads want.
#include <cmath>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex guard;
static double total;

__attribute__((noinline)) double weight(long number) {
    double sum = 0;
    for (long term = 1; term < 4000; term++) sum += std::sqrt(double(number % term + 1));
    return sum;
}

__attribute__((noinline)) void add(double value) {
    std::lock_guard lock(guard);
    for (int turn = 0; turn < 20; turn++) total += weight(turn) * value;
}

static void work(long first) {
    for (long number = first; number < first + 200; number++) add(weight(number));
}

int main() {
    std::vector<std::thread> threads;
    for (long first = 0; first < 4; first++) threads.emplace_back(work, first * 1000);
    for (auto &thread : threads) thread.join();
    return total > 0 ? 0 : 1;
}
