"""EXAM++ files, files of weights and ir_datasets collections that hold what no honest one does."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from ragworth.errors import FormatError, RagworthError
from ragworth.formats import ir_datasets, load
from ragworth.formats.theta import Theta
from ragworth.tables import Contexts

Save = Callable[[str, str | bytes], Path]

ODD: list[Any] = [None, True, "", "x", "\ud800", "1", -1, 0, 1.5, 2**70, 10**400, 1e308, [], [1], {}, {"a": 1}, [[]]]

PASSAGE = {
    "paragraph_id": "d1",
    "text": "one",
    "paragraph_data": {
        "judgments": [{"relevance": 1}],
        "rankings": [{"method": "bm25", "rank": 1, "score": 0.5}, {"method": "dense", "rank": 2, "score": 12}],
    },
    "exam_grades": [{"self_ratings": [{"question_id": "s1", "self_rating": 4}]}],
}
THETA = Theta(2, "full", (0.5, 0.25), (-0.5, 0.0), figures={"value": 0.5}, learned_from={"queries": 3})


def variants(value: Any) -> Iterator[Any]:
    """The value with each part of it replaced by each odd one, and with each part left out."""
    yield from ODD
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: each for name, each in value.items() if name != key}
            for other in variants(part):
                yield value | {key: other}
    elif isinstance(value, list):
        for at, part in enumerate(value):
            for other in variants(part):
                yield [*value[:at], other, *value[at + 1 :]]


@pytest.mark.slow
def test_exam(save: Save) -> None:
    """Every value of a line replaced: an error that names the line, or tables without anything odd in them."""
    outcomes = {"read": 0, "refused": 0}
    for line in variants(["q1", [PASSAGE]]):
        path = save("file", json.dumps(["q0", [PASSAGE]]) + "\n" + json.dumps(line))
        try:
            collection, contexts, *_ = load(f"exam:{path}")
        except RagworthError as error:
            assert len(str(error)) < 2000
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        assert collection.relevance is not None and collection.ratings is not None
        assert collection.relevance.frame["value"].is_finite().all()
        assert collection.ratings.frame["value"].is_finite().all()
        assert contexts is None or contexts.frame["rank"].min() == 1
    assert outcomes["read"] > 30 and outcomes["refused"] > 150, outcomes


@pytest.mark.slow
def test_theta(save: Save, tmp_path: Path) -> None:
    THETA.write(tmp_path / "theta.json")
    facts = json.loads((tmp_path / "theta.json").read_text())
    for changed in variants(facts):
        path = save("odd.json", json.dumps(changed))
        try:
            theta = Theta.read(path)
        except FormatError as error:
            assert error.file == str(path)
            continue
        assert len(theta.alpha) == len(theta.beta) == theta.k
        assert all(abs(weight) < float("inf") for weight in (*theta.alpha, *theta.beta, theta.rel, theta.c))
        assert len(theta.digest) == 16


@pytest.mark.slow
def test_damaged_theta(save: Save, tmp_path: Path) -> None:
    THETA.write(tmp_path / "theta.json")
    data = (tmp_path / "theta.json").read_bytes()
    dice = random.Random(5)
    for _ in range(500):
        at = dice.randrange(len(data))
        path = save("odd.json", data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :])
        try:
            theta = Theta.read(path)
        except FormatError:
            continue
        assert theta.digest == THETA.digest or (theta.alpha, theta.beta, theta.rel) != (THETA.alpha, THETA.beta, 1.0)


class Qrel(NamedTuple):
    query_id: Any = "q1"
    doc_id: Any = "d1"
    relevance: Any = 1


class Scored(NamedTuple):
    query_id: Any = "q1"
    doc_id: Any = "d1"
    score: Any = 1.0


def dataset(**parts: list[Any]) -> SimpleNamespace:
    """A collection as ir_datasets would hand it over."""
    made = SimpleNamespace()
    for name in ("qrels", "scoreddocs", "docs", "queries"):
        setattr(made, f"has_{name}", lambda name=name: name in parts)
        setattr(made, f"{name}_iter", lambda name=name: iter(copy.copy(parts[name])))
    return made


@pytest.mark.parametrize(
    "odd", [*ODD, float("nan"), float("inf"), object(), b"x"], ids=lambda value: repr(value).partition(" at ")[0]
)
@pytest.mark.parametrize("field", ["query_id", "doc_id", "relevance", "score"])
def test_ir_datasets(field: str, odd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table as exact as the values, or an error that names the collection."""
    kind, name, read = (
        (Scored, "scoreddocs", ir_datasets.read_contexts)
        if field == "score"
        else (Qrel, "qrels", ir_datasets.read_judgments)
    )
    rows = [kind(), kind("q2")._replace(**{field: odd})]
    monkeypatch.setattr(ir_datasets, "_dataset", lambda _: dataset(**{name: rows}))
    try:
        table: Any = read("hostile/collection")
    except RagworthError as error:
        assert "hostile/collection" in str(error)
        return
    assert table.frame.height == 2
    if field in ("query_id", "doc_id"):
        assert isinstance(odd, (str, int)) and not isinstance(odd, bool)
        assert str(odd) in table.frame[field.split("_")[0].replace("doc", "passage")].to_list()
    else:
        value = table.frame["score" if isinstance(table, Contexts) else "value"][1]
        assert value == odd and not isinstance(odd, (str, bool))
