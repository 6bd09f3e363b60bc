// A function that calls itself 29 times, and two that call each other by turns, 20 calls each.
#include <stdlib.h>

int itself(int n) { return n == 0 ? rand() % 2 : itself(n - 1) + 1; }

int pong(int n);
int ping(int n) { return pong(n) + rand() % 2; }
int pong(int n) { return n == 0 ? 1 : ping(n - 1) + 1; }

int main(void) { return itself(29) + ping(19) == 0; }
