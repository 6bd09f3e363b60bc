"""Arguments and results of a program's own functions, by the prototypes of its debug information: what the functions print themselves, at
every optimisation, against `replay --json`; parameters that compilers remove; debug information that is missing, elsewhere or damaged."""
import glob
import json
import math
import os
import random
import re
import shutil
import subprocess

import build
import harness
import suite
from harness import Skipped, expect

# Each function prints its name, its arguments as `replay --json` has them, and its result (-: none is recorded), between tabs.
COMMON = r"""
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#define APART __attribute__((noinline, visibility("default")))
#define BEGIN(name) const char *comma = printf("%s\t{", name) ? "" : "";
#define KEY(name) printf("%s\"%s\": ", comma, #name), comma = ", "
#define NUMBER(name) KEY(name), (name) < 0 ? printf("%lld", (long long)(name)) : printf("%llu", (unsigned long long)(name))
#define REAL(name) KEY(name), real(name)
#define TEXT(name) KEY(name), (name) ? printf("\"%s\"", name) : printf("null")
#define ADDRESS(name) KEY(name), (name) ? printf("\"%p\"", (const void *)(name)) : printf("null")
#define AT(name) KEY(name), printf("\"%p\"", (const void *)&(name)) // what a reference is to
#define NAMED(name, text) KEY(name), printf("\"%s\"", text)
#define OPAQUE(name) KEY(name), printf("{\"opaque\": true}")
#define STRUCTURE(name, ...) KEY(name), printf(__VA_ARGS__)
#define END(...) printf("}\t" __VA_ARGS__), printf("\n"), fflush(stdout)
static void real(double value) {
    if (isfinite(value)) printf("%.17g", value); else printf("\"%s\"", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
}
"""
C_SOURCE = COMMON + r"""
enum colour { RED, GREEN, BLUE = 77 };
enum cold { FREEZING = -5, MILD = 5 };
enum __attribute__((packed)) tiny { LOW = 1, HIGH = 255 };
typedef enum { FIRST = 1, SECOND } unnamed;
typedef unsigned char byte;
struct ints { int a, b; };
struct mixed { double x; int n; };
struct reals { double x, y; };
struct three { float x, y, z; };
struct large { long all[4]; };
struct chars { char all[3]; };
struct bits { unsigned a : 3, b : 9; int c : 20; long d : 40; };
struct __attribute__((packed)) packed { char c; long n; };
struct nested { struct ints one; float y[2]; };
struct wide { __int128 n; };
struct extended { long double x; };
struct none {};
struct longs { long n[2]; };
union either { long n; double x; };
union floats { float one; float two[2]; };
typedef float vector __attribute__((vector_size(16)));

APART signed char take_chars(char a, signed char b, unsigned char c, _Bool d, byte e) {
    BEGIN("take_chars") NUMBER(a), NUMBER(b), NUMBER(c), NUMBER(d), NUMBER(e), END("%d", (signed char)(b + 1));
    return b + 1;
}
APART unsigned short take_integers(short a, unsigned short b, int c, unsigned d, long e, unsigned long f, long long g, size_t h, int8_t i, uint64_t j) {
    BEGIN("take_integers") NUMBER(a), NUMBER(b), NUMBER(c), NUMBER(d), NUMBER(e), NUMBER(f), NUMBER(g), NUMBER(h), NUMBER(i), NUMBER(j), END("%d", (unsigned short)(b + 1));
    return b + 1;
}
APART _Bool take_pointers(const void *a, int *b, void (*c)(void), const char *d, char *e, const byte *f, char **g, const char *const h) {
    BEGIN("take_pointers") ADDRESS(a), ADDRESS(b), ADDRESS(c), TEXT(d), TEXT(e), ADDRESS(f), ADDRESS(g), TEXT(h), END("%d", d != NULL);
    return d != NULL;
}
APART enum colour take_names(enum colour a, enum cold b, enum tiny c, unnamed d, enum colour e, mode_t f) {
    BEGIN("take_names") NAMED(a, a == RED ? "RED" : a == GREEN ? "GREEN" : "BLUE"), NAMED(b, b == MILD ? "MILD" : "FREEZING"),
        NAMED(c, c == LOW ? "LOW" : "HIGH"), NAMED(d, d == FIRST ? "FIRST" : "SECOND"), NUMBER(e), NUMBER(f), END("\"GREEN\"");
    return GREEN;
}
APART double take_reals(double a, float b, int c, double d, long e, float f) {
    double sum = a + b + c + d + e + f;
    BEGIN("take_reals") REAL(a), REAL(b), NUMBER(c), REAL(d), NUMBER(e), REAL(f), printf("}\t"), real(sum), printf("\n");
    return sum;
}
APART float take_many_reals(double a, double b, float c, double d, double e, double f, double g, double h, double i, int j, float k, long l) {
    BEGIN("take_many_reals") REAL(a), REAL(b), REAL(c), REAL(d), REAL(e), REAL(f), REAL(g), REAL(h), REAL(i), NUMBER(j), REAL(k), NUMBER(l), printf("}\t"), real((float)i), printf("\n");
    return i;
}
APART long take_many(int a, char b, short c, long d, _Bool e, unsigned char f, short g, char h, int i, long j, double k, unsigned short l) {
    BEGIN("take_many") NUMBER(a), NUMBER(b), NUMBER(c), NUMBER(d), NUMBER(e), NUMBER(f), NUMBER(g), NUMBER(h), NUMBER(i), NUMBER(j), REAL(k), NUMBER(l), END("%ld", j);
    return j;
}
APART int take_structures(int a, struct ints b, int c, struct mixed d, double e, int f, struct large g, int h) {
    BEGIN("take_structures") NUMBER(a), STRUCTURE(b, "{\"a\": %d, \"b\": %d}", b.a, b.b), NUMBER(c), STRUCTURE(d, "{\"x\": "), real(d.x), printf(", \"n\": %d}", d.n), REAL(e), NUMBER(f),
        STRUCTURE(g, "{\"all\": [%ld, %ld, %ld, %ld]}", g.all[0], g.all[1], g.all[2], g.all[3]), NUMBER(h), END("%d", b.a + d.n + (int)g.all[3]);
    return b.a + d.n + (int)g.all[3];
}
APART int take_small(struct chars a, int b, struct bits c, long d, struct nested e, int f, union either g, int h, struct three i, float j) {
    BEGIN("take_small") STRUCTURE(a, "{\"all\": \"%.3s\"}", a.all), NUMBER(b), STRUCTURE(c, "{\"a\": %d, \"b\": %d, \"c\": %d, \"d\": %ld}", c.a, c.b, c.c, (long)c.d), NUMBER(d),
        STRUCTURE(e, "{\"one\": {\"a\": %d, \"b\": %d}, \"y\": [%g, %g]}", e.one.a, e.one.b, e.y[0], e.y[1]), NUMBER(f), OPAQUE(g), NUMBER(h),
        STRUCTURE(i, "{\"x\": %g, \"y\": %g, \"z\": %g}", i.x, i.y, i.z), REAL(j), END("%d", a.all[2] + e.one.b);
    return a.all[2] + e.one.b;
}
APART int take_spilled(long a, long b, long c, long d, long e, struct reals f, struct longs g, int h, struct packed i, int j, long k, int l) {
    BEGIN("take_spilled") NUMBER(a), NUMBER(b), NUMBER(c), NUMBER(d), NUMBER(e), STRUCTURE(f, "{\"x\": %g, \"y\": %g}", f.x, f.y), STRUCTURE(g, "{\"n\": [%ld, %ld]}", g.n[0], g.n[1]), NUMBER(h),
        STRUCTURE(i, "{\"c\": %d, \"n\": %ld}", i.c, i.n), NUMBER(j), NUMBER(k), NUMBER(l), END("%d", (int)g.n[1] + (int)i.n);
    return (int)g.n[1] + (int)i.n;
}
APART int take_unusual(int a, __int128 b, int c, long double d, int e, _Complex double f, double g, struct none h, int i, vector j, double k, struct wide l, int m) {
    BEGIN("take_unusual") NUMBER(a), OPAQUE(b), NUMBER(c), OPAQUE(d), NUMBER(e), OPAQUE(f), REAL(g), NUMBER(i), OPAQUE(j), REAL(k), STRUCTURE(l, "{\"n\": {\"opaque\": true}}"), NUMBER(m), END("%d", (int)b + (int)l.n);
    return (int)b + (int)l.n;
}
#ifdef __aarch64__ // 16 bytes of a vector register, of which eight are read
#define EXTENDED(name) OPAQUE(name)
#else
#define EXTENDED(name) STRUCTURE(name, "{\"x\": {\"opaque\": true}}")
#endif
APART int take_aligned(int a, int b, int c, int d, int e, int f, int g, long double h, int i, struct extended j, int k, __int128 l, int m, union floats n, float o) {
    BEGIN("take_aligned") NUMBER(a), NUMBER(b), NUMBER(c), NUMBER(d), NUMBER(e), NUMBER(f), NUMBER(g), OPAQUE(h), NUMBER(i), EXTENDED(j), NUMBER(k), OPAQUE(l), NUMBER(m), OPAQUE(n), REAL(o), END("%d", (int)j.x);
    return (int)j.x;
}
APART struct large take_returned(int a, double b, const char *c) {
    BEGIN("take_returned") NUMBER(a), REAL(b), TEXT(c), END("-");
    struct large all = {{a}};
    return all;
}
APART struct mixed take_returned_small(int a, double b) {
    BEGIN("take_returned_small") NUMBER(a), REAL(b), END("-");
    struct mixed all = {b, a};
    return all;
}
APART long double take_returned_extended(int a) { BEGIN("take_returned_extended") NUMBER(a), END("-"); return a; }
APART _Complex long double take_returned_complex(int a) { BEGIN("take_returned_complex") NUMBER(a), END("-"); return a; }
APART struct extended take_returned_member(int a) { BEGIN("take_returned_member") NUMBER(a), END("-"); return (struct extended){a}; }
APART __int128 take_returned_wide(int a) { BEGIN("take_returned_wide") NUMBER(a), END("-"); return a; }
APART int take_more(int a, const char *b, ...) {
    va_list rest;
    va_start(rest, b);
    double x = va_arg(rest, double);
    va_end(rest);
    BEGIN("take_more") NUMBER(a), TEXT(b), END("%d", (int)x);
    return x;
}
APART void take_nothing(void) { BEGIN("take_nothing") END("-"); }
static __attribute__((noinline)) long take_address(long a, double b, int c) { // they live in the frame at every optimization
    BEGIN("take_address") NUMBER(a), REAL(b), NUMBER(c), END("%ld", a);
    __asm__ volatile("" ::"r"(&a), "r"(&b), "r"(&c) : "memory");
    return a;
}
int main(void) {
    const long numbers[] = {0, 1, -1, 5, 127, 128, -128, 255, 32767, 65535, 1L << 31, INT32_MIN, INT64_MAX, INT64_MIN};
    const double reals[] = {0, -0.0, 1, -1.5, 0.1, 1e300, 1e-300, 3.14159265358979, INFINITY, -INFINITY, NAN, 16777217, 1e38, 5e-324};
    static int object;
    char own[] = "on the stack";
    for (unsigned k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        long n = numbers[k];
        double x = reals[k];
        take_chars(n, n, n, n & 1, n);
        take_integers(n, n, n, n, n, n, n, n, n, n);
        take_reals(x, x, n, -x, n, x / 2);
        take_many_reals(x, 1, x, 2, 3, x, 4, 5, x, n, x, n);
        take_many(n, n, n, n, n & 1, n, n, n, n, n, x, n);
        take_structures(n, (struct ints){(int)n, 2}, n, (struct mixed){x, (int)n}, x, n, (struct large){{1, 2, 3, n}}, n);
        take_small((struct chars){{'1', n & 1 ? 0 : '2', '3'}}, n, (struct bits){(unsigned)n, (unsigned)n, (int)n, n}, n, (struct nested){{(int)n, 2}, {3, n & 7}}, n, (union either){.n = n}, n, (struct three){1, n & 7, 3}, x);
        take_spilled(n, n, n, n, n, (struct reals){1, n & 255}, (struct longs){{n, 2}}, n, (struct packed){1, n}, n, n, n);
        take_unusual(n, n, n, x, n, x, x, (struct none){}, n, (vector){1, 2, 3, 4}, x, (struct wide){n}, n);
        take_aligned(n, n, n, n, n, n, n, x, n, (struct extended){1}, n, n, n, (union floats){1}, x);
        take_returned(n, x, "text"), take_returned_small(n, x), take_returned_extended(n), take_returned_complex(n), take_returned_member(n), take_returned_wide(n);
        take_more(n, own, 2.5);
        take_address(n, x, n);
        take_nothing();
    }
    take_pointers(&object, &object, (void (*)(void))main, "a literal", own, (byte *)"bytes", 0, "");
    take_pointers(0, 0, 0, 0, 0, 0, (char **)&object, 0);
    take_names(RED, MILD, LOW, FIRST, (enum colour)5, 0644);
    take_names(BLUE, FREEZING, HIGH, SECOND, (enum colour)-1, 0);
    return 0;
}
"""
CPP_SOURCE = COMMON + r"""
#include <string>
namespace space {
enum class level : uint8_t { low, high = 200 };
enum signs : short { minus = -3, plus = 3 };
struct empty {};
struct trivial { int a; double b; };
struct copied { // not trivial for the purposes of calls
    int a;
    explicit copied(int a) : a(a) {}
    copied(const copied &other) : a(other.a) {}
    ~copied() {}
};
struct base { virtual ~base() {} virtual long take_virtual(int a, double b) = 0; long member = 1; };
struct derived : virtual base {
    int n;
    APART derived(int take, double x) : n(take) { BEGIN("space::derived::derived") ADDRESS(this), NUMBER(take), REAL(x), END("-"); }
    APART long take_virtual(int a, double b) override { BEGIN("space::derived::take_virtual") ADDRESS(this), NUMBER(a), REAL(b), END("%ld", member + n); return member + n; }
    APART int take_method(char a, level b) const { BEGIN("space::derived::take_method") ADDRESS(this), NUMBER(a), NAMED(b, b == level::low ? "low" : "high"), END("%d", n); return n; }
    APART static signs take_static(int a, signs b) { BEGIN("space::derived::take_static") NUMBER(a), NAMED(b, b == plus ? "plus" : "minus"), END("\"%s\"", b == plus ? "plus" : "minus"); return b; }
};
APART int take_classes(int a, copied b, int c, trivial d, empty e, int f, const trivial &g, copied &&h, double i, std::nullptr_t j, int k) {
    BEGIN("space::take_classes") NUMBER(a), OPAQUE(b), NUMBER(c), STRUCTURE(d, "{\"a\": %d, \"b\": %.17g}", d.a, d.b);
#ifdef __aarch64__
    OPAQUE(e);
#endif
    NUMBER(f), AT(g), AT(h), REAL(i), KEY(j), printf("null"), NUMBER(k), END("%d", b.a + d.a + h.a);
    return b.a + d.a + h.a;
}
APART copied take_returned(int a, const char *b) { BEGIN("space::take_returned") NUMBER(a), TEXT(b), END("-"); return copied(a); }
APART std::string take_text(const std::string &a, std::string b, int c) {
    BEGIN("space::take_text") NAMED(a, a.c_str()), NAMED(b, b.c_str()), NUMBER(c);
#if defined(__x86_64__)
    END("\"%s%s\"", a.c_str(), b.c_str());
#else // nothing says at the return where the object is
    END("-");
#endif
    return a + b;
}
APART int take_members(int derived::*a, int b, long (base::*c)(int, double), int d) { BEGIN("space::take_members") OPAQUE(a), NUMBER(b), OPAQUE(c), NUMBER(d), END("%d", a ? b : d); return a ? b : d; }
}
namespace space { static __attribute__((noinline)) long take_local(int a, long b) { BEGIN("space::take_local") NUMBER(a), NUMBER(b), END("%ld", b); return b; } }
extern "C" APART int take_plain(bool a, char16_t b, wchar_t c, unsigned long long d) { BEGIN("take_plain") NUMBER(a), NUMBER(b), NUMBER(c), NUMBER(d), END("%d", (int)c); return c; }
using namespace space;
int main() {
    const long numbers[] = {0, 1, -1, 127, 128, 255, 65535, INT32_MIN, INT64_MAX};
    for (long n : numbers) {
        double x = n / 4.0;
        trivial t{(int)n, x};
        take_classes(n, copied(n), n, t, empty(), n, t, copied(1), x, nullptr, n);
        take_returned(n, "a literal");
        take_text("a", "b", n);
        take_members(&derived::n, n, &base::take_virtual, -n);
        take_plain(n & 1, n & 0xffff, n, n);
        take_local(n, n);
        derived d(n, x);
        base *b = &d;
        b->take_virtual(n, x);
        d.take_method(n, n & 1 ? level::high : level::low);
        derived::take_static(n, n & 1 ? plus : minus);
    }
    return 0;
}
"""


