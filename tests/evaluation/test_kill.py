"""Killed in any stage, and between the writing of any two files: the same tables in the end, and nothing paid twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from ragworth.calls.store import Store
from tests.evaluation.samples import tables, workspace

ROOT = Path(__file__).parents[2]
BATCH = 4

# For every line of input, a process of its own evaluates a workspace, notes each call that is paid for, and kills
# itself at the moment that the line names. Everything is imported once.
SERVER = f"""
import os, signal, sys
from pathlib import Path
from ragworth.calls.serialization import call_key, model_digest
from ragworth.evaluation import model_pool, output, run, stage_cache
from ragworth.evaluation.stages import retrieve, score
from ragworth.llm.scripted import Scripted
from ragworth.report import page
from tests.evaluation.samples import said
from ragworth.results import results_record
from ragworth.core import file_record
from ragworth.core.file_record import FileRecord

passed = 0

def reached(name):
    global passed
    passed += name == moment
    if name == moment and passed == int(number):
        os.kill(os.getpid(), signal.SIGKILL)

def opened(spec="embedded", **options):
    def script(request):
        reached("call")
        log.write(call_key(model_digest(model.card), request).hex() + "\\n")
        return said(request)
    model = Scripted(script, batch={BATCH}, seconds=0.001)
    return model

def before(module, name, moment):
    really = getattr(module, name)
    def wrapped(*given, **more):
        reached(moment)
        return really(*given, **more)
    setattr(module, name, wrapped)

def after(module, name, moment):
    really = getattr(module, name)
    def wrapped(*given, **more):
        result = really(*given, **more)
        reached(moment)
        return result
    setattr(module, name, wrapped)

def report(results, path, **given):
    results_record(path.parent).write(path.name, b"half a report")
    reached("report")
    results_record(path.parent).write(path.name, b"a report")

model_pool.llm = opened
page.write = report
before(retrieve, "retrieve", "retrieve")
before(score, "score", "score")
before(stage_cache, "_save_stage", "keep")
before(FileRecord, "write", "table")
before(file_record, "open_output", "file")
before(file_record, "write_output", "file")
after(FileRecord, "save", "record")
before(output, "summarise", "summary")
for line in sys.stdin:
    moment, number, folder = line.split(maxsplit=2)
    if not (child := os.fork()):
        log = (Path(folder.strip()) / "paid.log").open("a", buffering=1)
        run.evaluate(folder.strip())
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

MOMENTS = [
    ("retrieve", 1),
    ("keep", 1),  # contexts are there, and not written
    ("call", 7),  # annotate
    ("call", 12),
    ("keep", 1),
    ("call", 3),  # answer
    ("keep", 2),  # grade, by words
    ("call", 2),  # grade, by the model
    ("score", 1),
    ("keep", 1),
    ("table", 1),
    ("table", 5),
    ("file", 1),  # nothing of the first table
    ("file", 2),  # the table is written beside its place, and the record does not name it
    ("record", 1),  # the record names it, and it is not in its place
    ("file", 9),
    ("record", 5),
    ("table", 14),  # the manifest
    ("summary", 1),
    ("report", 1),
]


class Evaluator:
    """Evaluates in processes of their own; says how each ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def __call__(self, folder: Path, moment: str = "never", number: int = 0) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{moment} {number} {folder}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@pytest.fixture
def evaluated() -> Iterator[Evaluator]:
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Evaluator(process)


def paid(folder: Path) -> list[str]:
    return (folder / "paid.log").read_text().split()


def kept(folder: Path) -> set[str]:
    if not (folder / "calls.sqlite").exists():
        return set()
    with Store(folder / "calls.sqlite") as store:
        return {key.hex() for (key,) in store.query("SELECT key FROM answers")}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there is no kill -9")
def test_killed_in_every_stage(tmp_path: Path, evaluated: Evaluator) -> None:
    folder = workspace(tmp_path / "killed")
    (folder / "paid.log").touch()
    for moment, number in MOMENTS:
        safe, before = kept(folder), len(paid(folder))
        assert evaluated(folder, moment, number) == -signal.SIGKILL, (moment, number)
        assert safe.isdisjoint(paid(folder)[before:]), moment
        assert safe <= kept(folder)
    safe, before = kept(folder), len(paid(folder))
    assert evaluated(folder) == 0
    assert paid(folder)[before:] == []  # by the last kill, everything had been asked
    whole = workspace(tmp_path / "whole")
    assert evaluated(whole) == 0
    assert kept(folder) == kept(whole)
    times = Counter(paid(folder))
    assert set(times) == set(paid(whole))
    # Only what was under way at a kill was paid for again.
    assert times.total() - len(times) <= BATCH * sum(moment == "call" for moment, _ in MOMENTS)

    mine, theirs = tables(folder / "results"), tables(whole / "results")
    assert mine.keys() == theirs.keys()
    assert len(mine) == 15
    assert [name for name in mine if not mine[name].equals(theirs[name])] == []
    assert (folder / "results" / "report.html").read_text() == "a report"
