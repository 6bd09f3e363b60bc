#pragma once
#include <string>

namespace shapes {

struct Shape {
    explicit Shape(int id) : id(id) {}
    virtual ~Shape() {}
    virtual double area() const = 0;
    virtual std::string name() const { return "shape"; }
    int id;
};

template <class T> T twice(T value) { return value + value; }

Shape *made(const char *name);
double sum(int argc, char **argv);
int tried(int value);

}
