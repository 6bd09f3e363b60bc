"""Members of what a function is given, chosen by path in a prototype (`handle(req->uri.len)`): what the program prints of them itself, against
`replay --json`; pointers on the way that lead nowhere; conditions on them; paths that lead nowhere."""
import json
import subprocess

import build
import harness
import suite
import text_values
from harness import expect

SOURCE = text_values.TEXTS + r"""
#define MEMBER(path) printf("%s\"" #path "\": ", comma), comma = ", "
struct text { size_t len; const char *data; };
enum kind { GET, POST = 7 };
struct connection { int fd; struct text peer; struct connection *next; double rate; };
struct request {
    char padding[40];
    struct text uri;
    const char *method;
    union { enum kind kind; int number; };
    struct connection *connection;
    unsigned short port;
    _Bool keep;
    int bits : 3;
    signed char priority;
    float share;
    const char *password;
};
APART int handle(int id, struct request *req, double x, struct request *const again) {
    BEGIN("handle") NUMBER(id), REAL(x);
    if (req) {
        MEMBER(req->uri.len), printf("%zu", req->uri.len), MEMBER(req->uri.data), string(req->uri.data, req->uri.len);
        MEMBER(req->method), req->method ? printf("\"%s\"", req->method) : printf("null");
        MEMBER(req->kind), printf("\"%s\"", req->kind == GET ? "GET" : "POST"), MEMBER(req->port), printf("%d", req->port), MEMBER(req->keep), printf("%d", req->keep);
        MEMBER(req->priority), printf("%d", req->priority), MEMBER(req->share), real(req->share), MEMBER(req->password), printf("{\"hidden\": true}");
    } else {
#define NOTHING(path) MEMBER(path), printf("{\"unreadable\": \"0x0\"}")
        NOTHING(req->uri.len), NOTHING(req->uri.data), NOTHING(req->method), NOTHING(req->kind), NOTHING(req->port), NOTHING(req->keep), NOTHING(req->priority), NOTHING(req->share);
        MEMBER(req->password), printf("{\"hidden\": true}");
    }
    if (again->connection) MEMBER(again->connection->fd), printf("%d", again->connection->fd); else NOTHING(again->connection->fd);
    if (again->connection && again->connection->next)
        MEMBER(again->connection->next->peer.len), printf("\"0x%zx\"", again->connection->next->peer.len), MEMBER(again->connection->next->rate), real(again->connection->next->rate);
    else
        NOTHING(again->connection->next->peer.len), NOTHING(again->connection->next->rate);
    END("%d", id);
    return id;
}
int main(void) {
    const char *const texts[] = {"", "/", "/index?of=all", "a longer path than the others, which has more than a few words"};
    for (int n = 0; n < 24; n++) {
        struct connection last = {n, {n + 1, "last"}, 0, n / 8.0}, *first = malloc(sizeof *first);
        *first = (struct connection){-n, {n, "first"}, n & 2 ? &last : 0, 1};
        struct request one = {{0}, {strlen(texts[n & 3]) / (1 + (n & 4) / 4), texts[n & 3]}, n & 1 ? "method" : 0, {n & 2 ? GET : POST}, n & 4 ? first : 0, (unsigned short)(n * 9999), n & 1, 0, (signed char)-n, n / 4.0f, "a secret of the program"};
        struct request *copied = malloc(sizeof one);
        *copied = one;
        handle(n, n % 5 == 4 ? 0 : n & 1 ? &one : copied, n / 2.0, copied);
        free(copied), free(first);
    }
    return 0;
}
"""
CHOSEN = ("handle(id, x, req->uri.len, req->uri.data: bytes[req->uri.len], req->method, req->kind, req->port, req->keep, req->priority, req->share, req->password, "
          "again->connection->fd, again->connection->next->peer.len: hex, again->connection->next->rate) -> int")
CPP_SOURCE = text_values.TEXTS + r"""
#include <memory>
#include <string>
#include <string_view>
#define MEMBER(path, text) printf("%s\"" path "\": ", comma), comma = ", ", string(text.data(), text.size())
struct base { long number; std::string name; };
struct request : base {
    std::string_view view;
    std::string *behind;
    std::unique_ptr<int> other;
    struct { long inner; };
    int serve(int n) const;
};
APART int request::serve(int n) const {
    BEGIN("request::serve") NUMBER(n), printf(", \"this->number\": %ld", number), MEMBER("this->name", name), END("%d", n);
    return n;
}
APART int handle(const request &req, request &&other, int n) {
    BEGIN("handle") NUMBER(n), printf(", \"req.number\": %ld", req.number), MEMBER("req.name", req.name), MEMBER("req.view", req.view), MEMBER("req.behind", (*req.behind)), printf(", \"other.inner\": %ld", other.inner), END("%d", n);
    return n;
}
int main() {
    int n = 0;
    for (std::string text : {"", "short", "exactly 15 byte", "a text of more than fifteen bytes"}) {
        request one, two;
        one.number = --n, one.name = text, one.view = std::string_view(one.name).substr(0, text.size() / 2), one.behind = &text, two.inner = n * 5;
        handle(one, std::move(two), n);
        one.serve(-n);
    }
    return 0;
}
"""


