"""Attaches to the processes of a run, one after the other and again and again, while it lasts."""
import collections
import os
import re
import subprocess
import threading

LENGTH = "200ms"
HANGS = 120  # seconds


class Attaching:
    def __init__(self, settings, processes, folder):
        """`processes` lists those that are there now. Their traces go to `folder`, the last one of each process stays."""
        self.settings, self.processes, self.folder = settings, processes, folder
        self.count, self.refusals, self.fault = 0, collections.Counter(), ""
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def work(self):
        while not self.over.is_set():
            pids = self.processes()
            if not pids:
                self.over.wait(0.01)
            for pid in pids:
                if not self.over.is_set() and not self.fault:
                    self.attach(pid)

    def attach(self, pid):
        command = [self.settings.tool, "attach", str(pid), "--quiet", "--force", "--for", LENGTH, "-o", os.path.join(self.folder, f"attached.{pid}.trace"),
                   *(["--functions", "*"] if self.settings.functions else [])]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANGS)
        except subprocess.TimeoutExpired:
            self.fault = f"attach {pid} did not end within {HANGS} s"
            return
        if done.returncode == 0:
            self.count += 1
        elif done.returncode > 0:
            self.refusals[re.sub(r"\d+", "N", (done.stderr.strip().splitlines() or ["nothing"])[-1])] += 1
        else:
            self.fault = f"attach {pid} was ended by signal {-done.returncode}: {done.stderr.strip()}"

    @property
    def said(self):
        return [f"attached {self.count} times"] + [f"{count} times not: {reason}" for reason, count in self.refusals.most_common()]
