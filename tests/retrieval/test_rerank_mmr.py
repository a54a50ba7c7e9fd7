"""Maximal marginal relevance: by hand, at its ends, and against a plain implementation."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.core.errors import InputError
from ragworth.retrieval import Pipeline, retrieve
from ragworth.retrieval.pipeline import unscored_contexts
from ragworth.retrieval.steps import mmr
from ragworth.retrieval.steps.mmr import Mmr
from tests.retrieval.samples import passages, world

TEXTS = {"a": "old mill", "b": "old mill", "c": "new bread", "d": "old mill corn", "e": "..."}


def ordered(step: Mmr, texts: dict[str, str] = TEXTS, query: str = "mill") -> list[str]:
    context = world(texts, {"q": query}, None)
    return step.apply(unscored_contexts([("q", list(texts))]), context).frame["passage"].to_list()


def test_by_hand() -> None:
    """Places give relevance 1, 0.8, 0.6, 0.4, 0.2. Behind a, its copy b has 0.5 · 0.8 − 0.5 · 1 = −0.1 while c, which
    shares no word with it, has 0.5 · 0.6 = 0.3; then e without a word has 0.1, and d, at cosine 0.77 to a, −0.19."""
    assert ordered(Mmr(0.5)) == ["a", "c", "e", "b", "d"]


def test_at_its_ends() -> None:
    assert ordered(Mmr(1.0)) == list(TEXTS)
    assert ordered(Mmr(0.0))[:3] == ["a", "c", "e"]
    assert ordered(Mmr(0.0, depth=2)) == list(TEXTS)
    assert ordered(Mmr(1.0, relevance="query"), query="new bread")[0] == "c"
    assert ordered(Mmr(1.0, relevance="query"), query="zeppelin") == list(TEXTS)
    assert ordered(Mmr(0.5), {"a": "one"}) == ["a"]
    assert Mmr().apply(unscored_contexts([]), world()).frame.height == 0


def plain(query: str, texts: list[str], weight: float, by_query: bool) -> list[int]:
    """The definition, word by word."""
    words = [Counter(text.split()) for text in texts]

    def vector(counts: Counter[str]) -> dict[str, float]:
        return {
            word: number * (math.log((1 + len(texts)) / (1 + sum(word in each for each in words))) + 1)
            for word, number in counts.items()
        }

    def cosine(a: dict[str, float], b: dict[str, float]) -> float:
        lengths = math.hypot(*a.values()) * math.hypot(*b.values())
        return sum(value * b.get(word, 0.0) for word, value in a.items()) / lengths if lengths else 0.0

    rows, asked = [vector(each) for each in words], vector(Counter(query.split()))
    n = len(texts)
    relevance = [cosine(row, asked) if by_query else (n - place) / n for place, row in enumerate(rows)]
    order: list[int] = []
    while len(order) < n:
        worth = {
            place: round(
                weight * relevance[place]
                - (1 - weight) * max((cosine(rows[place], rows[other]) for other in order), default=0.0),
                12,
            )
            for place in range(n)
            if place not in order
        }
        order.append(max(worth, key=lambda place: (worth[place], -place)))
    return order


WORDS = st.lists(st.sampled_from(["mill", "corn", "bread", "old", "new", "night"]), max_size=6).map(" ".join)


@given(WORDS, st.lists(WORDS.filter(bool), max_size=7), st.sampled_from([0, 0.3, 0.5, 0.9, 1]), st.booleans())
def test_it_is_the_definition(query: str, texts: list[str], weight: float, by_query: bool) -> None:
    named = {f"p{place}": text for place, text in enumerate(texts)}
    step = Mmr(weight, relevance="query" if by_query else "place")
    if not query:
        assert ordered(step, named, " ") == list(named)  # a query without a text keeps its order
        return
    assert ordered(step, named, query) == [f"p{place}" for place in plain(query, texts, weight, by_query)]


class Letters:
    """An encoder that counts letters, and what it was given."""

    name, revision, dimension, normalised = "letters", "r1", 3, False

    def __init__(self) -> None:
        self.seen: list[str] = []

    def prefix(self, role: str) -> str:
        return ""

    def encode(self, texts: Any, role: str, prefix: str | None = None) -> Any:
        self.seen += texts
        return np.array([[text.count(sign) for sign in "abc"] for text in texts], dtype=np.float32).reshape(-1, 3)


def test_by_an_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Letters()
    monkeypatch.setattr(mmr, "open_encoder", lambda spec, folder: model)
    texts = {"p": "aaa", "q": "aab", "r": "ccc"}
    step = Mmr(0.5, by="letters")
    context = world(texts, {"x": "b", "y": "c"}, None)
    made = step.apply(unscored_contexts([("x", list(texts)), ("y", ["r", "p"])]), context)
    assert made.frame.filter(query="x")["passage"].to_list() == ["p", "r", "q"]
    assert sorted(model.seen) == ["aaa", "aab", "b", "c", "ccc"]  # each text once
    assert step.sources(context) == ("r1",)
    made = Mmr(1.0, by="letters", relevance="query").apply(unscored_contexts([("x", list(texts))]), context)
    assert made.frame["passage"].to_list() == ["q", "p", "r"]


def test_vectors_of_an_encoder_are_kept_and_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = Letters()
    monkeypatch.setattr(mmr, "open_encoder", lambda spec, folder: model)
    told: list[tuple[str, int, int]] = []
    texts = {"p": "aaa", "q": "aab", "r": "ccc", "same": "aaa"}
    context = world(texts, {"x": "b", "y": "c"}, None, cache=tmp_path, progress=lambda *each: told.append(each))
    step = Mmr(0.5, by="letters")
    first = step.apply(unscored_contexts([("x", ["p", "q", "r", "same"]), ("y", ["r", "p"])]), context)
    assert sorted(model.seen) == ["aaa", "aab", "b", "c", "ccc"]
    assert told == [("encoding passages with letters", 0, 3), ("encoding passages with letters", 3, 3)]
    model.seen.clear()
    again = step.apply(unscored_contexts([("x", ["p", "q", "r", "same"]), ("y", ["r", "p"])]), context)
    assert again == first
    assert model.seen == ["b", "c"]
    # The order of lists, and of the passages in them, does not matter.
    step.apply(unscored_contexts([("y", ["p", "r"]), ("x", ["same", "r", "q"])]), context)
    assert model.seen == ["b", "c", "c", "b"]
    assert len(told) == 2
    assert step.apply(unscored_contexts([]), context).frame.height == 0


def test_written_and_refused() -> None:
    assert str(Pipeline.of("bm25 >> mmr(0.3, relevance=query) % 5")) == 'bm25 >> mmr(0.3, relevance="query") % 5'
    assert str(Pipeline.of("bm25 >> mmr")) == "bm25 >> mmr"
    for wrong in ("mmr(2)", "mmr(0.5, relevance=chance)", "mmr(0.5, 3)"):
        with pytest.raises(InputError):
            Pipeline.of(f"bm25 >> {wrong}")
    with pytest.raises(InputError, match="is not a kind of encoder"):
        retrieve({"s": "bm25 >> mmr(0.5, by=nonsense)"}, world())


def test_in_a_pipeline_and_other_scripts() -> None:
    texts = {"a": "風車 を 建てた", "b": "風車 を 建てた", "c": "風車 は 古い", "d": "Мельница"}
    made = retrieve({"s": "bm25 >> mmr(0.2)"}, world(texts, {"q": "風車", "none": "zeppelin"}, None))
    assert passages(made, "s") == {"q": ["c", "b", "a"], "none": []}
