"""Everything ragworth computes for a few workspaces, as text files to compare before and after a refactoring.

    RAGWORTH_DATA=FOLDER python benchmarks/snapshot.py before       # then change the code
    RAGWORTH_DATA=FOLDER python benchmarks/snapshot.py after
    diff -r before/numbers after/numbers

Workspaces: ``scripted`` (the demo's texts; every judgment, grader and LLM re-ranker, and all studies, answered by a
model whose replies are drawn from a hash of the prompt), ``aragog`` and ``vaswani`` (real data), and ``demo`` (the
embedded model; a few minutes). Leave some out with ``--only``.

Under OUT/numbers: every table as CSV, the keys of stages and calls, and the numbers (no words) of everything printed,
of reports and of pages of studies. OUT/texts has what was printed, in full. A change of wording leaves the numbers
equal.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parents[1]
NUMBER = re.compile(r"(?<![\w#.])[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
DROPPED = re.compile(
    r"<(script|style|svg)\b.*?</\1>|<[^>]*>|\d+ (?:ms|s|seconds|minutes|min)\b|\d{4}-\d\d-\d\d[T ][\d:.]+", re.S
)

PLUGIN = """\
import random
from ragworth.llm.contract import Choose, Generate, Score
from ragworth.llm.scripted import Scripted

GENERATED = ("NOT IN CONTEXT", "Orla", "1820", "3", "5", "0", "YES", "NO", "[2] > [1] > [3]", "the lighthouse keeper")


def reply(request):
    text = chr(10).join(message.content for message in request.prompt.messages)
    draw = random.Random(text + getattr(request, "continuation", ""))
    if isinstance(request, Choose):
        weights = [draw.random() for label in request.labels]
        return {label: weight / sum(weights) / 1.01 for label, weight in zip(request.labels, weights)}
    return -draw.random() * 3 if isinstance(request, Score) else draw.choice(GENERATED)


def open_model(rest=""):
    return Scripted(reply, name="snapshot" + rest)
"""

SCRIPTED = """\
title = "Everything, scripted"
k = 3
limit = 16
model = "snapshot:"

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
answers = "queries.jsonl"
subquestions = "subquestions.jsonl"
qrels = "qrels.txt"
ratings = "ratings.txt"

[systems]
bm25 = 'bm25(stopwords="english") % 5'
reversed = 'bm25(stopwords="english") % 5 >> reversed'
random = 'random % 5'
pointwise = 'bm25 % 8 >> pointwise % 5'
listwise = 'bm25 % 8 >> listwise(window=4, step=2) % 5'
useful = 'bm25 % 8 >> useful % 5'
fused = 'fused(bm25, random) % 5'

[judgments]
abstention = true
downstream = true
likelihood = true
confidence = true

[answers]
without = true
oracle = true

[grades]
deterministic = true
judge = true
ideal = true
text = true
coverage = true

