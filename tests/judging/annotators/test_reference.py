"""GroGU and likelihood against a loop of their own: plain forwards, no batches, no cache, softmax in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")

from ragworth import Collection  # noqa: E402
from ragworth.judging.judge import JudgingResult  # noqa: E402
from ragworth.judging.runner import annotate  # noqa: E402
from ragworth.llm import llm, prompts  # noqa: E402
from ragworth.llm.contract import Prompt  # noqa: E402
from tests.llm.local import tiny  # noqa: E402

pytestmark = pytest.mark.torch

QUERIES = {"q1": "Where is the cat?", "q2": "Who sat in the rain?"}
PASSAGES = {
    "p1": "The cat sat on a mat near the inn.",
    "p2": "Rain.",
    "p3": "A theatre in the other town was burnt in the rain, and then rebuilt by the theatre's owner.",
}
ANSWERS = {"q1": ["on a mat", "near the inn"], "q2": ["the cat"]}
RUN = {"q1": {"p1": 3.0, "p3": 2.0, "p2": 1.0}, "q2": {"p2": 2.0, "p3": 1.0}}
LENGTH = 8
TOP = 0.3
SOME, NONE = 1.0, 50.0
"""Bounds of change that a random model's tokens exceed in part, and not at all."""

WORLD = Collection.of(
    queries={"query": list(QUERIES), "text": list(QUERIES.values())},
    passages={"passage": list(PASSAGES), "text": list(PASSAGES.values())},
    answers={
        "query": [query for query, texts in ANSWERS.items() for _ in texts],
        "text": [text for texts in ANSWERS.values() for text in texts],
    },
)


class Plain(NamedTuple):
    model: Any
    tokenizer: Any

    def ids(self, prompt: Prompt) -> list[int]:
        messages = [{"role": message.role, "content": message.content} for message in prompt.messages]
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def logs(self, ids: Sequence[int]) -> Any:
        """Log-probabilities of what follows each token."""
        with torch.inference_mode():
            logits = self.model(torch.tensor([list(ids)])).logits[0].double()
        return torch.log_softmax(logits, -1)

    def greedy(self, before: list[int]) -> list[int]:
        made: list[int] = []
        while len(made) < LENGTH:
            token = int(self.logs(before + made)[-1].argmax())
            if token == self.tokenizer.eos_token_id:
                break
            made.append(token)
        return made

    def read(self, before: list[int], tokens: list[int]) -> tuple[list[float], list[float]]:
        """Entropy before each token, and its surprisal."""
        logs = self.logs(before + tokens)[len(before) - 1 : -1]
        entropies = -(logs.exp() * logs).sum(-1)
        return entropies.tolist(), [-float(row[token]) for row, token in zip(logs, tokens, strict=True)]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def chosen(values: list[float], changes: list[float], a: float) -> list[float]:
    """The values of key tokens; the highest share, at least one, where there are none."""
    key = [value for value, change in zip(values, changes, strict=True) if change > a]
    return key or sorted(values)[-max(1, math.ceil(TOP * len(values))) :]


def differences(one: list[float], other: list[float]) -> list[float]:
    return [abs(x - y) for x, y in zip(one, other, strict=True)]


def four(
    entropies: list[float], surprisals: list[float], by_entropy: list[float], by_surprisal: list[float], a: float
) -> dict[str, float]:
    return {
        "PPL": -math.exp(mean(surprisals)),
        "KeyPPL": -math.exp(mean(chosen(surprisals, by_surprisal, a))),
        "Entropy": -mean(entropies),
        "KeyEntropy": -mean(chosen(entropies, by_entropy, a)),
    }


class Told(NamedTuple):
    entropies: list[float]
    surprisals: list[float]


@cache
def answered(query: str, shown: tuple[str, ...]) -> tuple[Told, Told]:
    """What the model thinks of the tokens of its answer with the context, and of the same tokens without."""
    plain = plainly()
    texts = {"query": QUERIES[query], "passages": [{"text": PASSAGES[passage]} for passage in shown]}
    grounded = plain.ids(prompts.load_prompt("reply").render(texts))
    alone = plain.ids(prompts.load_prompt("reply-alone").render({"query": QUERIES[query]}))
    answer = plain.greedy(grounded if shown else alone)
    assert answer, "a model that says nothing would test nothing"
    return Told(*plain.read(grounded if shown else alone, answer)), Told(*plain.read(alone, answer))


