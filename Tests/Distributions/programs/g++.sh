# packages: g++
# records: main cc1plus
# needs: g++
# status: 134
# version: g++ -dumpfullversion
# timeout: 300
cat >main.cpp <<'END'
#include <algorithm>
#include <chrono>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
struct shape { virtual ~shape() = default; virtual double area() const = 0; };
struct square : shape { double side; explicit square(double s) : side(s) {} double area() const override { return side * side; } };
int half(int n) { if (n % 2) throw std::invalid_argument("odd " + std::to_string(n)); return n / 2; }
int main() {
    std::map<std::string, int> counts;
    std::istringstream words("a b c a b a");
    for (std::string word; words >> word;) counts[word]++;
    for (auto &[word, count] : counts) std::cout << word << '=' << count << ' ';
    std::vector<std::unique_ptr<shape>> shapes;
    for (int i = 1; i <= 10; i++) shapes.push_back(std::make_unique<square>(i));
    double sum = 0;
    for (auto &s : shapes) sum += s->area();
    std::cout << sum << '\n';
    try { std::cout << half(4) << ' ' << half(3); } catch (const std::exception &e) { std::cout << e.what() << '\n'; }
    std::vector<std::future<int>> parts;
    for (int i = 0; i < 4; i++) parts.push_back(std::async(std::launch::async, [i] { int n = 0; for (int k = 0; k < 1000 * i; k++) n += k % 7; return n; }));
    for (auto &part : parts) std::cout << part.get() << ' ';
    auto failed = std::async(std::launch::async, [] { return half(5); });
    try { failed.get(); } catch (const std::invalid_argument &e) { std::cout << e.what() << '\n'; }
    std::cout << std::regex_replace(std::string("some text here"), std::regex("(\\w+) (\\w+)"), "$2 $1") << std::endl;
    std::vector<int>().at(2);
}
END
g++ -O1 -std=c++17 main.cpp -o main -pthread
./main