# What is passed is printed by the caller: the functions do not use all of it, and what they do not need compilers do not pass.
REMOVED = COMMON + r"""
struct pair { int a, b; };
static volatile long kept;
static __attribute__((noinline)) int part_unused(int unused, int x, double gone, long y) { kept += x; return (int)y; }
static __attribute__((noinline)) int part_constant(int always, int x, int y) { kept += x * always; return y; }
static __attribute__((noinline)) int part_pointed(const struct pair *p, int x) { kept += x; return p->a + x; }
static __attribute__((noinline)) int part_address(int unused, int x, int y) { __asm__ volatile("" ::"r"(&x) : "memory"); return y; }
static __attribute__((noinline)) int part_result(int x, const char *text) { kept += x + text[0]; return 7; }
static __attribute__((noinline)) double part_reals(double unused, double x, float gone, float y) { kept += (long)x; return y; }
static __attribute__((noinline)) long part_structure(struct pair p, int x) { kept += x; return p.b; }
APART int all_unused(int unused, int x, double gone, long y) { kept -= x; return (int)y; }
APART int all_address(int unused, int x, int y) { __asm__ volatile("" ::"r"(&x) : "memory"); return y + 1; }
int main(void) {
    for (int n = 1; n < 9; n++) {
        struct pair p = {n, n + 1};
        printf("part_unused\t{\"unused\": %d, \"x\": %d, \"gone\": 2.5, \"y\": %d}\t%d\n", n * 3, n, n * 5, n * 5), part_unused(n * 3, n, 2.5, n * 5);
        printf("part_constant\t{\"always\": 6, \"x\": %d, \"y\": %d}\t%d\n", n, n * 5, n * 5), part_constant(6, n, n * 5);
        printf("part_pointed\t{\"p\": \"%p\", \"x\": %d}\t%d\n", (void *)&p, n, 2 * n), kept = part_pointed(&p, n);
        printf("part_address\t{\"unused\": %d, \"x\": %d, \"y\": %d}\t%d\n", n * 3, n, n * 5, n * 5), kept = part_address(n * 3, n, n * 5);
        printf("part_result\t{\"x\": %d, \"text\": \"text\"}\t7\n", n), part_result(n, "text");
        printf("part_reals\t{\"unused\": %d.5, \"x\": %d, \"gone\": 1, \"y\": %d}\t%d\n", n, n * 2, n * 3, n * 3), kept = part_reals(n + .5, n * 2, 1, n * 3);
        printf("part_structure\t{\"p\": {\"a\": %d, \"b\": %d}, \"x\": %d}\t%d\n", n, n + 1, n, n + 1), kept = part_structure(p, n);
        printf("all_unused\t{\"unused\": %d, \"x\": %d, \"gone\": 2.5, \"y\": %d}\t%d\n", n * 3, n, n * 5, n * 5), kept = all_unused(n * 3, n, 2.5, n * 5);
        printf("all_address\t{\"unused\": %d, \"x\": %d, \"y\": %d}\t%d\n", n * 3, n, n * 5, n * 5 + 1), kept = all_address(n * 3, n, n * 5);
    }
    return 0;
}
"""
RUST = r"""
use std::cmp::Ordering;
use std::marker::PhantomData;

pub trait Shown { fn shown(&self) -> String; }
impl Shown for f64 { fn shown(&self) -> String { real(*self) } }
impl Shown for f32 { fn shown(&self) -> String { real(*self as f64) } }
fn real(value: f64) -> String { if value.is_finite() { format!("{value:?}") } else { format!("\"{}\"", if value.is_nan() { "nan" } else if value < 0.0 { "-inf" } else { "inf" }) } }
fn end<R: std::fmt::Display>(name: &str, arguments: std::fmt::Arguments, result: R) { println!("{name}\t{{{arguments}}}\t{result}"); }
const OPAQUE: &str = "{\"opaque\": true}";

#[derive(Clone, Copy)]
pub struct Point { x: i32, y: f64 }
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pair { a: i32, b: i32 }
#[repr(C)]
pub struct Large { all: [i64; 3] }
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Colour { Red, Green, Blue = 77 }
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(i16)]
pub enum Cold { Freezing = -5, Mild = 5 }
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Switch { Off, On }
pub enum Shape { Round(f64), Square(f64, f64), None }
#[derive(Clone, Copy)]
pub struct Id(u64);
#[derive(Clone, Copy)]
pub struct Flag { on: bool, level: u8 }
#[derive(Clone, Copy)]
pub struct Item { at: Point, id: u16, flag: Flag, colour: Colour }
impl Shown for Point { fn shown(&self) -> String { format!("{{\"x\": {}, \"y\": {}}}", self.x, self.y.shown()) } }
impl Shown for Flag { fn shown(&self) -> String { format!("{{\"on\": {}, \"level\": {}}}", self.on as u8, self.level) } }
impl Shown for Pair { fn shown(&self) -> String { format!("{{\"a\": {}, \"b\": {}}}", self.a, self.b) } }

#[inline(never)]
pub fn take_numbers(a: i32, b: u8, c: i64, d: f64, e: bool, f: usize, g: i16, h: u32, i: char) -> i64 {
    let (a, b, c, d, e, f, g, h, i) = (a, b, c, d, e, f, g, h, i); // what is shown is in memory, and these are copies
    let result = c.wrapping_add(b as i64);
    end("take_numbers", format_args!("\"a\": {a}, \"b\": {b}, \"c\": {c}, \"d\": {}, \"e\": {}, \"f\": {f}, \"g\": {g}, \"h\": {h}, \"i\": {}", d.shown(), e as u8, i as u32), result);
    result
}
#[inline(never)]
pub fn take_reals(a: f32, b: f64, c: i32, d: f32) -> f32 {
    let (a, b, c, d) = (a, b, c, d);
    end("take_reals", format_args!("\"a\": {}, \"b\": {}, \"c\": {c}, \"d\": {}", a.shown(), b.shown(), d.shown()), d.shown());
    d
}
#[inline(never)]
pub fn take_texts(a: &str, b: i32, c: String, d: &[u8], e: u32) -> usize {
    let result = a.len() + c.len() + d.len();
    end("take_texts", format_args!("\"a\": {a:?}, \"b\": {b}, \"c\": {c:?}, \"d\": {{\"data_ptr\": \"{:p}\", \"length\": {}}}, \"e\": {e}", d.as_ptr(), d.len()), result);
    result
}
#[inline(never)]
pub fn take_structures(a: Point, b: i32, c: Option<u32>, d: (u8, u16), e: &Point, f: [u8; 12], g: i32) -> f64 {
    let result = a.y + c.unwrap_or(1) as f64 + d.1 as f64 + e.x as f64 + f[1] as f64;
    end("take_structures", format_args!("\"a\": {}, \"b\": {b}, \"c\": {OPAQUE}, \"d\": {{\"__0\": {}, \"__1\": {}}}, \"e\": \"{e:p}\", \"f\": {OPAQUE}, \"g\": {g}", a.shown(), d.0, d.1), result.shown());
    result
}
#[inline(never)]
pub fn take_members(a: Item, b: Id, c: (f32, f32), d: Flag, e: &dyn Shown, f: Pair, g: i32, h: (u64, u8), i: Point, j: i64) -> u64 {
    let parts: [usize; 2] = unsafe { std::mem::transmute(e) };
    let item = format!("{{\"at\": {}, \"id\": {}, \"flag\": {}, \"colour\": \"{:?}\"}}", a.at.shown(), a.id, a.flag.shown(), a.colour);
    end("take_members", format_args!("\"a\": {item}, \"b\": {{\"__0\": {}}}, \"c\": {{\"__0\": {}, \"__1\": {}}}, \"d\": {}, \"e\": {{\"pointer\": \"{:#x}\", \"vtable\": \"{:#x}\"}}, \"f\": {}, \"g\": {g}, \"h\": {{\"__0\": {}, \"__1\": {}}}, \"i\": {}, \"j\": {j}",
        b.0, c.0.shown(), c.1.shown(), d.shown(), parts[0], parts[1], f.shown(), h.0, h.1, i.shown()), b.0);
    b.0
}
#[inline(never)]
pub fn take_wide(a: i32, b: i128, c: u64, d: u128, e: i8) -> u16 {
    end("take_wide", format_args!("\"a\": {a}, \"b\": {OPAQUE}, \"c\": {c}, \"d\": {OPAQUE}, \"e\": {e}"), b as u16);
    black_box(d);
    b as u16
}
#[inline(never)]
pub fn take_empty(_: (), a: i32, _b: PhantomData<u8>, c: [u64; 0], d: i64) -> i64 {
    black_box(c);
    end("take_empty", format_args!("\"a\": {a}, \"d\": {d}"), d);
    d
}
#[inline(never)]
pub fn take_shapes(a: Shape, b: i32, c: Option<Box<i32>>, d: Result<u8, u8>, e: Option<Colour>, f: u8) -> bool {
    let result = matches!(a, Shape::Round(_));
    if let Shape::Square(x, y) = a { black_box(x + y); }
    black_box((&c, d, e));
    end("take_shapes", format_args!("\"a\": {OPAQUE}, \"b\": {b}, \"c\": {OPAQUE}, \"d\": {OPAQUE}, \"e\": {OPAQUE}, \"f\": {f}"), result as u8);
    result
}
#[inline(never)]
pub fn take_names(a: Colour, b: Cold, c: Ordering, d: Switch) -> Cold {
    end("take_names", format_args!("\"a\": \"{a:?}\", \"b\": \"{b:?}\", \"c\": \"{c:?}\", \"d\": \"{d:?}\""), format_args!("\"{b:?}\""));
    b
}
#[inline(never)]
pub fn take_pointers(a: *const i32, b: &mut i32, c: Option<&i32>, d: Box<i32>, e: fn(i32) -> i32, f: i32) -> *const i32 {
    end("take_pointers", format_args!("\"a\": \"{a:p}\", \"b\": \"{b:p}\", \"c\": {OPAQUE}, \"d\": \"{d:p}\", \"e\": \"{:p}\", \"f\": {f}", e as *const ()), format_args!("\"{a:p}\""));
    black_box(c);
    a
}
#[inline(never)]
#[track_caller]
pub fn take_caller(a: i32, b: u64) -> u32 {
    end("take_caller", format_args!("\"a\": {a}, \"b\": {b}"), std::panic::Location::caller().line());
    std::panic::Location::caller().line()
}
/// What comes back through memory takes a register of its own.
#[inline(never)]
pub fn take_returned(a: i32, b: &str) -> String { end("take_returned", format_args!("\"a\": {a}, \"b\": {b:?}"), format!("{:?}", b.repeat(2))); b.repeat(2) }
#[inline(never)]
pub fn take_returned_array(a: i32, b: u8) -> [u8; 12] { end("take_returned_array", format_args!("\"a\": {a}, \"b\": {b}"), "-"); [b; 12] }
#[inline(never)]
pub fn take_returned_result(a: i32, b: u8) -> Result<(u32, u32), u64> { end("take_returned_result", format_args!("\"a\": {a}, \"b\": {b}"), "-"); if a > 0 { Ok((1, 2)) } else { Err(3) } }
#[inline(never)]
pub fn take_returned_pair(a: i32, b: u8) -> (i64, i32) { end("take_returned_pair", format_args!("\"a\": {a}, \"b\": {b}"), "-"); (b as i64, a) }
#[no_mangle]
#[inline(never)]
pub extern "C" fn take_plain(a: i32, b: f32, c: u64, d: Pair, e: i32, f: Large, g: i64) -> i32 {
    let (a, b, c, e, g) = (a, b, c, e, g);
    end("take_plain", format_args!("\"a\": {a}, \"b\": {}, \"c\": {c}, \"d\": {}, \"e\": {e}, \"f\": {{\"all\": {:?}}}, \"g\": {g}", b.shown(), d.shown(), f.all), a);
    black_box((d.a, d.b, f.all[0]));
    a
}
/// Patterns have no names.
#[inline(never)]
pub fn take_patterns((a, b): (i32, i32), c: i32, _: u64, Pair { a: d, b: e }: Pair, f: i32) -> i32 {
    let result = a.wrapping_add(b).wrapping_add(d).wrapping_add(e);
    end("take_patterns", format_args!("\"p1\": {{\"__0\": {a}, \"__1\": {b}}}, \"c\": {c}, \"p3\": 5, \"p4\": {{\"a\": {d}, \"b\": {e}}}, \"f\": {f}"), result);
    result
}
impl Point {
    #[inline(never)]
    pub fn take_method(&self, a: u8, b: &str) -> i32 { end("Point::take_method", format_args!("\"self\": \"{self:p}\", \"a\": {a}, \"b\": {b:?}"), self.x); self.x }
    #[inline(never)]
    pub fn take_self(self, a: i16) -> i16 { end("Point::take_self", format_args!("\"self\": {}, \"a\": {a}", self.shown()), a); a }
}
#[inline(never)]
fn take_local(a: i32, b: &str, c: f64) -> i64 { end("take_local", format_args!("\"a\": {a}, \"b\": {b:?}, \"c\": {}", c.shown()), a as i64 * 3); a as i64 * 3 }
#[inline(never)]
fn take_applied<F: Fn(i32, f64) -> i32>(f: F, a: i32) -> i32 {
    let (result, own) = (f(a, 2.5), if std::mem::size_of::<F>() > 0 { format!("\"f\": {{\"_ref__count\": \"{:#x}\"}}, ", unsafe { std::mem::transmute_copy::<F, usize>(&f) }) } else { String::new() });
    end("take_applied", format_args!("{own}\"a\": {a}"), result);
    result
}
fn black_box<T>(value: T) -> T { // std's is newer than some compilers
    let copy = unsafe { std::ptr::read_volatile(&value) };
    std::mem::forget(value);
    copy
}
fn next(a: i32) -> i32 { a ^ 1 }

fn main() {
    let count = std::env::args().count() as i32;
    for n in [0, 1, -1, 127, 65535, i32::MIN, i32::MAX] {
        let (x, mut own, boxed) = (n as f64 / 4.0, n, Box::new(n));
        let p = Point { x: n, y: x };
        let text = format!("{n}");
        take_numbers(n, n as u8, n as i64 * 3, x, n & 1 == 1, n as usize, n as i16, n as u32, char::from_u32(n as u32 & 0x3ff).unwrap());
        take_reals(x as f32, x, n, if n == 127 { f32::NAN } else { f32::INFINITY });
        take_texts("text", n, text.clone(), &[1, 2, 3], n as u32);
        take_structures(p, n, if n > 0 { Some(n as u32) } else { None }, (n as u8, n as u16), &p, [1; 12], n);
        take_members(Item { at: p, id: n as u16, flag: Flag { on: n > 0, level: n as u8 }, colour: Colour::Blue }, Id(n as u64), (x as f32, -x as f32), Flag { on: n < 0, level: 3 }, &x, Pair { a: n, b: 7 }, n, (n as u64, n as u8), p, n as i64);
        take_wide(n, n as i128, n as u64, 7, n as i8);
        take_empty((), n, PhantomData, [], n as i64 * 5);
        take_shapes(if n > 0 { Shape::Round(x) } else if n < 0 { Shape::Square(x, x) } else { Shape::None }, n, Some(Box::new(n)), if n > 0 { Ok(1) } else { Err(2) }, Some(Colour::Red), n as u8);
        take_names(if n > 0 { Colour::Blue } else { Colour::Green }, if n > 0 { Cold::Mild } else { Cold::Freezing }, n.cmp(&0), if n > 0 { Switch::On } else { Switch::Off });
        take_pointers(&p.x, &mut own, Some(&n), boxed, next, n);
        take_caller(n, n as u64);
        black_box((take_returned(n, &text), take_returned_array(n, 2), take_returned_result(n, 3).is_ok(), take_returned_pair(n, 4)));
        take_plain(n, x as f32, n as u64, Pair { a: n, b: 2 }, n, Large { all: [1, 2, 3] }, n as i64);
        take_patterns((n, 1), n, 5, Pair { a: n, b: count }, n);
        p.take_method(n as u8, &text);
        p.take_self(n as i16);
        black_box(take_local(n, &text, x));
        black_box(take_applied(|a, b| a.wrapping_add(b as i32), n)); black_box(take_applied(|a, _| a ^ count, n));
    }
}
"""
SWIFT = r"""
func text(_ value: Double) -> String { value.isFinite ? "\(value)" : "\"\(value)\"" }
func text(_ value: Float) -> String { value.isFinite ? "\(value)" : "\"\(value)\"" }
func text(_ value: Bool) -> String { value ? "1" : "0" }
func text(_ value: String) -> String { "\"" + value + "\"" }
func text(_ value: UnsafeRawPointer?) -> String { value.map { "\"0x" + String(UInt(bitPattern: $0), radix: 16) + "\"" } ?? "null" }
func text(_ value: AnyObject?) -> String { text(value.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) }) }
let opaque = "{\"opaque\": true}"
func end(_ name: String, _ arguments: [(String, String)], _ result: String) {
    print("\(name)\t{" + arguments.map { "\"\($0)\": \($1)" }.joined(separator: ", ") + "}\t\(result)")
}

public enum Colour { case red, green, blue }
public enum Numbered: Int { case one = 100, two = 200 }
public enum Holding { case number(Int), text(String), nothing }
public enum Failure: Error { case bad }
public struct Point { var x: Double; var n: Int32; var isOn: Bool }
public struct Large { var all: (Int, Int, Int, Int, Int) }
public struct Size { var width: Double; var height: Double }
public struct Flags { var isOne: Bool; var isTwo: Bool; var short: UInt16; var long: Int }
public struct Line { var from: Point; var to: Point; var colour: Colour; var name: String; var weight: Float?; var thing: Thing }
func text(_ value: Point) -> String { "{\"x\": \(text(value.x)), \"n\": \(value.n), \"isOn\": \(text(value.isOn))}" }
public final class Thing {
    var value: Int
    init(_ value: Int, _ text: String) { self.value = value; _ = text.count }
    @inline(never) public func takeMethod(_ a: Int32, b: String, c: Double) -> Int {
        end("Thing.takeMethod", [("a", "\(a)"), ("b", text(b)), ("c", text(c))], "\(value)")
        return value
    }
    @inline(never) public static func takeStatic(_ a: UInt8, _ b: Bool) -> Bool { end("Thing.takeStatic", [("a", "\(a)"), ("b", text(b))], text(b)); return b }
    @inline(never) public func takeThrowing(_ a: Int) throws -> Int {
        end("Thing.takeThrowing", [("a", "\(a)")], "-")
        if a & 1 == 1 { throw Failure.bad }
        return a
    }
}
extension Point {
    @inline(never) public func takeMember(_ a: Int, _ b: Float) -> Int32 { end("Point.takeMember", [("a", "\(a)"), ("b", text(b))], "\(n)"); return n }
    @inline(never) public mutating func takeMutating(_ a: Int16) { end("Point.takeMutating", [("a", "\(a)")], "-"); n += 1 }
}
@inline(never) public func takeNumbers(_ a: Int, b: UInt8, c: Int16, d: UInt32, e: Int64, f: UInt, g: Int8, h: UInt16, i: Int32, j: UInt64) -> Int32 {
    end("takeNumbers", [("a", "\(a)"), ("b", "\(b)"), ("c", "\(c)"), ("d", "\(d)"), ("e", "\(e)"), ("f", "\(f)"), ("g", "\(g)"), ("h", "\(h)"), ("i", "\(i)"), ("j", "\(j)")], "\(i)")
    return i
}
// The code of takeInout ends with a call that does not return, and what comes after it is not recorded.
@inline(never) public func next(_ a: Int) -> Int { a }
@inline(never) public func takeUnused(_ a: Int, _ b: String, _: Int, _ c: Int) -> Int { end("takeUnused", [("a", "\(a)"), ("b", text(b)), ("_2", "1"), ("c", "\(c)")], "\(c)"); return c }
@inline(never) public func takeReals(_ a: Double, _ b: Int, _ c: Float, _ d: Bool, _ e: Double) -> Float {
    end("takeReals", [("a", text(a)), ("b", "\(b)"), ("c", text(c)), ("d", text(d)), ("e", text(e))], text(c))
    return c
}
@inline(never) public func takeTexts(_ a: String, _ b: Int, _ c: String, _ d: Substring, _ e: Int, _ f: String) -> String {
    end("takeTexts", [("a", text(a)), ("b", "\(b)"), ("c", text(c)), ("d", opaque), ("e", "\(e)"), ("f", text(f))], text(a + c + d))
    return a + c + d
}
@inline(never) public func takeStructures(_ a: Point, _ b: Int, _ c: Large, _ d: Int?, _ e: Int32, _ f: [Int], _ g: UInt16) -> Double {
    let result = a.x + Double(c.all.4) + Double(d ?? 0) + Double(f[0])
    end("takeStructures", [("a", text(a)), ("b", "\(b)"), ("c", opaque), ("d", opaque), ("e", "\(e)"), ("f", opaque), ("g", "\(g)")], text(result))
    return result
}
@inline(never) public func takeSmall(_ a: Size, _ b: Flags, _ c: Int) -> Double {
    end("takeSmall", [("a", "{\"width\": \(text(a.width)), \"height\": \(text(a.height))}"),
        ("b", "{\"isOne\": \(text(b.isOne)), \"isTwo\": \(text(b.isTwo)), \"short\": \(b.short), \"long\": \(b.long)}"), ("c", "\(c)")], text(a.width))
    return a.width
}
@inline(never) public func takeNested(_ a: Line, _ b: Int) -> Int {
    end("takeNested", [("a", "{\"from\": \(text(a.from)), \"to\": \(text(a.to)), \"colour\": \(text("\(a.colour)")), \"name\": \(opaque), \"weight\": \(opaque), \"thing\": \(text(a.thing))}"), ("b", "\(b)")], "\(b)")
    return b
}
@inline(never) public func takePointers(_ a: UnsafePointer<UInt8>, _ b: UnsafeMutableRawPointer?, _ c: UnsafeBufferPointer<Int>, _ d: OpaquePointer?, _ e: UnsafeMutablePointer<Point>?, _ f: Int) -> UnsafePointer<UInt8> {
    end("takePointers", [("a", text(a)), ("b", text(b.map { UnsafeRawPointer($0) })), ("c", opaque), ("d", text(d.map { UnsafeRawPointer($0) })), ("e", text(e.map { UnsafeRawPointer($0) })), ("f", "\(f)")], text(a))
    _ = c.count
    return a
}
@inline(never) public func takeObjects(_ a: Thing, _ b: Thing?, _ c: AnyObject, _ d: Any, _ e: Int, _ f: Error) -> Thing {
    end("takeObjects", [("a", text(a)), ("b", text(b)), ("c", text(c)), ("d", opaque), ("e", "\(e)"), ("f", opaque)], text(a))
    _ = ("\(d)", "\(f)")
    return a
}
@inline(never) public func takeNames(_ a: Colour, _ b: Numbered, _ c: Holding, _ d: Colour?, _ e: Int) -> Colour {
    end("takeNames", [("a", text("\(a)")), ("b", text("\(b)")), ("c", opaque), ("d", opaque), ("e", "\(e)")], text("\(a)"))
    if case .number(let n) = c, n == e, d == nil { print("") }
    return a
}
/// What it is given the address of lives as long as the call.
@inline(never) public func takeInout(_ a: inout Int, _ b: Int, _ c: inout String) -> Int {
    let result = a
    withUnsafePointer(to: &a) { place in end("takeInout", [("a", text(UnsafeRawPointer(place))), ("b", "\(b)"), ("c", text(c))], "\(result)") }
    a &+= b
    c += "."
    return result
}
@inline(never) private func takePrivate(_ a: Int32, _ b: String, _ c: Double) -> Int { end("takePrivate", [("a", "\(a)"), ("b", text(b)), ("c", text(c))], "\(Int(a) * 3)"); return Int(a) * 3 }

let count = CommandLine.arguments.count
for n in [0, 1, -1, 127, 65535, Int(Int32.min), Int.max] {
    var own = n, word = "\(n)", point = Point(x: Double(n) / 4, n: Int32(truncatingIfNeeded: n), isOn: true)
    let thing = Thing(n, word), long = "a text of more than fifteen bytes \(n)"
    _ = takeNumbers(n, b: UInt8(truncatingIfNeeded: n), c: Int16(truncatingIfNeeded: n), d: UInt32(truncatingIfNeeded: n), e: Int64(n), f: UInt(bitPattern: n), g: Int8(truncatingIfNeeded: n), h: UInt16(truncatingIfNeeded: n), i: Int32(truncatingIfNeeded: n), j: UInt64(bitPattern: Int64(n)))
    _ = takeReals(Double(n) / 4, n, Float(n) / 4, n & 1 == 1, n == 127 ? .infinity : -1.5)
    _ = takeTexts("text", n, word, long.dropFirst(), -count, long)
    _ = takeStructures(point, n, Large(all: (1, 2, 3, 4, n)), n > 0 ? n : nil, Int32(truncatingIfNeeded: n), [n], UInt16(truncatingIfNeeded: n))
    _ = takeSmall(Size(width: Double(n) / 2, height: -0.25), Flags(isOne: n & 1 == 1, isTwo: true, short: UInt16(truncatingIfNeeded: n), long: -n), n)
    _ = takeNested(Line(from: point, to: Point(x: -1, n: 7, isOn: false), colour: n > 0 ? .blue : .red, name: long, weight: nil, thing: thing), n)
    withUnsafeMutablePointer(to: &point) { place in
        [1, n].withUnsafeBufferPointer { buffer in
            _ = takePointers(UnsafePointer(bitPattern: 16)!, n > 0 ? UnsafeMutableRawPointer(place) : nil, buffer, OpaquePointer(bitPattern: n & 0xff), n > 1 ? place : nil, n)
        }
    }
    _ = takeObjects(thing, n > 0 ? thing : nil, thing, n, n, Failure.bad)
    _ = takeNames(n > 0 ? .blue : .green, n > 0 ? .two : .one, n > 0 ? .number(1) : .nothing, n > 0 ? nil : .red, n)
    _ = takeUnused(n, word, count, n)
    _ = takePrivate(Int32(truncatingIfNeeded: n) / 4, word, Double(n))
    _ = thing.takeMethod(Int32(truncatingIfNeeded: n), b: long, c: 0.5)
    _ = Thing.takeStatic(UInt8(truncatingIfNeeded: n), n & 1 == 1)
    _ = try? thing.takeThrowing(n)
    _ = point.takeMember(n, 0.25)
    point.takeMutating(Int16(truncatingIfNeeded: n))
    _ = takeInout(&own, count, &word)
    _ = next(n)
}
"""


