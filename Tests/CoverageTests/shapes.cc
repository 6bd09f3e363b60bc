// A class of which one kind is made at each run, functions that only such call as nobody calls, static ones of one name in two files.
#include "shapes.hh"
#include <cstring>
#include <memory>
#include <stdexcept>

namespace shapes {

static int helper(int value) { return value + 1; }

namespace {
struct Square : Shape {
    explicit Square(double side) : Shape(4), side(side) {}
    double area() const override { return side * side; }
    std::string name() const override { return "square"; }
    double side;
};

struct Circle : Shape {
    explicit Circle(double radius) : Shape(0), radius(radius) {}
    double area() const override { return 3 * radius * radius; }
    double radius;
};

int count(int value) { return value < 2 ? 1 : count(value - 1) + count(value - 2); }
}

Shape *made(const char *name) {
    if (strcmp(name, "square") == 0) return new Square(2);
    if (strcmp(name, "circle") == 0) return new Circle(1);
    throw std::invalid_argument(name);
}

static int innermost(int value) { return helper(value) * 3; }
static int inner(int value) { return innermost(value) + 1; }
int forgotten(int value) { return inner(value) + innermost(value); }

double sum(int argc, char **argv) {
    double all = count(argc + 5);
    for (int n = 1; n < argc; n++) {
        try {
            std::unique_ptr<Shape> shape(made(argv[n]));
            all += shape->area() + shape->name().size();
        } catch (const std::exception &) {
            all += tried(n);
        }
    }
    if (argc > 9) all += forgotten(argc) + twice(1.5);
    return all + twice(argc);
}

}
