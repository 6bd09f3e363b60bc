// Spins in its own code, sleeps in libc's.
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments) {
    volatile unsigned long turns = 0;
    for (unsigned long most = 200000000ul * (count > 1 ? atoi(arguments[1]) : 1); turns < most;) turns++;
    usleep(40000);
    return 0;
}
