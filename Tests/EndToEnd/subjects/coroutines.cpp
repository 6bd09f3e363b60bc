// C++20 coroutines: suspended in the middle of a library's callback, resumed on another thread, destroyed half-way.
// compilers: gcc clang
// build: -O2 -std=c++20 -fcoroutines
// library: work
// modes: functions counts instrumented call_sites arm arm_call_sites
#include "subject.h"
#include <coroutine>
#include <thread>
#include <vector>
EXPORT int work_step(int value);
EXPORT void work_gone();
EXPORT int work_resume(void *address);
#ifdef LIB_work
int work_step(int value) { return value + 1; }
void work_gone() { OPAQUE(); }
int work_resume(void *address) { std::coroutine_handle<>::from_address(address).resume(); OPAQUE(); return 1; }
#else
struct Task {
    struct promise_type {
        int value = 0;
        Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int v) { value = v; return {}; }
        void return_void() {}
        void unhandled_exception() { throw; }
    };
    std::coroutine_handle<promise_type> handle;
};
struct Local { ~Local() { work_gone(); } };
static Task counting(int n) {
    Local local;
    for (int i = 0; i < n; i++) co_yield work_step(i);
}
static Task failing() {
    Local local;
    co_yield work_step(1);
    throw 17;
}
static NOINLINE int thrown_value() {
    Task thrower = failing();
    work_resume(thrower.handle.address());
    try { work_resume(thrower.handle.address()); CHECK(!"not reached"); } catch (int v) { return v; }
    // Not destroyed: clang runs the destructor of `local` a second time then, bare or traced.
    return 0;
}
int main() {
    Task task = counting(10);
    int sum = 0;
    for (int i = 0; i < 5; i++) { work_resume(task.handle.address()); sum += task.handle.promise().value; }
    std::thread([&] { for (int i = 0; i < 6; i++) { work_resume(task.handle.address()); sum += task.handle.promise().value; } }).join();
    CHECK(task.handle.done());
    task.handle.destroy();
    Task abandoned = counting(10);
    work_resume(abandoned.handle.address());
    abandoned.handle.destroy();
    sum += thrown_value() + work_step(0); // from this frame, which proves what the exception left to be dead
    printf("%d\n", sum);
    return 0;
}
#endif
