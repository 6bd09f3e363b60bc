"""A case of a subject: it runs bare, then under the agent; stdout, stderr and status must be the same.

The recorded calls are compared with golden/NAME.tree (golden.py says how to read one), with the counts that the subject itself kept
(SUBJECT_COUNTS), and with what `tracer report --json` says. build.py describes the header of a subject.
"""
import os
import re

import build
import golden
import harness
import suite
from harness import Failed, Skipped, expect


class SubjectTest(suite.Test):
    checks_bare = True

    def __init__(self, case):
        super().__init__(case.name, None)
        self.case = case

    def prepare(self):
        if reason := build.missing(self.case, harness.cpu_flags()):
            raise Skipped(reason)
        self.expected = self.golden()
        try:
            self.program = build.build(self.case)
        except build.BuildFailed as failure:
            lacking = re.search(r"cannot find (-l\S+)|cannot open \S*(libclang_rt\S+?)[:,]", str(failure))
            if harness.EMULATOR and lacking:
                raise Skipped(f"no {lacking[1] or lacking[2]} for {build.ARCHITECTURE}")
            raise Failed(f"does not build: {failure}")

    def golden(self):
        case, name = self.case, self.case.subject.name
        for name in (case.name, f"{name}.{case.compiler}", f"{name}.{case.case}", name):
            path = os.path.join(build.GOLDEN, name + ".tree")
            if os.path.exists(path):
                try:
                    return golden.parse(suite.read(path))
                except ValueError as error:
                    raise Failed(f"{name}.tree: {error}")
        if case.subject.all("tree") or case.subject.all("untraced"):
            return golden.Golden()
        raise Failed("no golden file, and no `tree: none` with a reason")

    def judge(self):
        case, subject, settings, directory = self.case, self.case.subject, self.settings, self.directory
        words = subject.get("status", "0").split()
        status = -int(words[1]) if words[0] == "signal" else int(words[0])
        environment = self.environment(**{k: v.replace("{build}", case.folder) for k, v in case.environment.items()})
        options = dict(timeout=float(subject.get("timeout", harness.HANGS)),
                       memory=0 if subject.get("memory") == "unlimited" or settings.counts else 16 * harness.GIGABYTE)
        argv = [self.program] + [a.replace("{build}", case.folder) for a in case.arguments]
        preload = subject.get("preload", "@").replace("{build}", case.folder)
        others = preload.replace("@", "").split()
        bare_environment = {**environment, "LD_PRELOAD": " ".join(others)} if others else environment
        try:
            bare = harness.execute(argv, directory.fresh(), bare_environment, **options)
        except Failed:
            if not harness.EMULATOR:
                raise
            raise Skipped("the program alone does not end under the emulator")
        if bare.status != status and (harness.EMULATOR or settings.instrumented):
            raise Skipped(f"the program alone does not run {'under the emulator' if harness.EMULATOR else 'when it is instrumented'}: {harness.describe(bare.status)}")
        expect(bare.status == status, f"bare: {harness.describe(bare.status)}, expected {harness.describe(status)}\n"
               + (bare.stdout[-400:] + bare.stderr[-800:]).decode(errors="replace"))
        if settings.bare_only:
            return
        if settings.functions:
            harness.plan(settings, self.program, case.folder)
        traced = harness.execute(argv, directory.fresh(), harness.traced_environment(settings, environment, directory, preload),
                                 **options)
        stopped = subject.all("says") and harness.without_agents_lines(traced, int(subject.get("says").split()[0]))
        faults = harness.same(bare, traced)
        traces, wrong = harness.check_traces(settings, directory, lambda path: path.startswith(case.folder + "/"), drops=stopped or bool(subject.all("unsaid")),
                                            disorder=build.is_meant(case, "disorder"))
        faults += wrong
        if subject.all("untraced"):
            if traces:
                faults.append(f"{len(traces)} traces, none expected")
        elif not traces:
            faults.append("no trace was written")
        elif settings.instrumented:
            if not any(trace.addressed for trace in traces):
                faults.append("no function was recorded by its instrumentation")
        elif settings.functions:  # a way that patches nothing would pass all else
            if not any(patched for trace in traces for _, patched in trace.patched.values()):
                faults.append("no function was recorded by itself")
        else:  # the trees are of calls through slots
            for name, (low, high) in traced.counts.items():
                if ":" in name:  # a time, of the clock whose rate the trace states to one part in a thousand
                    recorded = golden.initializer_times(traces[0], name)
                    low, high = low * 0.999, high * 1.001
                elif name.endswith("+dropped"):  # calls of the functions, recorded or only counted; calls of others may be among the latter
                    recorded = sum(t.count(part) for t in traces for part in name.split("+")[:-1])
                    recorded += sum(t.dropped + t.filtered_by_time for t in traces)
                    high += 1000
                else:
                    recorded = sum(t.count(name) for t in traces)
                if not low <= recorded <= high:
                    faults.append(f"{name}: called {low}{'' if low == high else f' to {high}'} times, recorded {recorded}")
            if bare.counts.keys() != traced.counts.keys():
                faults.append(f"counts of {sorted(bare.counts)} bare, of {sorted(traced.counts)} traced")
            faults += golden.compare(self.expected, traces)
        expect(not faults, "\n".join(faults))