def is_same(own, value):
    if isinstance(own, float) and isinstance(value, (int, float)):
        return math.isclose(own, value, rel_tol=1e-6)
    if isinstance(own, dict) and "cut" in own:  # less is recorded of the last ones of several long strings
        text = value["cut"] if isinstance(value, dict) and "cut" in value else value
        return isinstance(text, str) and len(own["cut"]) > 100 and text.startswith(own["cut"])
    if isinstance(own, dict) and isinstance(value, dict):
        return own.keys() == value.keys() and all(own[key] == {"unavailable": True} or is_same(own[key], value[key]) for key in own)
    return own == value


class Prototypes(suite.Test):
    def plan(self, program, *words, status=None):
        """The argument plan that `record` makes for a program, of this architecture or another, and what it says. The program is not traced."""
        cache = self.path("plans")
        shutil.rmtree(cache, ignore_errors=True)
        said = self.tool("record", "--force", "--no-states", "-o", self.path("plan.trace"), *words, "--", program, status=status,
                         env=self.environment(XDG_CACHE_HOME=cache)).stderr
        plans = glob.glob(os.path.join(cache, "tracer/arguments/*"))
        return plans[0] if plans else None, said

    def recorded(self, program, *words):
        """Path of the trace of a run with the plan for these words."""
        self.forget_traces()
        path, errors = self.plan(program, *words)
        expect(path, errors)
        self.execute([program], TRACER_ARGUMENTS=path, TRACER_FUNCTIONS="*")
        return self.checked_trace().path

    def calls(self, path, names, spelled=lambda name: re.sub(r"^program::", "", name.split("(")[0])):
        """`spelled`: a function's name as the program prints it; the program's own are Rust's without its crate."""
        found = []
        for line in self.tool("replay", "--json", path).stdout.splitlines():
            call = json.loads(line)
            name = spelled(call["name"])
            if re.search(names, name) and not re.search(" thunk to |~", name):
                found.append((name, call.get("arguments"), call.get("result")))
        return found

    def judge_calls(self, said, found, least, hasAll=True):
        """What is shown is what was passed. `least`: the share of values that must be shown. `hasAll`: no parameter is missing."""
        lines = [line.split("\t") for line in said.decode().splitlines() if "\t" in line]
        expect(len(lines) == len(found) > 0, f"{len(lines)} calls, {len(found)} in the trace")
        values = shown = 0
        for (name, arguments, result), (found_name, found_arguments, found_result) in zip(lines, found):
            arguments = json.loads(arguments)
            expect(name in (found_name, found_name.split(".")[0]), f"{name}: {found_name}")
            if found_arguments is not None:
                left = [key for key in arguments if hasAll or key in found_arguments]
                expect(left == list(found_arguments), f"{name} has {list(arguments)}: {found_arguments}")
            for key, value in arguments.items():
                values += 1
                own = (found_arguments or {}).get(key, {"unavailable": True})
                if own == {"unavailable": True} or own == {"opaque": True} != value:
                    continue
                shown += 1
                if build.ARCHITECTURE == "aarch64" and isinstance(own, dict) and "unreadable" in own:
                    continue  # the emulator has no process_vm_readv
                expect(is_same(own, value), f"{name}: {key} is {value}, not {own}: {found_arguments}")
            if found_result is not None and not (build.ARCHITECTURE == "aarch64" and isinstance(found_result, dict) and "unreadable" in found_result):
                wanted = None if result == "-" else json.loads(result)
                expect(is_same(found_result, wanted), f"{name} returns {wanted}, not {found_result}")
            if result != "-":
                values += 1
                shown += found_result is not None
        expect(shown >= least * values, f"only {shown} of {values} values are shown")
        return f"{shown} of {values} values"

    def compare(self, program, names, least, choose, hasAll=True, spelled=None, **variables):
        harness.plan(self.settings, program, self.made)
        path, said = self.plan(program, *(word for glob in choose.split(",") for word in ("--arguments", glob)))
        expect(path, f"there is no plan: {said}")
        run = self.execute([program], TRACER_ARGUMENTS=path, TRACER_FUNCTIONS="*", **variables)
        found = self.calls(self.checked_trace().path, names, *([spelled] if spelled else []))
        return self.judge_calls(run.stdout, found, least, hasAll)


