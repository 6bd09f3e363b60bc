#!/usr/bin/env python3
"""How often the lab is right: regressions of random kinds must be named first, and unchanged programs must not
raise an alarm. The figures of docs/measurements/launch-lab.md come from here.

    Tests/LaunchTests/trials.py --planted 20 --refused 20 --items 20 --unchanged 200
"""
import argparse
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


class Lab:
    def __init__(self, scratch, runs, seed):
        self.scratch, self.runs, self.seed = scratch, str(runs), seed

    def tool(self, *words, statuses=(0,)):
        done = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=600)
        if done.returncode not in statuses:
            sys.exit(f"{words[0]} failed: {done.stderr}")
        return done

    def accepted(self, name):
        """Returns a baseline of the program as it is, and the program."""
        baseline, before = os.path.join(self.scratch, name + ".json"), subject.build(os.path.join(self.scratch, name))
        self.tool("baseline", "-n", "30", "-o", baseline, "--", before)
        return baseline, before

    def check(self, baseline, after):
        """Returns whether the gate refuses `after`, its verdict, and its messages."""
        done = self.tool("check", "-n", self.runs, "--format", "json", baseline, "--", after, statuses=(0, 1))
        return done.returncode == 1, json.loads(done.stdout), done.stderr.strip()

    def trials(self, count, kinds, build, longest, judge, said):
        """Builds a variant of a random kind each time; `judge` says whether what the lab found is right, and what it found."""
        chance, right = random.Random(self.seed), 0
        for trial in range(count):
            kind = chance.choice(sorted(kinds))
            after, expected = build(os.path.join(self.scratch, f"after{trial}"), kind, chance.randint(2000, longest))
            is_right, found = judge(after, expected)
            right += is_right
            print(f"{'right' if is_right else 'WRONG'}  {kind}: {found}", flush=True)
            shutil.rmtree(os.path.dirname(after))
        print(f"{said[0]}: {right} of {count} {said[1]}")
        return right == count

    def planted(self, count):
        before = subject.build(os.path.join(self.scratch, "before"))

        def judge(after, expected):
            words = ["-n", self.runs, "--untraced-every", "0", "--history", "", "--json", "--vs", before, "--", after]
            comparison = json.loads(self.tool("launch", *words).stdout)["comparison"]
            cause = first(comparison["causes"])
            share = f'{cause["share"]:.0%} of {comparison["difference_ns"] / 1e6:+.2f} ms, {cause["change"]}' if cause else "nothing"
            return named(cause) in expected, f"{named(cause) and ' '.join(named(cause))} ({share})"
        return self.trials(count, subject.REGRESSIONS, subject.planted, 7000, judge, ("planted regressions", "named first"))

    def refused(self, count):
        """The same regressions in front of the gate: it must refuse them, and name them first."""
        baseline, _ = self.accepted("accepted")

        def judge(after, expected):
            is_refused, verdict, complaint = self.check(baseline, after)
            return is_refused and named(first(verdict["causes"])) in expected, f"{first(verdict['because']) or 'let through'} {complaint}"
        return self.trials(count, subject.REGRESSIONS, subject.planted, 7000, judge, ("planted regressions", "refused and named first"))

    def items(self, count):
        """Start-up items that are new or slower, in front of the gate: it must find each by its name."""
        baseline, _ = self.accepted("items")

        def judge(after, expected):
            _, verdict, complaint = self.check(baseline, after)
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
            unjudged += "times are not checked" in done.stderr
        print(f"unchanged program: {alarms} false alarms in {count} checks ({alarms / count:.1%}); in {unjudged} the machine did not calm "
              "down and times were not judged")
        return alarms / count < 0.01


def first(found):
    return found[0] if found else None


def named(cause):
    return cause and (cause["kind"], cause["name"].split("@")[0])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = ("planted", "refused", "items", "unchanged")
    for kind in kinds:
        arguments.add_argument("--" + kind, type=int, default=0, metavar="TRIALS")
    arguments.add_argument("-n", "--runs", type=int, default=12, help="launches of each program in a trial")
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = arguments.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="tracer-trials-", ignore_cleanup_errors=True) as scratch:
        lab = Lab(scratch, options.runs, options.seed)
        results = [getattr(lab, kind)(getattr(options, kind)) for kind in kinds if getattr(options, kind)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
