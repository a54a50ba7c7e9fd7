"""A small workspace, and a model whose calls are counted."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ragworth.llm.contract import Choose, Failure, Generate, Request, Score, Trace
from ragworth.llm.scripted import Scripted, ScriptedReply

QUERIES = {"q1": "Who built the mill?", "q2": "When did the mill burn?", "q3": "What is ground there?"}
ANSWERS = {"q1": ["Ann"], "q2": ["1820"], "q3": ["rye", "barley"]}
PASSAGES = {f"p{n}": f"Passage {n}: {text}" for n, text in enumerate(["Ann built it.", "It burned.", "Rye."] * 4, 1)}
RUNS = {
    "first": {"q1": ["p1", "p2", "p3"], "q2": ["p2", "p5"], "q3": ["p3", "p6", "p9"]},
    "second": {"q1": ["p4", "p7", "p10"], "q2": ["p8", "p2"], "q3": ["p12"]},
}
QRELS = "q1 0 p1 1\nq1 0 p4 2\nq1 0 p2 0\nq2 0 p2 1\nq3 0 p3 1\nq3 0 p12 1\n"

TOML = """
title = "The mill"
k = 2

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
answers = "answers.jsonl"
qrels = "qrels.txt"

[systems]
first = {run = "first.run"}
second = {run = "second.run"}

[judgments]
abstention = true

[answers]
length = 8

[grades]
deterministic = true
judge = true

[metrics]
use = ["UDCG@2", "nDCG@2"]
"""


def workspace(folder: Path, toml: str = TOML) -> Path:
    """A folder with all that a workspace may name."""
    folder.mkdir(exist_ok=True)
    lines(folder / "queries.jsonl", [{"_id": name, "text": text} for name, text in QUERIES.items()])
    lines(folder / "passages.jsonl", [{"_id": name, "text": text} for name, text in PASSAGES.items()])
    lines(folder / "answers.jsonl", [{"query_id": name, "answers": each} for name, each in ANSWERS.items()])
    (folder / "qrels.txt").write_text(QRELS)
    for system, shown in RUNS.items():
        run(folder / f"{system}.run", shown)
    (folder / "ragworth.toml").write_text(toml, encoding="utf-8")
    return folder


def run(path: Path, shown: Mapping[str, list[str]]) -> None:
    """A TREC run."""
    rows = [
        f"{query} Q0 {passage} {rank} {10 - rank} x"
        for query, each in shown.items()
        for rank, passage in enumerate(each)
    ]
    path.write_text("\n".join(rows) + "\n")


def lines(path: Path, items: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")


def change(folder: Path, old: str, new: str) -> None:
    """Change the file of a workspace."""
    path = folder / "ragworth.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def share(request: Request) -> float:
    """A number from 0 to 1 that depends on the prompt alone."""
    text = "\n".join(message.content for message in request.prompt.messages)
    return zlib.crc32(text.encode()) / 2**32


def said(request: Request) -> ScriptedReply:
    """What the model says: something else to every prompt, and always the same."""
    value = share(request)
    if isinstance(request, Choose):
        return {request.labels[0]: value, request.labels[1]: 0.9 * (1 - value)}
    return "Ann built it" if isinstance(request, Generate) and value > 0.5 else "1820"


def rests_on_first(request: Request) -> ScriptedReply:
    """Every answer is likelier with the first passage, and no other one matters."""
    if not isinstance(request, Score):
        return said(request)
    words = request.continuation.split() or ["-"]
    known = "Ann built it." in request.prompt.messages[-1].content
    return Trace(tuple(words), (-1.0 if known else -5.0,) * len(words))


class Models:
    """Opens scripted models in place of any others, and remembers what they were asked, by the written form."""

    def __init__(self, script: Callable[[Request], ScriptedReply] = said) -> None:
        self.script = script
        self.asked: list[tuple[str, Request]] = []
        self.failing: Callable[[Request], bool] = lambda request: False
        self.reason = "server-error"
        self.batch = 4

    def __call__(self, spec: str = "embedded", **options: Any) -> Scripted:
        def reply(request: Request) -> ScriptedReply:
            self.asked.append((spec, request))
            return Failure(self.reason, "scripted") if self.failing(request) else self.script(request)

        return Scripted(reply, name=spec, batch=self.batch)

    def taken(self) -> list[tuple[str, Request]]:
        """What was asked since the last time."""
        asked, self.asked = self.asked, []
        return asked


def statuses(stages: Any) -> dict[str, str]:
    return {stage["name"]: stage["status"] for stage in stages}


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    """All tables of a folder of results."""
    return {str(path.relative_to(folder)): pl.read_parquet(path) for path in sorted(folder.rglob("*.parquet"))}