def driver(compiler, language):
    return build.DRIVERS[compiler][language].split()[0]


def source(text, compiler, language, *options, names="take_|derived", least=1, choose="*take_*,*derived*", **variables):
    def values_are_what_the_program_says(test):
        words = [*build.DRIVERS[compiler][language].split()[1:], *options, "-lm"]
        program = test.compile("program", *words, source=text, compiler=driver(compiler, language))
        return test.compare(program, names, least, choose, **variables)
    return values_are_what_the_program_says


def rust(optimization, least, text=RUST):
    def values_are_what_the_program_says(test):
        suite.need("rustc")
        test.write("program.rs", text)
        done = subprocess.run(["rustc", "--edition", "2021", "-g", "-C", f"opt-level={optimization}", "program.rs"], cwd=test.made, capture_output=True, text=True)
        if done.returncode:
            raise Skipped(f"rustc: {done.stderr[-200:]}")
        return test.compare(test.path("program"), "^(Point::)?take_", least, "*take_*")
    return values_are_what_the_program_says


def spelled_by_swift(name):
    """`function signature specialization <…> of main.Thing.takeMethod(…)`: Thing.takeMethod; empty: a closure's and the like."""
    found = re.search(r"((Thing|Point)\.)?take[A-Z]\w*", name)
    return "" if not found or re.search("closure #|forwarder", name.split("take")[0]) else found[0]


