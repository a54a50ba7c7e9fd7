"""Pipelines on the passages of one chunking: each on its own, and together computed once."""

from __future__ import annotations

import polars as pl
import pytest

from ragworth import retrieval
from ragworth.core.errors import InputError
from ragworth.data import Contexts
from ragworth.data.collection import Collection
from ragworth.retrieval import StepContext, parse, retrieve
from ragworth.retrieval.chunks import chunk
from ragworth.retrieval.steps.bm25 import Bm25
from tests.retrieval.samples import passages


def two_chunkings() -> StepContext:
    documents = {"document": ["a", "b"], "text": ["The old mill. Bread is baked.", "A mill. The mill grinds corn."]}
    small, large = chunk(documents, "sentences", 1, name="small"), chunk(documents, "sentences", 2, name="large")
    together = pl.concat([small.frame, large.frame])
    labels = pl.concat([each.labels({"q": {"a": 1, "b": 0}}).frame for each in (small, large)])
    texts = {"query": ["q"], "text": ["mill"]}
    return StepContext.of(Collection.of(queries=texts, passages=together, relevance=labels))


def test_two_chunkings_in_one_comparison() -> None:
    context = two_chunkings()
    systems = {
        "small": 'within(bm25 % 5, chunks="small")',
        "large": 'within(bm25, chunks="large") % 1',
        "last": 'within(bm25 >> reversed, chunks="small") % 1',
        "best": "within(oracle, chunks=large)",
    }
    made = retrieve(systems, context)
    small = passages(made, "small")["q"]
    assert small == ["b:0-7@small", "a:0-13@small", "b:8-29@small"]
    assert passages(made, "last")["q"] == small[-1:], "a cut behind it makes it no less deep"
    assert passages(made, "large")["q"] == ["b:0-29@large"]
    assert passages(made, "best")["q"] == ["a:0-29@large"]
    # Alone it would be no other: words weigh what they weigh among its own passages.
    alone = context.collection.passages.filter(pl.col("passage").str.ends_with("@small"))
    other = retrieve({"small": "bm25 % 5"}, StepContext.of(Collection(context.collection.queries, alone)))
    assert made.only("small").frame.equals(other.frame)


def test_the_written_form_of_within() -> None:
    made = retrieval.within(retrieval.bm25() % 10, chunks="small") % 5
    assert str(made) == 'within(bm25 % 10, chunks="small") % 5'
    assert parse(str(made)) == made
    for text, words in (
        ("within(bm25)", "within lacks the name of a chunking"),
        ('within(bm25, random, chunks="a")', "within has 2 pipelines"),
        ('within(reversed, chunks="a")', "can't be first"),
    ):
        with pytest.raises(InputError, match=words):
            parse(text)


def test_a_chunking_that_is_not_there() -> None:
    with pytest.raises(InputError, match="s: within: no passage is of the chunking 'huge'; there are large, small"):
        retrieve({"s": 'within(bm25, chunks="huge")'}, two_chunkings())
    with pytest.raises(InputError, match="within: no passage is of the chunking 'a'; no passage has one"):
        retrieve(
            {"s": 'within(bm25, chunks="a")'},
            StepContext.of(
                Collection.of(queries={"query": ["q"], "text": ["x"]}, passages={"passage": ["p"], "text": ["x"]})
            ),
        )


def test_systems_within_one_chunking_share_what_they_have_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    real = Bm25.apply

    def watched(self: Bm25, before: Contexts | None, context: StepContext) -> Contexts:
        ran.append(context.depth)
        return real(self, before, context)

    monkeypatch.setattr(Bm25, "apply", watched)
    texts = {"passage": [f"d:{n}-{n + 1}@{name}" for name in "sl" for n in range(300)], "text": ["mill"] * 600}
    context = StepContext.of(Collection.of(queries={"query": ["q"], "text": ["mill"]}, passages=texts))
    systems = {
        "first": 'within(bm25, chunks="s") % 1',
        "all": 'within(bm25, chunks="s")',
        "deep": 'within(bm25, chunks="s") % 250',
        "turned": 'within(bm25 >> reversed, chunks="s") % 2',
        "fused": 'fused(within(bm25 % 3, chunks="s"), within(bm25, chunks="l") % 4)',
        "nested": 'within(within(bm25, chunks="s"), chunks="s") % 2',
    }
    made = retrieve(systems, context)
    # Once within s, once within l, and once within s in s.
    assert sorted(ran) == [2, 4, 250]
    assert [made.only(name).frame.height for name in systems] == [1, 100, 250, 2, 7, 2]
    for name, system in systems.items():
        assert made.only(name) == retrieve({name: system}, context), "no system changes what another one gives"
