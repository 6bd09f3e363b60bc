// A library whose constructors are C++'s.
struct Loud {
    Loud(int n) : n(n) {
        for (volatile int i = 0; i < 50000; i++) {}
        made += n;
    }
    ~Loud() { made -= n; }
    int n;
    static int made;
};
int Loud::made;
int plain = 7;
namespace inner { Loud first(1); }
Loud second(2);

struct Lazy {
    Lazy() { for (volatile int i = 0; i < 2000000; i++) {} }
    int value = 3;
};
extern "C" int lazy_value() {
    static Lazy lazy;
    return lazy.value + Loud::made;
}
