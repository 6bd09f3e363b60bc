// The same in C++, the runner too; items in namespaces.
// compilers: gcc clang
// build: -Wno-deprecated -Wl,--no-as-needed -I{source}/../../../CSupport/include -Wall -Wextra -Wshadow -Wconversion -Werror -pedantic
// sources: part_startup_items.c ../../../Sources/Program/CTracerAPI/tracer_startup.c
// library: first=startup_items.c
// library: second=startup_items.c
// variant: O0 exe:-std=c++17 -O0
// variant: sections exe:-std=c++17 -O2 -ffunction-sections -fdata-sections -Wl,--gc-sections
// variant: lto@gcc exe:-std=c++17 -O2 -flto -Wl,--gc-sections
// variant: lto@clang exe:-std=c++17 -O2 -flto -fuse-ld=lld -Wl,--gc-sections
// case: order order
// case: many many
// tree: none as of startup_items
#include "part_startup_items.h"
#include <vector>

namespace fonts {
static std::vector<int> sizes{1, 2, 3};
TRACER_STARTUP_ITEM(1, last, first_early, shared) { say(sizes.size() == 3 ? "last" : "too early"); }
} // namespace fonts
namespace {
TRACER_STARTUP_ITEM(1, unnamed, second) { say("unnamed"); }
} // namespace

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "many")) check_many();
    else {
        tracer_run_startup(1);
        CHECK(!strcmp(said, "other_file first_early shared_of_first shared_of_second last first_late second unnamed "));
    }
    puts("done");
    return 0;
}
