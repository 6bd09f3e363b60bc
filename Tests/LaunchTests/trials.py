#!/usr/bin/env python3
"""How often the lab is right: regressions of random kinds must be named first, and unchanged programs must not
raise an alarm. The figures of docs/measurements/launch-lab.md come from here.

    Tests/LaunchTests/trials.py --planted 20 --refused 20 --items 20 --unchanged 200
    Tests/LaunchTests/trials.py --busy 8 --base 30000 --microseconds 5000 --refused 20 --unchanged 40 --bisected 10

With --busy the tool runs under nice(1), beside so many busy loops that are not nice; then a check may say that the machine is too noisy.
"""
import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import subject  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(subject.HERE))
TOOL = os.path.join(ROOT, ".build/release/tracer")


#: What a check says, as its status 2, of a machine on which it cannot tell.
TOO_NOISY = "too noisy"


class Lab:
    def __init__(self, scratch, options):
        self.scratch, self.runs, self.seed = scratch, str(options.runs), options.seed
        self.microseconds, self.base = options.microseconds, (f"-DBASE_MICROSECONDS={options.base}",)
        self.prefix = ["nice"] if options.busy else []

    def tool(self, *words, statuses=(0,), **more):
        done = subprocess.run([*self.prefix, TOOL, *words], capture_output=True, text=True, timeout=3600, **more)
        if done.returncode not in statuses and not (done.returncode == 2 and TOO_NOISY in done.stderr):
            sys.exit(f"{words[0]} failed with status {done.returncode}: {done.stderr}{done.stdout}")
        return done

    def accepted(self, name):
        """Returns a baseline of the program as it is, and the program."""
        baseline, before = os.path.join(self.scratch, name + ".json"), subject.build(os.path.join(self.scratch, name), self.base)
        print("baseline:", self.tool("baseline", "-n", "30", "-o", baseline, "--", before).stderr.strip(), flush=True)
        return baseline, before

    def check(self, baseline, after):
        """Returns the gate's status, its verdict if it has one, and its messages."""
        done = self.tool("check", "-n", self.runs, "--format", "json", baseline, "--", after, statuses=(0, 1))
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr.strip()

    def trials(self, count, kinds, build, longest, judge, said):
        """Builds a variant of a random kind each time; `judge` says whether what the lab found is right (None: it says that it
        cannot tell), and what it found."""
        chance, right, undecided = random.Random(self.seed), 0, 0
        for trial in range(count):
            kind = chance.choice(sorted(kinds))
            microseconds = self.microseconds or chance.randint(2000, longest)
            after, expected = build(os.path.join(self.scratch, f"after{trial}"), kind, microseconds, self.base)
            is_right, found = judge(after, expected)
            right += is_right is True
            undecided += is_right is None
            print(f"{'noisy' if is_right is None else 'right' if is_right else 'WRONG'}  {kind}: {found}", flush=True)
            shutil.rmtree(os.path.dirname(after))
        print(f"{said[0]}: {right} of {count} {said[1]}; in {undecided} the machine was too noisy to tell", flush=True)
        return right + undecided == count

    def planted(self, count):
        before = subject.build(os.path.join(self.scratch, "before"), self.base)

        def judge(after, expected):
            words = ["-n", self.runs, "--untraced-every", "0", "--history", "", "--json", "--vs", before, "--", after]
            done = self.tool("launch", *words)
            if done.returncode:
                return None, done.stderr.strip()
            comparison = json.loads(done.stdout)["comparison"]
            cause = first(comparison["causes"])
            share = f'{cause["share"]:.0%} of {comparison["difference_ns"] / 1e6:+.2f} ms, {cause["change"]}' if cause else "nothing"
            return named(cause) in expected, f"{named(cause) and ' '.join(named(cause))} ({share})"
        return self.trials(count, subject.REGRESSIONS, subject.planted, 7000, judge, ("planted regressions", "named first"))

    def refused(self, count):
        """The same regressions in front of the gate: it must refuse them, and name them first."""
        baseline, _ = self.accepted("accepted")

        def judge(after, expected):
            status, verdict, complaint = self.check(baseline, after)
            if status == 2:
                return None, complaint
            is_right = status == 1 and named(first(verdict["causes"])) in expected
            return is_right, f"{first(verdict['because']) or 'let through'} {complaint}"
        return self.trials(count, subject.REGRESSIONS, subject.planted, 7000, judge, ("planted regressions", "refused and named first"))

    def items(self, count):
        """Start-up items that are new or slower, in front of the gate: it must find each by its name."""
        baseline, _ = self.accepted("items")

        def judge(after, expected):
            status, verdict, complaint = self.check(baseline, after)
            if status == 2:
                return None, complaint
            found = [finding["message"] for finding in verdict["findings"] if (finding["rule"], finding["subject"]) == expected]
            return bool(found), f"{found or [finding['message'] for finding in verdict['findings']]} {complaint}"
        return self.trials(count, subject.ITEMS, subject.with_item, 15000, judge, ("start-up items", "found by name"))

    def unchanged(self, count):
        baseline, program = self.accepted("same")
        alarms, unjudged = 0, 0
        for trial in range(count):
            done = self.tool("check", "-n", self.runs, "--warm-up", "0", baseline, "--", program, statuses=(0, 1))
            if done.returncode == 1:
                alarms += 1
                print(f"false alarm in trial {trial}:\n{done.stdout}", flush=True)
            elif done.returncode == 2:
                unjudged += 1
                print(f"trial {trial}: {done.stderr.strip()}", flush=True)
        print(f"unchanged program: {alarms} false alarms in {count} checks ({alarms / count:.1%}); in {unjudged} the machine was too noisy to "
              "tell", flush=True)
        return alarms / count < 0.01

    def bisected(self, count):
        """A repository whose commits change nothing but one, which git bisect must name; or it must say that it cannot."""
        chance, right, undecided, commits = random.Random(self.seed), 0, 0, 8
        for trial in range(count):
            folder = os.path.join(self.scratch, f"repository{trial}")
            os.makedirs(folder)

            def git(*words, folder=folder):
                who = ["-c", "user.name=trials", "-c", "user.email=trials@localhost"]
                return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, timeout=3600).stdout

            git("init", "-q")
            kind, bad = chance.choice(sorted(subject.REGRESSIONS)), chance.randrange(2, commits)
            hashes = {}
            for number in range(commits):
                change = subject.REGRESSIONS[kind][0](self.microseconds or 5000) if number >= bad else []
                with open(os.path.join(folder, "flags"), "w", encoding="utf-8") as file:
                    file.write("\n".join([*self.base, *change, f"# {number}"]))
                git("add", "flags")
                git("commit", "-q", "-m", f"change {number}")
                hashes[number] = git("rev-parse", "HEAD").strip()
            git("checkout", "-q", hashes[0])
            build = f"{sys.executable} {os.path.join(subject.HERE, 'subject.py')} . flags"
            subprocess.run(build, shell=True, check=True, cwd=folder)
            baseline = os.path.join(self.scratch, f"good{trial}.json")
            self.tool("baseline", "-n", "30", "-o", baseline, "--", "./app", cwd=folder)
            git("bisect", "start", hashes[commits - 1], hashes[0])
            said = subprocess.run([*self.prefix, "git", "bisect", "run", TOOL, "bisect-step", "-n", self.runs, "--build", build, baseline, "--",
                                   "./app"], cwd=folder, capture_output=True, text=True, timeout=7200)
            named_bad = [line.split()[0] for line in said.stdout.splitlines() if line.endswith("is the first bad commit")]
            cannot = "skip" in said.stdout + said.stderr and not named_bad
            right += named_bad == [hashes[bad]]
            undecided += cannot
            print(f"{'right' if named_bad == [hashes[bad]] else 'noisy' if cannot else 'WRONG'}  {kind}: commit {bad} of {commits}"
                  + ("" if named_bad == [hashes[bad]] or cannot else f"\n{said.stdout}{said.stderr}"), flush=True)
            shutil.rmtree(folder)
        print(f"bisection: {right} of {count} planted commits named; in {undecided} it said that it could not tell", flush=True)
        return right + undecided == count


@contextlib.contextmanager
def busy_loops(count):
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def first(found):
    return found[0] if found else None


def named(cause):
    return cause and (cause["kind"], cause["name"].split("@")[0])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = ("planted", "refused", "items", "unchanged", "bisected")
    for kind in kinds:
        arguments.add_argument("--" + kind, type=int, default=0, metavar="TRIALS")
    arguments.add_argument("-n", "--runs", type=int, default=12, help="launches of each program in a trial")
    arguments.add_argument("--busy", type=int, default=0, metavar="N", help="beside N busy loops, and under nice")
    arguments.add_argument("--base", type=int, default=0, metavar="US", help="microseconds of CPU time that the program takes besides")
    arguments.add_argument("--microseconds", type=int, default=0, metavar="US", help="size of each regression; 0: random")
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = arguments.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="tracer-trials-", ignore_cleanup_errors=True) as scratch, busy_loops(options.busy):
        lab = Lab(scratch, options)
        results = [getattr(lab, kind)(getattr(options, kind)) for kind in kinds if getattr(options, kind)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