def swift(optimization, least):
    def values_are_what_the_program_says(test):
        suite.need("swiftc")
        test.write("program.swift", SWIFT)
        done = subprocess.run(["swiftc", "-g", optimization, "program.swift", "-o", "program"], cwd=test.made, capture_output=True, text=True)
        if done.returncode:
            raise Skipped(f"swiftc: {done.stderr[-200:]}")
        # The optimizer makes functions of others without those parameters that nothing needs.
        return test.compare(test.path("program"), "take", least, "*take*", hasAll=optimization == "-Onone", spelled=spelled_by_swift)
    return values_are_what_the_program_says


def functions_between_modules_have_them_without_patches(test):
    test.compile("libown.so", "-g", "-O2", "-shared", "-fPIC", source="#include <string.h>\nint own_length(const char *text, double factor) { return strlen(text) * factor; }\n")
    program = test.compile("program", "-O2", "-L.", "-lown", "-Wl,-rpath,$ORIGIN", source="int own_length(const char *, double);\nint main(void) { return own_length(\"four\", 2) != 8; }\n")
    said = test.tool("record", "--force", "-o", test.path("a.trace"), "--arguments", "own_*", "--", program)
    calls = test.calls(test.path("a.trace"), "own_length")
    expect(calls == [("own_length", {"text": "four", "factor": 2.0}, 8)], f"{calls} {said.stderr}")


