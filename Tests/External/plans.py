"""Plans of the modules that tests load: with one, the agent records every function of it."""
import collections
import os
import re
import subprocess

import sources
import tracefile  # in Tests/EndToEnd
from traces import recorded_functions  # in Tests/Compatibility

LOOKED_AT = 3  # traces of each program of one run: a test can start it a thousand times


class Plans:
    """A cache of plans for each user: the agent takes none that another user could have written."""

    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        self.tried = collections.defaultdict(set)  # user: modules, also those that cannot be planned
        self.recorded = 0  # most functions that one process has recorded

    def cache(self, user):
        """The folder that a process of that user gets as XDG_CACHE_HOME."""
        path = os.path.join(self.folder, str(user))
        if not os.path.isdir(path):
            os.makedirs(path)
            os.chmod(path, 0o700)
            os.chown(path, user, -1)
        return path

    def learn(self, traces, user):
        """Makes the plans of what these traces name and no plan was tried for; are there new ones?"""
        modules = set()
        for path in chosen(traces):
            modules |= {module for module in self.modules(path) if module.startswith("/")}
        new = sorted(module for module in modules - self.tried[user] if os.path.isfile(module))
        self.tried[user] |= set(new)
        # One at a time where one of them fails: what cannot be planned is none of the others' business.
        return bool(new) and (self.make(new, user) or any([self.make([module], user) for module in new]))

    def modules(self, path):
        try:
            trace = tracefile.Trace(path)
        except (tracefile.Damaged, OSError):
            return set()  # its process was killed as it began
        self.recorded = max(self.recorded, recorded_functions(path, self.tool))
        return {module.path for module in trace.modules.values()}

    def make(self, modules, user):
        identity = dict(user=user, group=user, extra_groups=[]) if user != os.geteuid() else {}
        done = subprocess.run([self.tool, "plan", *modules], capture_output=True, stdin=subprocess.DEVNULL, timeout=900,
                              env={**sources.clean(), "XDG_CACHE_HOME": self.cache(user)}, **identity)
        return done.returncode == 0


def chosen(folder):
    """The largest traces of each program."""
    sizes = collections.defaultdict(list)
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        try:
            sizes[re.sub(r"\.\d.*", "", name)].append((os.stat(path).st_blocks, path))
        except OSError:
            pass  # its process is just ending
    return [path for found in sizes.values() for _, path in sorted(found, reverse=True)[:LOOKED_AT]]
