// Functions that the storm calls across a slot. The library's functions call one another through its own slots too.
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
typedef long (*storm_leaf)(void *argument);
/// depth levels of calls, then leaf(argument); the result is the leaf's plus depth.
long storm_nest(int depth, storm_leaf leaf, void *argument);
/// value + 1. Every call is counted by its caller before and after.
long storm_step(long value);
/// A sum that is known: 0 + 1 + … + count-1 in calls.
long storm_sum(long count);
/// In plugin N: value * N + 1, by way of a call through the plugin's own slot.
long storm_plugin(long value);
#ifdef __cplusplus
}
#endif
