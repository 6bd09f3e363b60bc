// A program whose work is in functions of its own, of which no call goes through a slot: two threads draw spheres that mirror each other.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#define OWN __attribute__((noinline, noclone))

struct Vector {
    double x, y, z;
    Vector operator+(const Vector &o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vector operator-(const Vector &o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vector operator*(double k) const { return {x * k, y * k, z * k}; }
    double dot(const Vector &o) const { return x * o.x + y * o.y + z * o.z; }
    Vector unit() const { return *this * (1 / std::sqrt(dot(*this))); }
};
struct Ray {
    Vector from, towards;
};
struct Hit {
    double distance;
    Vector at, normal;
    double mirror, shade;
};

struct Shape {
    virtual ~Shape() = default;
    virtual std::optional<Hit> hit(const Ray &ray) const = 0;
};
struct Sphere : Shape {
    Vector centre;
    double radius, mirror, shade;
    Sphere(Vector c, double r, double m, double s) : centre(c), radius(r), mirror(m), shade(s) {}
    OWN std::optional<Hit> hit(const Ray &ray) const override {
        Vector off = ray.from - centre;
        double b = off.dot(ray.towards), c = off.dot(off) - radius * radius, root = b * b - c;
        if (root < 0) return {};
        double distance = -b - std::sqrt(root);
        if (distance < 1e-6) return {};
        Vector at = ray.from + ray.towards * distance;
        return Hit{distance, at, (at - centre).unit(), mirror, shade};
    }
};
struct Floor : Shape {
    OWN std::optional<Hit> hit(const Ray &ray) const override {
        if (ray.towards.y > -1e-6) return {};
        double distance = -(ray.from.y + 1) / ray.towards.y;
        Vector at = ray.from + ray.towards * distance;
        bool isDark = (static_cast<long>(std::floor(at.x)) + static_cast<long>(std::floor(at.z))) & 1;
        return Hit{distance, at, {0, 1, 0}, 0.2, isDark ? 0.2 : 0.9};
    }
};

class Scene {
public:
    template <class T, class... Arguments> OWN void add(Arguments... arguments) { shapes.push_back(std::make_unique<T>(arguments...)); }
    OWN std::optional<Hit> nearest(const Ray &ray) const {
        std::optional<Hit> best;
        for (auto &shape : shapes)
            if (auto hit = shape->hit(ray); hit && (!best || hit->distance < best->distance)) best = hit;
        return best;
    }
    OWN double light(const Ray &ray, int bounces) const {
        auto hit = nearest(ray);
        if (!hit) return sky(ray);
        double direct = shade(*hit);
        if (bounces == 0 || hit->mirror == 0) return direct;
        Vector back = ray.towards - hit->normal * (2 * ray.towards.dot(hit->normal));
        return direct * (1 - hit->mirror) + hit->mirror * light({hit->at, back.unit()}, bounces - 1);
    }

private:
    OWN static double sky(const Ray &ray) { return 0.6 + 0.4 * ray.towards.y; }
    OWN double shade(const Hit &hit) const {
        Vector sun = Vector{-2, 4, -3}.unit();
        return nearest({hit.at + hit.normal * 1e-4, sun}) ? 0.1 * hit.shade : hit.shade * std::max(0.15, hit.normal.dot(sun));
    }
    std::vector<std::unique_ptr<Shape>> shapes;
};

OWN void arrange(Scene &scene) {
    scene.add<Floor>();
    for (int n = 0; n < 5; n++) scene.add<Sphere>(Vector{n * 1.2 - 2.4, 0.2 * n - 0.6, 3.0 + n % 2}, 0.6, 0.15 * n, 0.8);
}
struct Canvas {
    int width, height;
    std::vector<std::string> lines = std::vector<std::string>(height);
};
OWN void draw_row(const Scene &scene, Canvas &canvas, int row) {
    int width = canvas.width;
    for (int column = 0; column < width; column++) {
        Vector towards{(column - width / 2) / (width * 0.5), 0.5 - row / 14.0, 1.4};
        canvas.lines[row] += " .:-=+*#%@"[std::clamp(static_cast<int>(scene.light({{0, 0.3, -1}, towards.unit()}, 3) * 10), 0, 9)];
    }
}
OWN void draw(const Scene &scene, Canvas &canvas, int from, int to) {
    for (int row = from; row < to; row++) draw_row(scene, canvas, row);
}
OWN void print(const Canvas &canvas) {
    for (auto &line : canvas.lines) std::puts(line.c_str());
}

int main() {
    Scene scene;
    arrange(scene);
    Canvas canvas{48, 24};
    std::thread lower([&] { draw(scene, canvas, 15, 24); });
    draw(scene, canvas, 0, 15);
    lower.join();
    print(canvas);
}
