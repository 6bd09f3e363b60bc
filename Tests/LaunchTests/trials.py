#!/usr/bin/env python3
"""How often the lab is right: regressions of random kinds must be named first, and unchanged programs must not
raise an alarm. The figures of docs/launch-lab.md come from here.

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


def first_cause(before, after, runs):
    out = subprocess.run([TOOL, "launch", "-n", str(runs), "--untraced-every", "0", "--history", "", "--json", "--vs", before, "--", after],
                         check=True, capture_output=True, text=True, timeout=600).stdout
    comparison = json.loads(out)["comparison"]
    return comparison["causes"][0] if comparison["causes"] else None, comparison


def planted(scratch, trials, runs, seed):
    chance = random.Random(seed)
    before = subject.build(os.path.join(scratch, "before"))
    right = 0
    for trial in range(trials):
        kind = chance.choice(sorted(subject.REGRESSIONS))
        after, expected = subject.planted(os.path.join(scratch, f"after{trial}"), kind, chance.randint(2000, 7000))
        cause, comparison = first_cause(before, after, runs)
        named = cause and (cause["kind"], cause["name"].split("@")[0])
        ok = named in expected
        right += ok
        share = f'{cause["share"]:.0%} of {comparison["difference_ns"] / 1e6:+.2f} ms, {cause["change"]}' if cause else "nothing"
        print(f"{'right' if ok else 'WRONG'}  {kind}: {named and ' '.join(named)} ({share})", flush=True)
        shutil.rmtree(os.path.dirname(after))
    print(f"planted regressions: {right} of {trials} named first")
    return right == trials


def accepted(scratch, name):
    """A baseline of the program as it is."""
    baseline = os.path.join(scratch, name + ".json")
    before = subject.build(os.path.join(scratch, name))
    subprocess.run([TOOL, "baseline", "-n", "30", "-o", baseline, "--", before], check=True, timeout=600)
    return baseline


def check(baseline, after, runs):
    """Returns whether the gate refuses `after`, its verdict, and its messages."""
    done = subprocess.run([TOOL, "check", "-n", str(runs), "--format", "json", baseline, "--", after], capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 1):
        sys.exit(f"check failed: {done.stderr}")
    return done.returncode == 1, json.loads(done.stdout), done.stderr.strip()


def refused(scratch, trials, runs, seed):
    """The same regressions in front of the gate: it must refuse them, and name them first."""
    chance = random.Random(seed)
    baseline = accepted(scratch, "accepted")
    right = 0
    for trial in range(trials):
        kind = chance.choice(sorted(subject.REGRESSIONS))
        after, expected = subject.planted(os.path.join(scratch, f"refused{trial}"), kind, chance.randint(2000, 7000))
        is_refused, verdict, complaint = check(baseline, after, runs)
        cause = verdict["causes"][0] if verdict["causes"] else None
        ok = is_refused and cause is not None and (cause["kind"], cause["name"].split("@")[0]) in expected
        right += ok
        print(f"{'right' if ok else 'WRONG'}  {kind}: {verdict['because'][0] if verdict['because'] else 'let through'} {complaint}", flush=True)
        shutil.rmtree(os.path.dirname(after))
    print(f"planted regressions: {right} of {trials} refused and named first")
    return right == trials


def items(scratch, trials, runs, seed):
    """Start-up items that are new or slower, in front of the gate: it must find each by its name."""
    chance = random.Random(seed)
    baseline = accepted(scratch, "items")
    right = 0
    for trial in range(trials):
        kind = chance.choice(sorted(subject.ITEMS))
        after, expected = subject.with_item(os.path.join(scratch, f"item{trial}"), kind, chance.randint(2000, 15000))
        _, verdict, complaint = check(baseline, after, runs)
        findings = verdict["findings"]
        found = [finding["message"] for finding in findings if (finding["rule"], finding["subject"]) == expected]
        right += bool(found)
        print(f"{'right' if found else 'WRONG'}  {kind}: {found or [finding['message'] for finding in findings]} {complaint}", flush=True)
        shutil.rmtree(os.path.dirname(after))
    print(f"start-up items: {right} of {trials} found by name")
    return right == trials


def unchanged(scratch, trials, runs):
    program = subject.build(os.path.join(scratch, "same"))
    baseline = os.path.join(scratch, "startup.json")
    subprocess.run([TOOL, "baseline", "-n", "30", "-o", baseline, "--", program], check=True, timeout=600)
    alarms, unjudged = 0, 0
    for trial in range(trials):
        done = subprocess.run([TOOL, "check", "-n", str(runs), "--warm-up", "0", baseline, "--", program],
                              capture_output=True, text=True, timeout=600)
        if done.returncode == 1:
            alarms += 1
            print(f"false alarm in trial {trial}:\n{done.stdout}", flush=True)
        elif done.returncode != 0:
            sys.exit(f"check failed: {done.stderr}")
        unjudged += "times are not checked" in done.stderr
    print(f"unchanged program: {alarms} false alarms in {trials} checks ({alarms / trials:.1%}); in {unjudged} the machine did not calm down and times were not judged")
    return alarms / trials < 0.01


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--planted", type=int, default=0, metavar="TRIALS")
    arguments.add_argument("--refused", type=int, default=0, metavar="TRIALS")
    arguments.add_argument("--items", type=int, default=0, metavar="TRIALS")
    arguments.add_argument("--unchanged", type=int, default=0, metavar="TRIALS")
    arguments.add_argument("-n", "--runs", type=int, default=12, help="launches of each program in a trial")
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = arguments.parse_args()
    print(f"seed {options.seed}")
    scratch = tempfile.mkdtemp(prefix="tracer-trials-")
    try:
        fine = not options.planted or planted(scratch, options.planted, options.runs, options.seed)
        fine = (not options.refused or refused(scratch, options.refused, options.runs, options.seed)) and fine
        fine = (not options.items or items(scratch, options.items, options.runs, options.seed)) and fine
        fine = (not options.unchanged or unchanged(scratch, options.unchanged, options.runs)) and fine
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
