"""Answers and the confidence in them from one call: with the prompts of answers, graded, planned and resumed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks.simulated_reader import VOICE, Reader, collection

from ragworth.data import Contexts
from ragworth.evaluation.checks import load_checked_inputs
from ragworth.evaluation.model_pool import ModelPool
from ragworth.evaluation.state import StagePlan
from ragworth.llm.contract import Choose, Failure, Generate, Request, Score, Trace
from ragworth.llm.scripted import ScriptedReply
from ragworth.results import Results
from ragworth.studies.bench import Bench, fit_workspace
from ragworth.studies.candidates import contexts_from_lists
from ragworth.studies.noise import Noise
from ragworth.workspace import config
from ragworth.workspace.config import TaskConfig
from tests.studies.conftest import Opened

CONTEXTS = {
    "first": {"q000": ["q000-gold0", "q000-near0"], "q001": ["q001-gold0"], "q002": []},
    "second": {"q000": ["q000-near0"], "q001": ["q001-near0", "q001-gold0"], "q002": ["q002-gold0"]},
}


@dataclass
class TwoTokens(Reader):
    """Says "is" and the word of the first passage, and remembers every request. Prompts of answers have a system turn,
    those of ``reply`` have none, and get another answer.
    """

    asked: list[Request] = field(default_factory=list)
    failing: str = "-"
    silent: str = "-"

    def __call__(self, request: Request) -> ScriptedReply:
        self.asked.append(request)
        last = request.prompt.messages[-1].content
        if isinstance(request, Choose):
            return super().__call__(request)
        if isinstance(request, Score):
            return Trace(("is ", request.continuation[3:]), (-0.5, -2.0), (0.32, 2.0))
        if self.failing in last:
            return Failure("refused", "not this one", retry=False)
        if self.silent in last:
            return Trace((), (), ())
        voice = VOICE.search(last)
        word = voice[2] if voice is not None else "NO-RESPONSE"
        if request.prompt.messages[0].role != "system":
            word = "another"
        entropy = 1 - float(voice[1]) if voice is not None else 1.5
        return Trace(("is ", word), (-0.5, -entropy), (0.3, entropy))


def contexts() -> Contexts:
    return contexts_from_lists(CONTEXTS)


@contextmanager
def bench(place: Path, plan: list[StagePlan] | None = None, **answers: Any) -> Iterator[Bench]:
    space = fit_workspace(config.read(place), Noise())
    assert space.answers is not None
    task = TaskConfig({**space.answers.task.settings, **answers})
    settings = {"confidence": TaskConfig({"relative": False})}
    space = replace(space, judgments=settings, answers=replace(space.answers, task=task))
    with ModelPool(space) as models:
        yield Bench(load_checked_inputs(space, models), models, Noise(), "w", plan=plan)


def results(each: Bench) -> Results:
    return each.case(contexts(), pl.DataFrame({"system": list(CONTEXTS)})).results


def generated(reader: TwoTokens) -> list[Generate]:
    return [request for request in reader.asked if isinstance(request, Generate)]


@pytest.mark.parametrize("settings", [{}, {"order": "reversed"}, {"prompt": "answer-cited", "length": 40}])
def test_the_answer_that_is_graded_is_the_one_whose_confidence_is_taken(
    tmp_path: Path, opened: Opened, settings: dict[str, Any]
) -> None:
    place = collection(tmp_path / "w", queries=3)
    opened.reader = reader = TwoTokens()
    with bench(place, **settings) as plain:
        plain.answer(contexts())
        expected, requests = results(plain), generated(reader)
    reader.asked.clear()
    with bench(place, **settings) as sure:
        sure.answer_with_confidence(contexts())
        found = results(sure)
    # The same requests but for their detail: prompt, length and sampling.
    assert {replace(each, detail="text") for each in generated(reader)} == set(requests)
    assert {each.detail for each in generated(reader)} == {"entropies"}
    assert len(generated(reader)) == 6
    texts = set(found.said["answers"].select("query", "text").rows())
    assert len(reader.asked) == 6 + len(texts)  # equal answers to a query are read without a context once
    assert found.answers is not None and expected.answers is not None
    assert found.answers.frame.equals(expected.answers.frame)
    shared = expected.said["answers"].columns
    assert found.said["answers"].select(shared).equals(expected.said["answers"])
    assert found.outcomes is not None and expected.outcomes is not None
    grades = found.outcomes.frame.filter(pl.col("aspect") == "grade")
    assert grades.equals(expected.outcomes.frame.filter(pl.col("aspect") == "grade"))
    for row in found.said["answers"].iter_rows(named=True):
        assert "".join(row["answer_tokens"]) == row["text"]
        # The entropy of the first token changes by 0.02, that of the second by more than 0.05.
        assert row["key"] == [False, True] and row["entropies_alone"] == pytest.approx([0.32, 2.0])
        mine = found.outcomes.frame.filter((pl.col("system") == row["system"]) & (pl.col("query") == row["query"]))
        values = dict(mine.select("aspect", "value").rows())
        assert values["Entropy"] == pytest.approx(-sum(row["entropies"]) / 2)
        assert values["KeyEntropy"] == pytest.approx(-row["entropies"][1])
        assert row["surprisals"] == pytest.approx([0.5, row["entropies"][1]])
    name = settings.get("prompt", "answer")
    assert f" · {name}@" in found.outcomes.frame.filter(pl.col("aspect") == "PPL")["source"][0]
    assert {name, "answer-alone"} == set(found.manifest["prompts"])


def test_answers_that_fail_or_are_empty_have_a_row_that_says_so(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=3)
    opened.reader = TwoTokens(failing="q001 near", silent="q002 gold")
    with bench(place) as each:
        each.answer_with_confidence(contexts())
        found = results(each)
    assert found.answers is not None and found.outcomes is not None
    rows = {(row["system"], row["query"]): row for row in found.said["answers"].iter_rows(named=True)}
    failed, empty = rows["second", "q001"], rows["second", "q002"]
    assert (failed["status"], failed["text"], failed["answer_tokens"]) == ("refused", None, None)
    assert failed["reason"] == "not this one"
    assert (empty["status"], empty["text"], empty["answer_tokens"]) == ("empty-answer", "", None)
    bare = found.outcomes.frame.filter((pl.col("aspect") == "KeyEntropy") & (pl.col("status") != "ok"))
    assert bare.select("query", "status", "value").rows() == [
        ("q001", "refused", None),
        ("q002", "empty-answer", None),
    ]