def two_functions_of_one_name_have_each_its_own(test):
    test.write("one.c", "static __attribute__((noinline)) int own(int first) { __asm__ volatile(\"\"); return first; }\nint one(void) { return own(1); }\n")
    test.write("two.c", "static __attribute__((noinline)) int own(const char *second, long third) { __asm__ volatile(\"\"); return third + second[0]; }\nint two(void) { return own(\"\", 3); }\n")
    program = test.compile("program", "-g", "-O1", "one.c", "two.c", source="int one(void), two(void);\nint main(void) { return one() + two() != 4; }\n")
    test.tool("record", "--force", "-o", test.path("a.trace"), "--functions", "own", "--arguments", "own", "--", program)
    calls = test.calls(test.path("a.trace"), "^own$")
    expect([call[1] for call in calls] == [{"first": 1}, {"second": "", "third": 3}], str(calls))


def what_the_user_says_goes_first(test):
    program = test.compile("program", "-g", "-O1", source="__attribute__((noinline)) int own(unsigned char first, int second) { __asm__ volatile(\"\"); return first; }\nint main(int n, char **v) { return own(n, 2) - 1; }\n")
    for words, wanted in ((["own"], {"first": 1, "second": 2}), (["own(n: hex4)"], {"n": "0x1"}), (["own*", "own(a, b)"], {"a": 1, "b": 2})):
        options = [option for word in words for option in ("--arguments", word)]
        test.tool("record", "--force", "-o", test.path("a.trace"), "--functions", "own", *options, "--", program)
        calls = test.calls(test.path("a.trace"), "^own$")
        expect([call[1] for call in calls] == [wanted], f"{words}: {calls}")


