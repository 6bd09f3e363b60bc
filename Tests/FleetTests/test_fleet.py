"""Runs the statements of docs/guide/fleet.md, as they stand there, on ClickHouse (embedded: chdb) and on DuckDB, over what
`tracer history export` writes of a history that is made here; the answers are worked out here, too.

The two databases come from PyPI into a folder of their own, once: $TRACER_FLEET_VENV or ~/.cache/tracer/fleet.
"""
import datetime
import fcntl
import functools
import json
import os
import re
import statistics
import subprocess
import sys

import pytest
from launch_history import emptied, insert
from recorded_programs import ROOT, tracer

VENV = os.environ.get("TRACER_FLEET_VENV") or os.path.expanduser("~/.cache/tracer/fleet")
STAGES = ["launch", "exec → loader", "constructors of libraries", "main → ready"]

# The Python of that folder runs these: statements come in, the rows of those that have a name go out.
ASK = {"clickhouse": """
import chdb.session, json, os, sys
session = chdb.session.Session(os.path.abspath("clickhouse"))
answers = {}
for kind, statement in json.load(sys.stdin):
    statement = statement.replace("file('startup", f"file('{os.getcwd()}/startup").rstrip().rstrip(";")
    result = session.query(statement, "JSONEachRow")
    if kind:
        answers[kind] = [json.loads(line) for line in str(result).splitlines()]
session.close()
print(json.dumps(answers))
""", "duckdb": """
import duckdb, json, sys
database = duckdb.connect()
answers = {}
for kind, statement in json.load(sys.stdin):
    result = database.execute(statement)
    if kind:
        names = [column[0] for column in result.description]
        answers[kind] = [dict(zip(names, row)) for row in result.fetchall()]
print(json.dumps(answers, default=str))
"""}


@functools.cache
def python_of_databases():
    """Returns a Python that has both databases, or None if pip cannot install them. One process installs, the others wait for it."""
    python = os.path.join(VENV, "bin/python")
    os.makedirs(os.path.dirname(VENV), exist_ok=True)
    with open(VENV + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(python) and subprocess.run([python, "-c", "import chdb, duckdb"], stderr=subprocess.DEVNULL).returncode == 0:
            return python
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)  # 1 GB
        done = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "chdb", "duckdb"], timeout=1800)
        return python if done.returncode == 0 else None


def statements(database):
    text = open(os.path.join(ROOT, "docs/guide/fleet.md"), encoding="utf-8").read()
    return [(kind.strip() or None, body) for kind, body in re.findall(r"```sql " + database + r"([^\n]*)\n(.*?)```", text, re.S)]


def make_history(path):
    """An empty database from the tool itself, then series of two builds on three machines, and cold ones beside them."""
    database = emptied(path)
    rows = []
    number = 0
    for build, commit, day, factor in [("b1", "aaaa", 1, 1.0), ("b2", "bbbb", 2, 1.5)]:
        for host in ["anna", "berta", "carl"]:
            for settings in ["", "--cold"]:
                number += 1
                time = datetime.datetime(2026, 1, day, number % 24, tzinfo=datetime.timezone.utc).timestamp()
                insert(database, "series", id=number, time=time, host=host, machine="Xeon, \"big\"", program="app", command="./app --serve",
                       build=build, revision=commit, settings=settings, ready="first listen", runs=20, disturbed=0, libraries=3, relocations=100,
                       minor_faults=5, major_faults=0, overhead_ns=None if host == "carl" else 1e5)
                for position, stage in enumerate(STAGES):
                    grows = factor if stage in ("launch", "main → ready") else 1.0
                    p50 = 1e6 * (position + 1) * grows * (3 if settings else 1) + 1000 * number
                    insert(database, "stage", series=number, position=position, name=stage, p50_ns=p50, p90_ns=p50 * 1.1, p95_ns=p50 * 1.2,
                           spread_ns=p50 * 0.1)
                    rows.append(dict(build=build, host=host, settings=settings, stage=stage, p50=p50, p95=p50 * 1.2))
    database.commit()
    return rows


def expected(rows):
    percentiles, regressions = [], []
    for build in ["b1", "b2"]:
        launches = [row for row in rows if row["build"] == build and row["stage"] == "launch" and not row["settings"]]
        medians = sorted(row["p50"] for row in launches)
        p90 = medians[1] + (medians[2] - medians[1]) * 0.8
        percentiles.append(("app", build, 3, 3, round(statistics.median(medians) / 1e6, 3), round(p90 / 1e6, 3),
                            round(max(row["p95"] for row in launches) / 1e6, 3)))
    for stage in STAGES[1:]:
        median = {build: statistics.median(row["p50"] for row in rows if row["build"] == build and row["stage"] == stage) for build in ["b1", "b2"]}
        if median["b2"] > median["b1"]:
            regressions.append(("app", stage, round((median["b2"] - median["b1"]) / 1e6, 3)))
    return percentiles, sorted(regressions, key=lambda row: -row[2])


@pytest.mark.parametrize("name", ["clickhouse", "duckdb"])
def test_statements(name, tmp_path):
    python = python_of_databases()
    if not python:
        pytest.skip(f"pip cannot install chdb and duckdb into {VENV} (no network?)")
    rows = make_history(os.path.join(tmp_path, "history.sqlite"))
    for format in ("ndjson", "csv"):
        exported = tracer("history", "export", "--history", "history.sqlite", "--format", format, folder=tmp_path).stdout
        (tmp_path / f"startup.{format}").write_text(exported, encoding="utf-8")
    done = subprocess.run([python, "-c", ASK[name]], cwd=tmp_path, input=json.dumps(statements(name)), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    percentiles, regressions = expected(rows)
    got = [(r["program"], r["build"], int(r["hosts"]), int(r["series"]), float(r["p50_ms"]), float(r["p90_ms"]), float(r["worst_p95_ms"]))
           for r in answers["percentiles"]]
    assert [g[:4] for g in got] == [p[:4] for p in percentiles]
    for g, p in zip(got, percentiles):
        assert g[4:] == pytest.approx(p[4:], abs=0.002)
    got = [(r["program"], r["stage"], float(r["slower_ms"])) for r in answers["regressions"]]
    assert [g[:2] for g in got] == [r[:2] for r in regressions]
    assert [g[2] for g in got] == pytest.approx([r[2] for r in regressions], abs=0.002)
