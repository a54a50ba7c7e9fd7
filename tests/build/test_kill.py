"""Every command of ``ragworth build`` that asks a model, killed in each stage and at each file: it goes on, pays for
nothing twice, and writes what an unbroken run writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.build.any_role import ACCEPTED
from tests.build.crux_samples import TOPICS
from tests.build.samples import write_corpus

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL")]
ROOT = Path(__file__).parents[2]

# For every line of input, a process of its own runs a command and kills itself at the moment that the line names: in
# the n-th call of a stage, or when the n-th file is written in part or not yet in its place. The line of output has the
# exit code, the calls that were answered, and what was printed. What the first process imported, the next ones find.
SERVER = """
import importlib, io, json, os, pathlib, signal, sys
import polars as pl
import ragworth.llm
from ragworth.calls.serialization import call_key, model_digest
from ragworth.cli import main
from ragworth.llm.scripted import Scripted
from ragworth.core.file_record import RECORD_NAME
from tests.build.any_role import reply, stage_of

passed = 0

def reached(moment):
    global passed
    passed += moment == line["moment"]
    if moment == line["moment"] and passed == line["number"]:
        os.kill(os.getpid(), signal.SIGKILL)

def opened(spec, **options):
    def script(request):
        reached(stage_of(request))
        print("call", call_key(model_digest(model.card), request).hex(), file=log)
        return reply(request)
    model = Scripted(script, name=spec, batch=1)
    return model

def replace(part, path, really=pathlib.Path.replace):
    if path.name != RECORD_NAME:
        reached("file")  # its part is written
    return really(part, path)