SIMPLE = """#include <unistd.h>
__attribute__((noinline)) int own_first(const char *text, int number) { __asm__ volatile(""); return number + text[0]; }
int main(int n, char **v) { return own_first("", n) - 1; }
"""
KNOWN = [("own_first", {"text": "", "number": 1}, 1)]


def a_separate_debug_file_has_them_too(test):
    suite.need("objcopy")
    for how in ("beside", "altered"):
        program = test.compile("program", "-g", "-O1", "-Wl,--build-id", source=SIMPLE)
        for words in (["objcopy", "--only-keep-debug", "program", "program.debug"], ["objcopy", "--strip-debug", "--add-gnu-debuglink=program.debug", "program"]):
            subprocess.run(words, cwd=test.made, check=True)
        if how == "altered":  # another build's is not believed
            test.compile("other", "-g", "-O1", "-Wl,--build-id", source=SIMPLE + "int more;\n")
            subprocess.run(["objcopy", "--only-keep-debug", "other", "program.debug"], cwd=test.made, check=True)
        done = test.tool("record", "--force", "-o", test.path("a.trace"), "--functions", "own_first", "--arguments", "own_first", "--", program, status=None)
        if how == "beside":
            expect(test.calls(test.path("a.trace"), "own_first") == KNOWN, done.stderr)
        else:
            expect(done.returncode == 2 and "program has no debug information" in done.stderr, done.stderr)


def split_debug_information_is_found_or_said_to_be_missing(test):
    test.write("program.c", SIMPLE)
    for version in ("4", "5"):
        program = test.compile("program", f"-gdwarf-{version}", "-gsplit-dwarf", "-O1", "program.c")
        record = ["record", "--force", "-o", test.path("a.trace"), "--functions", "own_first", "--arguments", "own_*", "--arguments", "close"]
        done = test.tool(*record, "--", program)
        expect(test.calls(test.path("a.trace"), "own_first") == KNOWN, f"DWARF {version}: {done.stderr}")
        for path in glob.glob(test.path("*.dwo")):
            os.remove(path)
        os.utime(program)
        done = test.tool(*record[:-4], "--arguments", "own_first(text: string)", "--arguments", "*", "--", program)
        expect("1 unit of its debug information is in split files that are not here" in done.stderr, f"DWARF {version}: {done.stderr}")


def without_debug_information_a_line_says_so(test):
    program = test.compile("program", "-O1", "-g0", source=SIMPLE)
    for words, status, wanted in ((["own_first"], 2, "no prototype is known by this name (program has no debug information: compile it with -g)"),
                                  (["own_*"], 2, "program has no debug information"), (["nothing*"], 2, "has no debug information"),
                                  (["*"], 0, "program has no debug information (-g), so arguments of its own functions"), (["open*"], 0, None)):
        for _ in range(2):  # the second time from the cache
            done = test.tool("record", "--force", "-o", test.path("a.trace"), "--arguments", *words, "--", program, status=status)
            lines = [line for line in done.stderr.splitlines() if "debug information" in line]
            expect(len(lines) == (wanted is not None) and all(wanted in line for line in lines), f"{words}: {done.stderr}")
        done = test.tool("record", "--force", "--quiet", "-o", test.path("a.trace"), "--arguments", *words, "--", program, status=status)
        expect(status or not done.stderr, done.stderr)


