// g++ keeps calls between these behind slots: they are exported and may be interposed.
#include "storm.h"
extern "C" long storm_nest(int depth, storm_leaf leaf, void *argument) {
    return depth == 0 ? leaf(argument) : storm_nest(depth - 1, leaf, argument) + 1;
}
extern "C" long storm_step(long value) { return value + 1; }
extern "C" long storm_sum(long count) {
    long sum = 0;
    for (long i = 0; i < count; i++) sum += storm_step(i) - 1;
    return sum;
}
