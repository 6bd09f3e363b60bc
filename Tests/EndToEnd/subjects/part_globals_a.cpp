struct A {
    int value;
    A() : value(7) { __asm__ volatile("" ::: "memory"); }
};
static A &single() {
    static A a;
    return a;
}
int a_value() { return single().value; }
static int of_a = a_value();
int *unused_a = &of_a;