def other_conventions_are_refused(test):
    if build.ARCHITECTURE != "x86_64":
        raise Skipped("they are x86_64's")
    text = """#define SHOWN __attribute__((noinline))
SHOWN __attribute__((ms_abi)) int own_other(int a, int b, int c, int d, int e) { __asm__ volatile(""); return a + b + c + d + e; }
SHOWN int own_usual(int a, int b) { __asm__ volatile(""); return a + b; }
int main(int n, char **v) { return own_other(n, 2, 3, 4, 5) + own_usual(n, 2) - 18; }
"""
    for compiler in ("gcc", "clang"):
        for optimization in ("-O0", "-O2"):
            program = test.compile("program", "-g", optimization, source=text, compiler=compiler)
            done = test.tool("record", "--force", "-o", test.path("a.trace"), "--functions", "own_*", "--arguments", "own_*", "--", program)
            calls = dict((name, arguments) for name, arguments, _ in test.calls(test.path("a.trace"), "own_"))
            expect(calls["own_usual"] == {"a": 1, "b": 2}, f"{compiler} {optimization}: {calls}")
            # Optimized code says where each parameter is.
            truth = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
            for key, value in (calls["own_other"] or {}).items():
                expect(value in (truth[key], {"unavailable": True}), f"{compiler} {optimization}: {calls} {done.stderr}")
            expect(calls["own_other"] or "usual calling convention" in done.stderr, f"{compiler} {optimization}: {calls} {done.stderr}")


def clones_are_refused(test):
    text = """static __attribute__((noinline)) int own_part(int unused, int a, int constant) { __asm__ volatile(""); return a * constant; }
__attribute__((noinline)) int own_whole(int a) { __asm__ volatile(""); return own_part(9, a, 5) + own_part(8, a + 1, 5); }
int main(int n, char **v) { return own_whole(n) - 15; }
"""
    program = test.compile("program", "-g", "-O2", source=text)
    names = subprocess.run(["nm", program], capture_output=True, text=True).stdout
    if "own_part." not in names:
        raise Skipped("this compiler makes no clone here")
    done = test.tool("record", "--force", "-o", test.path("a.trace"), "--functions", "*own_*", "--arguments", "own_*", "--", program)
    expect(re.search(r"own_part\.[a-z.0-9]+: the compiler has made them of other functions", done.stderr), done.stderr)
    for name, arguments, result in test.calls(test.path("a.trace"), "own_"):
        expect((arguments is None) == (name != "own_whole"), f"{name}: {arguments} {result}")


def a_plan_is_made_once(test):
    program = test.compile("program", "-g", "-O1", source=SIMPLE)
    cache = test.path("own-cache")
    environment = test.environment(XDG_CACHE_HOME=cache)
    record = ["record", "--force", "-o", test.path("a.trace"), "--functions", "own_first", "--arguments", "own_*", "--", program]
    test.tool(*record, env=environment)
    plan, = glob.glob(os.path.join(cache, "tracer/arguments/*"))
    first = os.stat(plan)
    test.tool(*record, env=environment)
    expect(os.stat(plan).st_mtime_ns == first.st_mtime_ns and len(glob.glob(os.path.join(cache, "tracer/arguments/*"))) == 1, "it was made again")
    test.compile("program", "-g", "-O1", source=SIMPLE.replace("number", "count"))
    test.tool(*record, env=environment)
    expect(test.calls(test.path("a.trace"), "own_first") == [("own_first", {"text": "", "count": 1}, 1)], "another program at the same path has the old prototypes")


def a_program_without_a_build_id_is_known_by_its_file(test):
    program = test.compile("program", "-g", "-O1", "-Wl,--build-id=none", source=SIMPLE)
    test.tool("record", "--force", "-o", test.path("a.trace"), "--functions", "own_first", "--arguments", "own_*", "--", program)
    expect(test.calls(test.path("a.trace"), "own_first") == KNOWN, "it is not known")


def damaged_debug_information_hurts_nobody(test):
    """Sections of it cut short, or changed anywhere: the tool goes by what it says, or says that it cannot, and the program runs."""
    suite.need("objcopy", "readelf")
    program = test.compile("program", "-g", "-O2", source=C_SOURCE, *["-lm"])
    whole = suite.read_bytes(program)
    sections = re.findall(r"\] (\.debug_\w+) +PROGBITS +\w+ (\w+) (\w+)", subprocess.run(["readelf", "-SW", program], capture_output=True, text=True).stdout)
    places = {name: (int(start, 16), int(count, 16)) for name, start, count in sections}
    chance = random.Random(7)
    expect({".debug_info", ".debug_abbrev", ".debug_loclists"} <= set(places), str(places))
    damaged = 0
    for n in range(60):
        content = bytearray(whole)
        name = chance.choice([".debug_info", ".debug_info", ".debug_abbrev", ".debug_abbrev", ".debug_loclists", ".debug_str", ".debug_rnglists", ".debug_line"])
        start, count = places.get(name, places[".debug_info"])
        if n % 3 == 0:
            first = chance.randrange(count)
            content[start + first:start + count] = bytes(count - first)
        else:
            for _ in range(chance.choice([1, 5, 50])):
                content[start + chance.randrange(count)] = chance.randrange(256)
        test.write("damaged", bytes(content), 0o755)
        done = test.tool("record", "--force", "--no-states", "-o", test.path("a.trace"), "--arguments", "take_*", "--", test.path("damaged"), status=None)
        expect(done.returncode in (0, 2), f"{n}: {name}: {harness.describe(done.returncode)}: {done.stderr[-300:]}")
        damaged += done.returncode == 2 or "not recorded" in done.stderr
    expect(damaged > 5, f"only {damaged} of 60 files were noticed to be damaged")


MODES = {"slots": "*", "arm": "values.*gcc*"}


def tests():
    cases = {}
    for compiler in ("gcc", "clang"):
        for optimization in ("-O0", "-O2"):
            name, whole = f"{compiler}{optimization}", ["-fstandalone-debug"] if compiler == "clang" else []
            # LLVM leaves out what it has not kept a location for.
            least = 1 if optimization == "-O0" else 0.96 if compiler == "gcc" else 0.9  # gcc makes a copy of one function
            cases[f"c.{name}"] = source(C_SOURCE, compiler, ".c", "-g", optimization, least=least, choose="take_*")
            cases[f"cpp.{name}"] = source(CPP_SOURCE, compiler, ".cpp", "-g", "-std=c++17", optimization, *whole, least=1 if optimization == "-O0" else 0.75 if compiler == "gcc" else 0.9)
            cases[f"removed.{name}"] = source(REMOVED, compiler, ".c", "-g", optimization, names="^(part|all)_", choose="*_*", least=1 if optimization == "-O0" else 0.2 if compiler == "gcc" else 0.4)
    cases["c.gcc-dwarf4"] = source(C_SOURCE, "gcc", ".c", "-gdwarf-4", "-O2", least=0.96, choose="take_*")
    cases["c.clang-dwarf4"] = source(C_SOURCE, "clang", ".c", "-gdwarf-4", "-O2", least=0.9, choose="take_*")
    cases["c.gcc-untracked"] = source(C_SOURCE, "gcc", ".c", "-g", "-O2", "-fno-var-tracking", least=0.96, choose="take_*")
    cases["removed.gcc-lto"] = source(REMOVED, "gcc", ".c", "-g", "-O2", "-flto", names="^(part|all)_", choose="*_*", least=0)
    cases["c.gcc-slow"] = source(C_SOURCE, "gcc", ".c", "-g", "-O2", least=0.96, choose="take_*", TRACER_CALLSITES="1")
    cases["cpp.gcc-types"] = source(CPP_SOURCE, "gcc", ".cpp", "-g", "-std=c++17", "-O0", "-fdebug-types-section")
    if build.ARCHITECTURE == "aarch64":
        return [Prototypes(f"debug_prototypes.values.{name}", check) for name, check in cases.items() if "gcc" in name]
    cases["rust.0"], cases["rust.1"], cases["rust.3"] = rust(0, 1), rust(1, 0.7), rust(3, 0.7)
    cases["swift-Onone"], cases["swift-O"] = swift("-Onone", 0.97), swift("-O", 0.6)
    return [Prototypes(f"debug_prototypes.values.{name}", check) for name, check in cases.items()] + suite.tests_of(__name__, Prototypes)
