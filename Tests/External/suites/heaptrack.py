"""heaptrack beside the agent: what heaptrack_print says of programs that others wrote, each recorded by a preloaded malloc and by slots that heaptrack rebinds itself.

The programs are such as copy no environment, since the variables that the agent is asked by would be allocations of theirs, and as allocate the same
wherever their memory lies (apt-cache and threads of xz do not). The last digits of an address count, which are the same wherever a module lies.
"""
import os

from runs import filled
from sources import printed
from trial import Suite, Test

NUMBERS = "".join(f"{n * n % 1009} {n}\n" for n in range(3000))
CODE = "struct s { int a, b; };\n" + "".join(f"int f{n}(struct s *x) {{ for (int i = 0; i < x->a; i++) x->b += i * {n}; return x->b; }}\n" for n in range(5))
PROGRAMS = {
    "awk": ["awk", 'BEGIN { for (i = 0; i < 20000; i++) a[i] = i "x"; print length(a) }'],
    "sed": ["sed", "-E", "s/([0-9]+) ([0-9]+)/\\2 \\1/;H;$!d;x", "{files}/numbers"],
    "sort": ["sort", "-n", "--parallel=1", "{files}/numbers"],
    "grep": ["grep", "-E", "(1|22)+ .*7$", "{files}/numbers"],
    "diff": ["diff", "-r", "{files}", "{files}"],
    "find": ["find", "{files}", "-name", "*.c"],
    "tar": ["tar", "cf", "{tmp}/made.tar", "-C", "{files}", "."],
    "xz": ["xz", "-k", "-c", "{files}/numbers"],
    "sqlite3": ["sqlite3", ":memory:", "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<3000) insert into t select x, x*x%97 from c; "
                "select b, count(*), group_concat(a) from t group by b order by 2,1 limit 9;"],
    "jq": ["jq", "-n", "[range(2000) | {a: ., b: (. * 7 % 13)}] | group_by(.b) | map(length)"],
    "openssl": ["openssl", "dgst", "-sha256", "{files}/numbers"],
    "cc1": ["{cc1}", "-quiet", "-O1", "{files}/code.c", "-o", "{tmp}/code.s"],
    "as": ["as", "{files}/code.s", "-o", "{tmp}/code.o"],
    "objdump": ["objdump", "-d", "-l", "{files}/code.o"],
    "gold": ["ld.gold", "-shared", "{files}/code.o", "-o", "{tmp}/code.so"],
    "ld": ["ld", "-shared", "{files}/code.o", "-o", "{tmp}/code.so"],
}
PRINTED = r"s/0x[0-9a-f]+([0-9a-f]{3})\b/…\1/g; s/ \([0-9]+\/s\)//; /^(total runtime|peak RSS|reading file|Debuggee)/d"
NO_SLOTS = ("cc1",)  # heaptrack's walk over its symbols does not end
# Recordings are interpreted with other load addresses: heaptrack_interpret looks addresses up among its own modules, too, and those must
# not lie where the program's do.
SCRIPT = """setarch -R heaptrack -r -o {tmp}/found "$@" > {tmp}/said 2>&1 || { status=$?; cat {tmp}/said >&2; exit $status; }
zstd -dc {tmp}/found.raw.zst | /usr/lib/heaptrack/libexec/heaptrack_interpret > {tmp}/data
heaptrack_print -l 1 {tmp}/data | sed -E '""" + PRINTED + "'"


def build(directory):
    for name, text in (("numbers", NUMBERS), ("code.c", CODE)):
        os.makedirs(os.path.join(directory.folder, "files"), exist_ok=True)
        with open(os.path.join(directory.folder, "files", name), "w") as file:
            file.write(text)
    directory.run(["gcc", "-O2", "-g", "-S", "files/code.c", "-o", "files/code.s"])
    directory.run(["gcc", "-O2", "-g", "-fPIC", "-c", "files/code.c", "-o", "files/code.o"])


def tests(directory):
    fill = {"{files}": os.path.join(directory.folder, "files"), "{cc1}": printed("gcc", "-print-prog-name=cc1")}
    for way, option in (("preloaded", "--"), ("by its slots", "--use-inject")):
        for name, command in PROGRAMS.items():
            if way == "preloaded" or name not in NO_SLOTS:
                yield Test(f"{name}, {way}", ["sh", "-c", SCRIPT, "sh", option, *(filled(word, fill) for word in command)], output=True, timeout=600)


suites = [Suite("heaptrack", "heaptrack's accounts of other programs", (
    ("heaptrack", "heaptrack"), ("setarch", "util-linux"), ("gcc", "gcc"), ("as", "binutils"), ("sqlite3", "sqlite3"), ("jq", "jq"), ("xz", "xz-utils"),
    ("openssl", "openssl")), tests, build, version=("heaptrack", "--version"))]
