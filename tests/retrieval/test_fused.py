"""Fusion: the written form, ranks by hand, lists that lack passages or say nothing, and sharing."""

from __future__ import annotations

import pytest

from ragworth.core.errors import InputError
from ragworth.data import Contexts
from ragworth.retrieval import StepContext, parse, retrieve
from ragworth.retrieval.pipeline import Step
from ragworth.retrieval.steps.bm25 import Bm25
from ragworth.retrieval.steps.combined import Fused
from tests.retrieval.samples import passages, world


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("fused(bm25 % 100, random % 50)", "fused(bm25 % 100, random % 50)"),
        ("fused( bm25>>top(5),(random % 3 >> reversed), )", "fused(bm25 % 5, random % 3 >> reversed)"),
        ("fused(bm25, random, k=60)", "fused(bm25, random)"),
        ("fused(fused(bm25, random), oracle, k=1) >> reversed", "fused(fused(bm25, random), oracle, k=1) >> reversed"),
    ],
)  # fmt: skip
def test_the_written_form(written: str, printed: str) -> None:
    made = parse(written)
    assert str(made) == printed
    assert parse(printed) == made
    assert hash(parse(printed)) == hash(made)
    assert parse(printed).digest == made.digest


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("fused", 1, "fused has 0 pipelines"),
        ("fused(bm25)", 1, "two or more"),
        ("fused(bm25, revers)", 13, "did you mean reversed"),
        ("fused(bm25, reversed % 3)", 13, "reversed can't be first"),
        ("fused(bm25, random(sead=1))", 20, "did you mean seed"),
        ("fused(bm25, random, k=-1)", 1, "0 or more"),
        ("fused(bm25, 'x')", 13, "where a step should stand"),
        ("bm25 >> fused(bm25, random)", 9, "it retrieves on its own"),
        ("bm25(random)", None, ""),
    ],
)
def test_errors_point_at_the_place(text: str, at: int | None, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    if at is not None:
        assert f"at character {at}:" in str(caught.value)
        assert words in str(caught.value)


def run(scores: dict[str, float], query: str = "q1") -> Contexts:
    return Contexts({query: scores})


def fused(*lists: Contexts, **settings: object) -> dict[str, float]:
    """The fused scores of some lists, best first."""
    step = Fused(*["bm25"] * len(lists), **settings)
    frame = step.join(lists, world()).frame
    assert frame["rank"].to_list() == list(range(1, frame.height + 1))
    return dict(frame.select("passage", "score").iter_rows())


def test_ranks_by_hand() -> None:
    # a: 1 / 61 + 1 / 62; b: 1 / 62 + 1 / 61; c: 1 / 63. Equal ones by id, descending.
    made = fused(run({"a": 9, "b": 5, "c": 1}), run({"b": 0.3, "a": 0.2}))
    assert list(made) == ["b", "a", "c"]
    assert made == pytest.approx({"a": 1 / 61 + 1 / 62, "b": 1 / 61 + 1 / 62, "c": 1 / 63})
    assert made["a"] == made["b"]
    # k = 0: a 1 / 1 + 1 / 2, b 1 / 2 + 1 / 1, c 1 / 3.
    made = fused(run({"a": 9, "b": 5, "c": 1}), run({"b": 0.3, "a": 0.2}), k=0)
    assert made == pytest.approx({"a": 1.5, "b": 1.5, "c": 1 / 3})


def test_a_list_that_says_nothing_about_a_query() -> None:
    assert fused(run({"a": 2.0}), Contexts({"q1": {}})) == {"a": 1 / 61}


def test_in_a_pipeline_and_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int]] = []
    real = Bm25.apply

    def watched(self: Step, before: Contexts | None, context: StepContext) -> Contexts:
        calls.append((str(self), context.depth))
        return real(self, before, context)  # type: ignore[arg-type]

    monkeypatch.setattr(Bm25, "apply", watched)
    systems = {
        "bm25": "bm25 % 3",
        "hybrid": "fused(bm25 % 2, bm25(b=0)) % 3",
        "deeper": "fused(fused(bm25 % 200, bm25(b=0)), oracle) >> reversed",
        "again": "fused(bm25 % 2, bm25(b=0)) >> reversed",
    }
    made = retrieve(systems, world())
    assert sorted(calls) == [("bm25", 200), ("bm25(b=0)", 100)]
    for name, system in systems.items():
        assert made.only(name) == retrieve({name: system}, world()).only(name)
    assert passages(made, "hybrid")["q2"] == ["p3"]
    assert passages(made, "hybrid")["q3"] == passages(made, "hybrid")["q4"] == []  # what none retrieves
    assert len(passages(made, "hybrid")["q1"]) == 3
    assert (
        passages(made, "again")["q1"]
        == passages(retrieve({"x": "fused(bm25 % 2, bm25(b=0))"}, world()), "x")["q1"][::-1]
    )


def test_what_is_inside_is_checked_before_anything_runs() -> None:
    with pytest.raises(InputError) as caught:
        retrieve({"s": "fused(run('gone.txt'), fused(bm25, oracle))"}, world(labels=None))
    assert "s: run: there is no file gone.txt" in str(caught.value)
    assert "s: oracle lacks an input: no relevance labels" in str(caught.value)
    made = parse("fused(run('a.txt'), fused(bm25, run('b.txt') >> oracle))").steps[0]
    assert [path.name for path in made.files(world())] == ["a.txt", "b.txt"]
    assert set(made.needs) == {"passages", "query texts", "relevance"}
    assert made.sources(world()) == ()