def write_bytes(path, data, really=pathlib.Path.write_bytes):
    really(path, data[: len(data) // 2])
    reached("file")
    return really(path, data)

def through_bytes(really):
    def write(frame, file, **options):
        if not isinstance(file, pathlib.Path):
            return really(frame, file, **options)
        stream = io.BytesIO()
        really(frame, stream, **options)
        file.write_bytes(stream.getvalue())
    return write

ragworth.llm.llm = opened
pathlib.Path.replace = replace
pathlib.Path.write_bytes = write_bytes
pl.DataFrame.write_parquet = through_bytes(pl.DataFrame.write_parquet)
pl.DataFrame.write_csv = through_bytes(pl.DataFrame.write_csv)
for text in sys.stdin:
    line = json.loads(text)
    if not (child := os.fork()):
        log = open("log.txt", "w", buffering=1)
        sys.stdout = sys.stderr = open("said.txt", "w")
        try:
            main(line["arguments"])
        except SystemExit as end:
            sys.stdout.flush()
            for name in sorted(sys.modules):
                print("imported", name, file=log)
            os._exit(end.code or 0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    noted = [each.split(maxsplit=1) for each in pathlib.Path("log.txt").read_text().splitlines()]
    for name in (rest for kind, rest in noted if kind == "imported" and rest.startswith("ragworth.")):
        importlib.import_module(name)
    calls = [rest for kind, rest in noted if kind == "call"]
    print(json.dumps([code, calls, pathlib.Path("said.txt").read_text()]), flush=True)
"""


class Ended(NamedTuple):
    code: int
    calls: list[str]
    said: str


class Runner:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def __call__(self, arguments: list[str], moment: str = "never", number: int = 0) -> Ended:
        assert self.process.stdin is not None and self.process.stdout is not None
        line = {"arguments": arguments, "moment": moment, "number": number}
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        return Ended(*json.loads(self.process.stdout.readline()))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    pipe = subprocess.PIPE
    place = tmp_path_factory.mktemp("killed")
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths, "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, cwd=place, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        yield Runner(process)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """The input of all commands."""
    rows: dict[str, list[dict[str, Any]]] = {
        "topics.jsonl": [{"id": each.id, "documents": each.documents, "summary": each.summary} for each in TOPICS],
        "queries.jsonl": [{"_id": "q", "text": "Who built the mill?"}, {"_id": "r", "text": "When was it built?"}],
        "passages.jsonl": [{"_id": "a", "text": "Ann built the mill."}, {"_id": "b", "text": "It was built in 1901."}],
        "contexts.jsonl": [{"system": "s", "query": name, "passages": ["a", "b"]} for name in "qr"],
        "testset.jsonl": [
            {"user_input": f"Which year is meant by {name}?", "reference": ACCEPTED, "reference_contexts": [f"{name}."]}
            for name in ("Marrow mill", "Quill bridge")
        ],
        "nuggets.jsonl": [
            {
                "qid": "q",
                "query": "Who built the mill?",
                "nuggets": [{"text": name, "importance": "vital"} for name in ("Ann", "1901")],
            }
        ],
        "answers.jsonl": [{"system": name, "query": "q", "text": f"Ann of {name} built it."} for name in "st"],
    }
    for name, each in rows.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in each))
    write_corpus(tmp_path / "docs")
    (tmp_path / "plan.toml").write_text("[types]\nfact = 2\nunanswerable = 1\n[styles]\nquestion = 1\n")
    return tmp_path


COMMANDS = {
    "questions": (
        "questions {}/docs -o OUT --plan {}/plan.toml -n 3 --encoder none -M writer -M reader -M judge",
        ("write", "read", "judge"),
    ),
    "check": ("check {}/testset.jsonl -o OUT/findings.csv --encoder none -M reader -M judge", ("read", "judge")),
    "crux": (
        "crux {}/topics.jsonl -o OUT -n 3 -M writer -J judge",
        ("passages", "sub-questions", "request", "rate"),
    ),
    "pool": (
        "pool --queries {}/queries.jsonl -p {}/passages.jsonl --system bm25=bm25%20 --graded -M judge -o OUT",
        ("relevance",),
    ),
    "nuggets": (
        "nuggets {}/contexts.jsonl --queries {}/queries.jsonl -p {}/passages.jsonl -M writer -o OUT/nuggets.jsonl",
        ("nuggets", "importance"),
    ),
    "assign": (
        "assign {}/answers.jsonl --nuggets {}/nuggets.jsonl -M judge -o OUT/assigned.jsonl --outcomes OUT/scores.csv",
        ("support",),
    ),
}
"""The words after ``ragworth build``, and the stages that ask a model."""


def arguments(command: str, given: Path, name: str) -> list[str]:
    out = given / name / "collection"
    out.parent.mkdir(exist_ok=True)
    if "OUT/" in COMMANDS[command][0]:
        out.mkdir(exist_ok=True)
    words = COMMANDS[command][0].replace("{}", str(given)).replace("OUT", str(out)).split()
    return ["build", *words, "-s", str(given / name / "calls.sqlite"), "--quiet"]


def files(folder: Path) -> dict[str, bytes]:
    """Everything but hidden files: records, caches, and parts that a killed process left."""
    found = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {str(name): path.read_bytes() for name, path in found.items() if not any(p[0] == "." for p in name.parts)}


@pytest.mark.parametrize("command", COMMANDS)
def test_killed_in_every_stage_it_writes_what_an_unbroken_run_writes(command: str, given: Path, run: Runner) -> None:
    whole = run(arguments(command, given, "whole"))
    assert whole.code == 0, whole.said
    assert len(whole.calls) == len(set(whole.calls))
    broken, paid = arguments(command, given, "broken"), list[str]()
    for stage in COMMANDS[command][1]:
        ended = run(broken, stage, 2)
        assert ended.code == -signal.SIGKILL, (stage, ended.said)
        paid += ended.calls
    for file in count(1, 3):  # half-written, or not in its place, in turn
        ended = run(broken, "file", file)
        paid += ended.calls
        if ended.code == 0:
            break
        assert ended.code == -signal.SIGKILL, ended.said
    assert sorted(paid) == sorted(whole.calls), "a call was lost, or paid for twice"
    mine, theirs = (files(given / name / "collection") for name in ("broken", "whole"))
    assert set(mine) == set(theirs) and file > len(theirs)
    assert [name for name in theirs if mine[name] != theirs[name]] == []
