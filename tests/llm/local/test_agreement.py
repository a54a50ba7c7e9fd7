"""The embedded model without its adapter says what a real llama.cpp server of the same file says, within their
quantisations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import ragworth
from ragworth.llm.contract import Choose, Generate, Prompt, Score
from ragworth.llm.embedded import weights_file

pytestmark = [pytest.mark.server, pytest.mark.model]
PASSAGES = (
    ("Who built the mill?", "Ann built the mill of Larkmoor in 1820; it burned down twice."),
    ("Where is Paris?", "Paris is the capital of France, a country in Europe."),
    ("How old is Bob?", "The bakery sells bread — and cake — every day of the week: 12,450 loaves a year."),
    ("Wie heißt die Stadt?", "Die Stadt heißt Żory und liegt in Schlesien."),
)
LABELS = ("NO-RESPONSE", "Yes")
TEXT = Prompt.text("The capital of France is")


@pytest.fixture(scope="module")
def embedded() -> Iterator[Any]:
    model = ragworth.llm("embedded:base", threads=1)
    yield model
    model.close()


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    template = ragworth.prompt("abstention", "plain")
    return [template.render({"query": query, "passage": passage}) for query, passage in PASSAGES]


@pytest.fixture(scope="module")
def server(embedded: Any) -> Iterator[Any]:
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights_file())
    settings.n_ctx, settings.n_parallel, settings.port, settings.verbosity = 1024, 1, 0, -1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    running = xllamacpp.Server(settings)
    model = ragworth.llm(f"openai:smollm2@{running.listening_address}", concurrency=1)
    yield model
    model.close()
    del running


def test_tokens_are_counted_alike(embedded: Any, server: Any, prompts: list[Prompt]) -> None:
    for prompt in (*prompts, TEXT):
        assert embedded.count(prompt) == server.count(prompt)


def test_labels_are_as_likely(embedded: Any, server: Any, prompts: list[Prompt]) -> None:
    asked = [Choose(prompt, LABELS) for prompt in prompts[::3]]
    for ours, theirs in zip(embedded.choose(asked), server.choose(asked), strict=True):
        for p, q in zip(ours.probabilities, theirs.probabilities, strict=True):
            assert abs(math.log(p / q)) < 1.0
            assert abs(p - q) < 0.05


def test_continuations_are_as_likely(embedded: Any, server: Any, prompts: list[Prompt]) -> None:
    asked = [Score(prompt, "in Europe") for prompt in prompts[::3]] + [Score(TEXT, " Paris, of course")]
    for ours, theirs in zip(embedded.score(asked), server.score(asked), strict=True):
        assert ours.trace.tokens == theirs.trace.tokens
        for p, q in zip(ours.trace.logprobs, theirs.trace.logprobs, strict=True):
            assert abs(p - q) < 0.6
    assert ours.trace.logprobs[0] > -1


def test_both_go_on_alike(embedded: Any, server: Any) -> None:
    asked = [Generate(TEXT, max_tokens=3)]
    assert embedded.generate(asked)[0].outputs[0].text == server.generate(asked)[0].outputs[0].text
