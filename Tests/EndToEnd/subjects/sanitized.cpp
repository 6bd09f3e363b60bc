// Programs built with AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.
// compilers: gcc clang
// library: checked
// variant: asan -fsanitize=address
// variant: ubsan -fsanitize=undefined
// variant: tsan@gcc -fsanitize=thread
// memory: unlimited
// env: ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
#include "subject.h"
#include <thread>
#include <vector>
EXPORT int checked_sum(const int *values, int count);
EXPORT void checked_throw(int value);
#ifdef LIB_checked
int checked_sum(const int *values, int count) { int sum = 0; for (int i = 0; i < count; i++) sum += values[i]; return sum; }
void checked_throw(int value) { throw value; }
#else
int main() {
    std::vector<int> values(100, 3);
    int sum = 0;
    for (int i = 0; i < 10; i++) sum += checked_sum(values.data(), 100);
    std::thread([&] { sum += checked_sum(values.data(), 50); }).join();
    try { checked_throw(5); } catch (int five) { sum += five; }
    printf("%d\n", sum);
    return 0;
}
#endif