class Members(text_values.Texts):
    def compare_chosen(self, program, choice, names, **variables):
        harness.plan(self.settings, program, self.made)
        path, errors = self.plan(program, *(word for text in choice for word in ("--arguments", text)))
        expect(path, f"there is no plan: {errors}")
        run = self.execute([program], TRACER_ARGUMENTS=path, TRACER_FUNCTIONS="*", **variables)
        return self.judge_calls(run.stdout, self.calls(self.checked_trace().path, names), 1)


def source(compiler, optimization, **variables):
    def values_are_what_the_program_says(test):
        words = build.DRIVERS[compiler][".c"].split()
        program = test.compile("program", *words[1:], "-g", optimization, "-lm", source=SOURCE, compiler=words[0])
        return test.compare_chosen(program, [CHOSEN], "^handle$", **variables)
    return values_are_what_the_program_says


def classes(compiler, optimization):
    def values_are_what_the_program_says(test):
        words = build.DRIVERS[compiler][".cpp"].split()
        options = ["-g", "-std=c++17", optimization] + (["-fstandalone-debug"] if compiler == "clang" else [])
        program = test.compile("program", *words[1:], *options, source=CPP_SOURCE, compiler=words[0])
        names = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.split()
        handle, = {name for name in names if name.startswith("_Z6handle")}
        return test.compare_chosen(program, [f"{handle}(n, req.number, req.name, req.view, req.behind, other.inner) -> int", "_ZNK7request5serveEi(n, this->number, this->name) -> int"], "^handle|serve")
    return values_are_what_the_program_says


CONDITIONS = ["handle(req->uri.len > 3)", "handle(req->uri.len == 0)", "handle(req->uri.len != 0)", "handle(again->connection->fd < -5)", "handle(req->kind == POST)", "handle(req->method == NULL)",
              'handle(req->method ~ "eth")', 'handle(req->uri.data ~ "of")', "handle(req->priority < -3)", "handle(again->connection->next->peer.len >= 20)"]


def conditions_hold_for_them(test):
    """What --when records is what --where chooses. A pointer on the way that is NULL fulfils none."""
    program = test.compile("program", "-g", "-O1", "-lm", source=SOURCE)
    harness.plan(test.settings, program, test.made)
    whole = test.path("whole.trace")
    subprocess.run(["cp", test.recorded(program, "--arguments", CHOSEN), whole], check=True)
    sums = test.json("report", whole, "--by", "argument:req->uri.len", "--function", "handle")
    lengths = {call["req->uri.len"] for _, call, _ in test.calls(whole, "^handle$") if isinstance(call["req->uri.len"], int)}
    found = {row["value"] for row in sums["values"] if isinstance(row["value"], int)}
    expect(found == lengths and len(lengths) > 2, f"{sums}, not {lengths}")
    for condition in CONDITIONS:
        shown = [json.loads(line) for line in test.tool("replay", "--json", whole, "--where", condition).stdout.splitlines()]
        wanted = [call["arguments"] for call in shown if call["name"] == "handle"]
        found = [arguments for _, arguments, _ in test.calls(test.recorded(program, "--arguments", CHOSEN, "--when", condition), "^handle$")]
        expect(found == wanted and 0 < len(wanted) < 24, f"{condition}: {len(found)} calls, not {len(wanted)}: {found[:2]}")


def paths_that_lead_nowhere_are_refused(test):
    program = test.compile("program", "-g", "-O1", "-lm", source=SOURCE)
    for choice, wanted in (("handle(req->nothing)", "req has no member nothing"), ("handle(nobody->uri)", "handle has no parameter nobody"), ("handle(req.uri)", "req is a pointer: write ->"),
                           ("handle(req->uri->len)", "req->uri is no pointer"), ("handle(id->x)", "id is no pointer"), ("handle(req->bits)", "it is a bit-field"),
                           ("handle(req->port: string)", "cannot be recorded as string"), ("handle(req->uri.len: int)", "cannot be recorded as int"),
                           ("handle(req->method: bytes[req->port])", "cannot be recorded as bytes"), ("nobody(req->uri.len)", "nobody"), ("handle(req->)", "the name of a member is missing")):
        done = test.tool("record", "--force", "-o", test.path("a.trace"), "--arguments", choice, "--", program, status=2)
        expect(wanted in done.stderr, f"{choice}: {done.stderr}")
    test.write("prototypes", "handle(req->uri.len)\n")
    done = test.tool("record", "--force", "-o", test.path("a.trace"), "--prototypes", test.path("prototypes"), "--arguments", "handle", "--", program, status=2)
    expect("by --arguments alone" in done.stderr, done.stderr)
    stripped = test.compile("program", "-g0", "-O1", "-lm", source=SOURCE)
    done = test.tool("record", "--force", "-o", test.path("a.trace"), "--arguments", "handle(req->uri.len)", "--", stripped, status=2)
    expect("no debug information" in done.stderr, done.stderr)


MODES = {"slots": "*", "arm": "*gcc*"}


def tests():
    cases = {}
    for compiler in ("gcc", "clang"):
        for optimization in ("-O0", "-O2"):
            cases[f"c.{compiler}{optimization}"] = source(compiler, optimization)
            cases[f"cpp.{compiler}{optimization}"] = classes(compiler, optimization)
    cases["c.gcc-slow"] = source("gcc", "-O2", TRACER_CALLSITES="1")
    if build.ARCHITECTURE == "aarch64":
        return [Members(f"member_values.{name}", check) for name, check in cases.items() if "gcc" in name]
    return [Members(f"member_values.{name}", check) for name, check in cases.items()] + suite.tests_of(__name__, Members)
