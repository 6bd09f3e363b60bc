"""Attaches to the processes of a run, one after the other and again and again, while it lasts."""
import collections
import os
import re
import subprocess
import threading

LENGTH = "200ms"
HANGS = 120  # seconds
AT_ONCE = 3


class Attaching:
    def __init__(self, tool, processes, folder, options=()):
        """`processes` lists those that are there now. Their traces go to `folder`, the last one of each process stays."""
        self.tool, self.processes, self.folder, self.options = tool, processes, folder, options
        self.count, self.refusals, self.fault = 0, collections.Counter(), ""
        self.over, self.lock = threading.Event(), threading.Lock()
        self.attempts, self.busy = collections.Counter(), set()
        # Several, since one may have to wait long for a process that waits for another.
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(AT_ONCE)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def work(self):
        while not self.over.is_set() and not self.fault:
            pid = self.take()
            if not pid:
                self.over.wait(0.01)
                continue
            self.attach(pid)
            with self.lock:
                self.busy.discard(pid)

    def take(self):
        """The one that was attached to least often, of several the newest."""
        with self.lock:
            pid = min(set(self.processes()) - self.busy, key=lambda pid: (self.attempts[pid], -pid), default=0)
            if pid:
                self.busy.add(pid)
                self.attempts[pid] += 1
            return pid

    def attach(self, pid):
        command = [self.tool, "attach", str(pid), "--quiet", "--force", "--for", LENGTH, "-o", os.path.join(self.folder, f"attached.{pid}.trace"), *self.options]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANGS)
        except subprocess.TimeoutExpired:
            self.fault = f"attach {pid} did not end within {HANGS} s"
            return
        if done.returncode < 0:
            self.fault = f"attach {pid} was ended by signal {-done.returncode}: {done.stderr.strip()}"
            return
        with self.lock:
            if done.returncode == 0:
                self.count += 1
                return
            self.refusals[re.sub(r"\d+", "N", (done.stderr.strip().splitlines() or ["nothing"])[-1])] += 1

    @property
    def said(self):
        return [f"attached {self.count} times"] + [f"{count} times not: {reason}" for reason, count in self.refusals.most_common()]


def descendants(pid):
    """Ids of the processes that it has started, and that these have."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = [int(word) for word in file.read().split()]
    except OSError:
        return []
    return children + [each for child in children for each in descendants(child)]
