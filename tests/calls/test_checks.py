"""What a backend gives back: impossible values are failures, impossible costs are unknown, and answers are kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragworth.calls.checks import check_outcome
from ragworth.calls.job import Job
from ragworth.llm.contract import (
    Choose,
    Chosen,
    Failure,
    Generate,
    Generated,
    Output,
    Prompt,
    Score,
    Scored,
    Trace,
    Usage,
)
from ragworth.llm.scripted import Scripted

PROMPT = Prompt.text("x")
USAGE = Usage(3, 1, 0.5)


def chosen(*values: float) -> Chosen:
    return Chosen(values, values, values, "first-token", USAGE)


def choose(*labels: str) -> Choose:
    return Choose(PROMPT, labels)


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (("yes", "no"), (1.0, 1.0)),
        (("yes", "no"), (1.1, 0.0)),
        (("yes", "no"), (-0.1, 0.0)),
        (("yes", "no"), (math.nan, 0.0)),
    ],
)
def test_probabilities_that_none_can_be(labels: tuple[str, ...], values: tuple[float, ...]) -> None:
    found = check_outcome(choose(*labels), chosen(*values))
    assert isinstance(found, Failure)
    assert found.reason == "malformed"


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (("yes", "no"), (0.7, 0.302)),
        (("yes", "no"), (0.0, 0.0)),
        (("yes", "no"), (1.0, 0.0)),
        (("yes", "yes, it is"), (0.9, 0.8)),  # both may come
        (("b", "a", "ab"), (0.1, 0.9, 0.9)),
    ],
)
def test_probabilities_that_can_be(labels: tuple[str, ...], values: tuple[float, ...]) -> None:
    assert check_outcome(choose(*labels), chosen(*values)) == chosen(*values)


@pytest.mark.parametrize(
    "trace",
    [
        Trace(("a",), (math.nan,)),
        Trace(("a",), (-math.inf,)),
        Trace(("a",), (0.5,)),
        Trace(("a",), (-1.0,), (math.inf,)),
        Trace(("a",), (-1.0,), None, ((0.0, math.inf),)),
    ],
)
def test_traces_that_none_can_be(trace: Trace) -> None:
    for request, response in (
        (Score(PROMPT, "a"), Scored(trace, USAGE)),
        (Generate(PROMPT), Generated((Output("a", "stop", trace),), USAGE)),
    ):
        found = check_outcome(request, response)
        assert isinstance(found, Failure)
        assert found.reason == "malformed"


HUGE = [10**30, 2**63 - 1, 2**63, -1, math.nan, math.inf, None, "many"]


@pytest.mark.parametrize("number", HUGE)
def test_a_cost_that_cannot_be_true_is_unknown(number: Any) -> None:
    answer = Generated((Output("a", "stop"),), Usage(number, 4, number, number))
    found = check_outcome(Generate(PROMPT), answer)
    assert isinstance(found, Generated)
    assert found.usage == Usage(0, 4, 0.0)
    assert found.outputs == answer.outputs


def test_answers_are_kept_whatever_they_are_said_to_cost(tmp_path: Path) -> None:
    class Boastful(Scripted):
        def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
            self.calls += len(requests)
            return [Generated((Output("a", "stop"),), Usage(10**30, 2**63 - 1, 0.1)) for _ in requests]

    model, asked = Boastful({}), [Generate(Prompt.text(f"{i}")) for i in range(20)]
    for calls in (20, 0):
        with Job(model, tmp_path / "calls.sqlite") as job:
            assert all(isinstance(one, Generated) for one in job.run(asked))
        assert job.tally.estimated == job.tally.calls == calls
    assert model.calls == 20, "no answer is paid for twice"
