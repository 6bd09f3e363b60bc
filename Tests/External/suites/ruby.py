"""Ruby's bundled C extensions while every allocation collects, and one of ours that makes many strings."""
import os
import shutil

from sources import printed
from trial import Suite, Test

NAMES = ("bigdecimal cgi/escape continuation coverage date digest erb/escape etc fiddle io/console io/nonblock io/wait json monitor nkf objspace openssl pathname "
         "psych pty rbconfig/sizeof readline ripper socket stringio strscan syslog zlib").split()
HEADERS = printed("ruby", "-rrbconfig", "-e", "puts RbConfig::CONFIG.values_at('rubyhdrdir', 'rubyarchhdrdir')") if shutil.which("ruby") else ""


def build(directory):
    shutil.copy(directory.program("ruby", "strings.c"), directory.folder)
    directory.run(["gcc", "-O2", "-fPIC", "-shared", *(f"-I{folder}" for folder in HEADERS.splitlines()), "strings.c", "-o", "strings.so"])


def tests(directory):
    for name in NAMES:
        yield Test(name, ["ruby", directory.program("ruby", "extensions.rb"), name], output=True, timeout=180,
                   cannot_run=lambda run: "it is not there" if run.outcomes and "status 77" in next(iter(run.outcomes.values())) else "")
    yield Test("an extension's strings", ["ruby", "-r" + os.path.join(directory.folder, "strings.so"), "-e", "GC.stress = true; puts Strings.kept(200)"], output=True, timeout=180)


suites = [Suite("ruby", "Ruby's C extensions under GC.stress", (
    ("ruby", "ruby"), ("gcc", "gcc"), ((HEADERS.splitlines() or ["/usr/include/ruby-*"])[0] + "/ruby.h", "ruby-dev")), tests, build, programs="ruby/*",
    version=("ruby", "-e", "puts RUBY_VERSION"))]