[metrics]
baseline = "bm25"
"""

STUDIES = {
    "alignment": ["--contexts", "4", "--k", "3"],
    "ideal": ["--k", "3", "--depth", "8"],
    "distractors": ["--k", "2", "--depth", "40"],
    "position": [],
    "context-size": ["-m", "nDCG@3", "-m", "UDCG@3", "-m", "P@3"],
    "propagation": ["--similarity", "f1"],
    "win-rate": [],
    "noise": [],
    "layouts": ["--models", "snapshot:,snapshot:2", "--size", "3"],
    "top-k": [],
    "long-form": [],
}
"""Options that keep each study small; ``judges`` reads files."""


class Snapshot:
    """Runs commands in a scratch folder and writes down what they computed."""

    def __init__(self, out: Path) -> None:
        self.out, self.work = out, out / "work"
        plugin = self.work / "plugin"
        info = plugin / "snapshot_model-1.dist-info"
        info.mkdir(parents=True)
        (plugin / "snapshot_model.py").write_text(PLUGIN)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: snapshot-model\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[ragworth.models]\nsnapshot = snapshot_model:open_model\n")
        paths = [str(plugin), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "200"}

    def run(self, name: str, *arguments: str, cwd: Path | None = None) -> None:
        """Run one command; what it prints goes under its name."""
        command = [sys.executable, "-m", "ragworth", *arguments]
        told = subprocess.run(
            command, cwd=cwd or self.work, capture_output=True, text=True, check=False, env=self.environment
        )
        print(f"{name}: exit code {told.returncode}", flush=True)
        self.write_text(f"{name}.txt", f"exit code {told.returncode}\n{told.stdout}")
        self.write(self.out / "texts" / f"{name}.stderr.txt", told.stderr)

    def write_text(self, name: str, text: str) -> None:
        """Keep a text in full, and its numbers, in their order, apart from it."""
        self.write(self.out / "texts" / name, text)
        self.write(self.out / "numbers" / name, "\n".join(NUMBER.findall(DROPPED.sub(" ", text))) + "\n")

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def keep_results(self, name: str, results: Path) -> None:
        """Every table and the numbers of every page under a results folder."""
        for path in sorted(results.rglob("*")):
            place = f"{name}/{path.relative_to(results)}"
            if path.suffix == ".parquet":
                self.write(self.out / "numbers" / f"{place}.csv", _as_csv(path))
            elif path.suffix in (".csv", ".tsv"):
                self.write(self.out / "numbers" / place, path.read_text(encoding="utf-8"))
            elif path.suffix in (".html", ".md"):
                self.write_text(place, path.read_text(encoding="utf-8"))

    def keep_keys(self, name: str, workspace: Path) -> None:
        """Names of kept stages, which end with their keys, and the keys of all calls."""
        stages = sorted(path.parent.name for path in workspace.rglob("facts.json"))
        calls = [key for store in sorted(workspace.rglob("calls.sqlite")) for key in _call_keys(store)]
        self.write(self.out / "numbers" / name / "stages.txt", "\n".join(stages) + "\n")
        self.write(self.out / "numbers" / name / "calls.txt", "\n".join(calls) + "\n")


def _as_csv(path: Path) -> str:
    frame = pl.read_parquet(path)
    lists = [column for column, kind in frame.schema.items() if kind.is_nested()]
    frame = frame.with_columns(pl.Series(column, list(map(str, frame[column]))) for column in lists)
    return frame.write_csv(float_precision=12)


def _call_keys(store: Path) -> Iterator[str]:
    with sqlite3.connect(store) as connection:
        for (table,) in connection.execute(
            "select name from sqlite_master where type = 'table' order by name"
        ).fetchall():
            columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
            if "key" in columns:
                keys = connection.execute(f"select key from {table}").fetchall()
                yield from sorted(f"{table} {key.hex() if isinstance(key, bytes) else key}" for (key,) in keys)


def scripted(snapshot: Snapshot) -> None:
    folder = snapshot.work / "scripted"
    shutil.copytree(ROOT / "examples" / "demo", folder, ignore=shutil.ignore_patterns("results", ".ragworth"))
    (folder / "ragworth.toml").write_text(SCRIPTED)
    snapshot.run("scripted/check", "check", "scripted")
    snapshot.run("scripted/plan", "evaluate", "scripted", "--dry-run")
    snapshot.run("scripted/evaluate", "evaluate", "scripted")
    snapshot.run("scripted/again", "evaluate", "scripted")
    (folder / "ragworth.toml").write_text(SCRIPTED.replace("ideal = true\n", ""))  # studies make no oracle's answers
    for study, options in STUDIES.items():
        snapshot.run(f"scripted/plan-{study}", "study", study, "scripted", "--dry-run", *options)
        snapshot.run(f"scripted/study-{study}", "study", study, "scripted", *options)
    steps(snapshot)
    snapshot.keep_results("scripted/results", folder / "results")
    snapshot.keep_keys("scripted", folder)


def steps(snapshot: Snapshot) -> None:
    """The single-step commands on the tables of the scripted evaluation, and a study of files."""
    results = Path("scripted/results")
    texts = [f"--{name}" for name in ("queries", "passages", "answers", "subquestions")]
    files = [f"scripted/{name}.jsonl" for name in ("queries", "passages", "queries", "subquestions")]
    given = [part for pair in zip(texts, files, strict=True) for part in pair]
    model = ["--model", "snapshot:", "--store", "steps.sqlite"]
    contexts, out = str(results / "contexts.parquet"), snapshot.work / "steps"
    out.mkdir()
    for kind in ("abstention", "relevance", "downstream", "likelihood", "confidence", "ratings"):
        output = ["--depth", "2", "-o", f"steps/{kind}.parquet"]
        snapshot.run(f"steps/annotate-{kind}", "annotate", kind, contexts, *given, *model, *output)
    snapshot.run("steps/answer", "answer", contexts, *given, *model, "--depth", "2", "-o", "steps/answers.parquet")
    for grader in ("deterministic", "judge", "text", "coverage"):
        asks = model if grader in ("judge", "coverage") else []
        output = ["-q", "scripted/qrels.txt", "-o", f"steps/{grader}.parquet"]
        snapshot.run(f"steps/grade-{grader}", "grade", grader, "steps/answers.parquet", *given, *asks, *output)
    labels = ["-q", "scripted/qrels.txt", "-j", "steps/abstention.parquet", "--ratings", "scripted/ratings.txt"]
    metrics = [
        "UDCG@3",
        "nDCG@3",
        "AP@3",
        "P@3",
        "R@3",
        "RR@3",
        "F@3",
        "F_e@3",
        "T@3",
        "T_u@3",
        "Cov@3",
        "alpha_nDCG@3",
        "Bpref",
    ]
    named = [part for metric in metrics for part in ("-m", metric)]
    for command in ("score", "compare"):
        snapshot.run(f"steps/{command}", command, *labels, *named, contexts)
    snapshot.run(
        "steps/judges", "study", "judges", "steps/deterministic.parquet", "steps/judge.parquet", "-o", "steps/judges"
    )
    snapshot.keep_results("steps", out)


def prepared(name: str) -> Callable[[Snapshot], None]:
    """A workspace that benchmarks/workspaces.py makes from real data."""

    def run(snapshot: Snapshot) -> None:
        folder = snapshot.work / name
        subprocess.run(
            [sys.executable, ROOT / "benchmarks" / "workspaces.py", name, folder], check=True, env=snapshot.environment
        )
        snapshot.run(f"{name}/evaluate", "evaluate", name)
        if name == "aragog":
            for study in ("alignment", "context-size", "top-k"):
                snapshot.run(f"{name}/study-{study}", "study", study, f"{name}/results")
        snapshot.keep_results(f"{name}/results", folder / "results")
        snapshot.keep_keys(name, folder)

    return run


def demo(snapshot: Snapshot) -> None:
    folder = snapshot.work / "demo"
    shutil.copytree(ROOT / "examples" / "demo", folder, ignore=shutil.ignore_patterns("results", ".ragworth"))
    snapshot.run("demo/evaluate", "evaluate", "demo")
    snapshot.keep_results("demo/results", folder / "results")
    snapshot.keep_keys("demo", folder)


PARTS = {"scripted": scripted, "aragog": prepared("aragog"), "vaswani": prepared("vaswani"), "demo": demo}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="a new folder")
    parser.add_argument("--only", action="append", choices=PARTS, help="a workspace; repeat for more")
    given = parser.parse_args()
    if given.out.exists():
        sys.exit(f"{given.out} exists already; name a new folder")
    snapshot = Snapshot(given.out.resolve())
    for name in given.only or PARTS:
        PARTS[name](snapshot)


if __name__ == "__main__":
    main()
