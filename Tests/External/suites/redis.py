"""Redis' tests of the installed server, file by file: it forks to save, has threads that free memory, and writes its own stack when it crashes."""
import os
import shutil

import said
from trial import Suite

TOOLS = ("server", "cli", "benchmark", "check-aof", "check-rdb")
# The files that have to do with processes, threads, signals, scripts and connections; the others try commands for minutes.
FILES = ("unit/printver unit/auth unit/protocol unit/keyspace unit/info unit/quit unit/shutdown unit/oom-score-adj unit/networking unit/introspection unit/introspection-2 "
         "unit/latency-monitor unit/multi unit/pubsub unit/slowlog unit/tracking unit/querybuf unit/limits unit/lazyfree unit/scripting unit/functions unit/acl-v2 unit/sort "
         "unit/other unit/aofrw unit/type/hash unit/type/list-2 integration/logging integration/shutdown integration/rdb integration/aof integration/aof-multi-part "
         "integration/convert-zipmap-hash-on-load integration/corrupt-dump integration/redis-cli integration/redis-benchmark integration/failover integration/replication-2 "
         "integration/dismiss-mem").split()


def tests(directory):
    source = os.path.join(directory.readable, "redis")
    shutil.copytree(os.path.join(directory.source, "tests"), os.path.join(source, "tests"), dirs_exist_ok=True)
    os.makedirs(os.path.join(source, "src"), exist_ok=True)
    for tool in TOOLS:
        if not os.path.lexists(os.path.join(source, "src/redis-" + tool)):
            os.symlink("/usr/bin/redis-" + tool, os.path.join(source, "src/redis-" + tool))
    for name in FILES:
        yield said.test(directory, "redis", name, ["sh", "-c", 'cp -r "$0"/* . && exec tclsh tests/test_helper.tcl --clients 1 --timeout 600 --single "$1"', source, name],
                        unprivileged=True, timeout=900)


suites = [Suite("redis", "Redis' own tests", (("/usr/bin/redis-server", "redis-server"), ("/usr/bin/redis-cli", "redis-tools"), ("tclsh", "tcl"), ("ps", "procps"),
                                              ("dpkg-source", "dpkg-dev")), tests, source="redis", version=("redis-server", "--version"))]