def expected(query: str, shown: tuple[str, ...], relative: bool, a: float) -> dict[str, float]:
    """The four measures of one context, straight from their definitions."""
    told, forced = answered(query, shown)
    by_entropy = differences(told.entropies, forced.entropies)
    found = four(*told, by_entropy, differences(told.surprisals, forced.surprisals), a)
    if not relative:
        return found
    own, _ = answered(query, ())
    base = four(*own, *own, a)
    return {name: found[name] - base[name] for name in found}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.saved(tmp_path_factory.mktemp("tiny"))


@cache
def plainly() -> Plain:
    return Plain(tiny.llama(), tiny.tokenizer())


def opened(folder: Path, batch: int = 64, **options: Any) -> Any:
    model: Any = llm(f"hf:{folder}", device="cpu", **options)
    model.batch = batch
    return model


def confidence(model: Any, run: dict[str, dict[str, float]] = RUN, **settings: Any) -> JudgingResult:
    return annotate("confidence", run, WORLD, model, **({"length": LENGTH, "top": TOP, "a": SOME} | settings))


def by_context(found: JudgingResult) -> dict[tuple[str, ...], float]:
    keys = ["query", "passage", "aspect"] if "passage" in found.frame.columns else ["query", "aspect"]
    return {row[:-1]: row[-1] for row in found.frame.select(*keys, "value").rows()}


@pytest.mark.parametrize("batch", [1, 16])
@pytest.mark.parametrize("relative", [True, False], ids=["relative", "absolute"])
@pytest.mark.parametrize("a", [SOME, NONE], ids=["some-key-tokens", "no-key-tokens"])
def test_confidence_in_contexts(folder: Path, relative: bool, batch: int, a: float) -> None:
    found = by_context(confidence(opened(folder, batch), relative=relative, a=a))
    reference = {
        (query, name): value
        for query, shown in RUN.items()
        for name, value in expected(query, tuple(shown), relative, a).items()
    }
    # What is left of two perplexities has the rounding of both.
    assert found == pytest.approx(reference, abs=2e-4, rel=1e-5)
    assert len({round(value, 9) for value in found.values()}) > 4, "key measures must differ from the plain ones"


@pytest.mark.parametrize("batch", [1, 16])
def test_confidence_in_single_passages(folder: Path, batch: int) -> None:
    found = by_context(confidence(opened(folder, batch), {"q2": RUN["q2"]}, each=True, relative=False))
    reference = {
        ("q2", passage, name): value
        for passage in RUN["q2"]
        for name, value in expected("q2", (passage,), False, SOME).items()
    }
    assert found == pytest.approx(reference, abs=1e-5, rel=1e-5)


@pytest.mark.parametrize("batch", [1, 16])
def test_likelihood(folder: Path, batch: int) -> None:
    plain = plainly()
    found = annotate("likelihood", RUN, WORLD, opened(folder, batch)).frame
    assert found.height == 5
    for query, passage, value, answer in found.select("query", "passage", "value", "answer").iter_rows():
        texts = {"query": QUERIES[query], "passages": [{"text": PASSAGES[passage]}]}
        before = plain.ids(prompts.load_prompt("reply").render(texts))
        means = {}
        for text in ANSWERS[query]:
            tokens = plain.tokenizer(text, add_special_tokens=False)["input_ids"]
            means[text] = -mean(plain.read(before, tokens)[1])
        assert value == pytest.approx(max(means.values()), abs=1e-5)
        assert means[answer] == max(means.values())


def test_a_second_time_comes_from_the_store(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "calls.sqlite"
    first = confidence(opened(folder), store=store)
    likely = annotate("likelihood", RUN, WORLD, opened(folder), store=store)
    model = opened(folder)

    def refuse(requests: Sequence[Any]) -> list[Any]:
        raise AssertionError(f"{len(requests)} requests were asked again")

    for name in ("generate", "score", "choose"):
        monkeypatch.setattr(model, name, refuse)
    assert confidence(model, store=store).frame.equals(first.frame)
    assert annotate("likelihood", RUN, WORLD, model, store=store).frame.equals(likely.frame)
    assert model._loaded is None, "nothing was loaded"


def test_a_relative_confidence_needs_only_the_answers_without_a_context_on_top(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "calls.sqlite"
    confidence(opened(folder), store=store, relative=False)
    model = opened(folder)
    asked: list[Any] = []
    generate = model.generate

    def noted(requests: Sequence[Any]) -> list[Any]:
        asked.extend(requests)
        return list(generate(requests))

    model.generate = noted
    confidence(model, store=store)
    assert sorted(request.prompt.messages[-1].content for request in asked) == sorted(
        prompts.load_prompt("reply-alone").render({"query": text}).messages[-1].content for text in QUERIES.values()
    )
