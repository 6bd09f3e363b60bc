"""The plan by which arguments and results of functions with built-in prototypes are recorded, made as `tracer record --arguments '*'` makes it."""
import os
import re
import subprocess

import harness


def made(tool, folder):
    """Its path, in a cache below `folder`: what the tool made for a program without debug information stands in the program's environment."""
    done = subprocess.run([tool, "record", "--quiet", "--no-states", "--no-files", "--arguments", "*", "-o", os.path.join(folder, "arguments"), "--", "env"],
                          capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": folder, "TRACER_CACHE": "on"})
    found = re.search(r"^TRACER_ARGUMENTS=(.*)$", done.stdout, re.M)
    if not found:
        raise harness.Failed(f"no plan of arguments was made: {done.stderr.strip()}")
    return found[1]
