"""Fusion: the written form, both methods by hand, lists that lack passages or say nothing, and sharing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from ragworth.errors import InputError
from ragworth.llm.scripted import Scripted
from ragworth.retrieval import StepContext, parse, retrieve
from ragworth.retrieval.contract import Step
from ragworth.retrieval.pipeline import Pipeline
from ragworth.retrieval.rerankers.asker import StepAsker
from ragworth.retrieval.steps.bm25 import Bm25
from ragworth.retrieval.steps.fused import Fused
from ragworth.tables import Contexts
from tests.retrieval.samples import passages, world


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("fused(bm25 % 100, random % 50)", "fused(bm25 % 100, random % 50)"),
        ("fused( bm25>>top(5),(random % 3 >> reversed), )", "fused(bm25 % 5, random % 3 >> reversed)"),
        ("fused(bm25, random, k=60, method=rrf)", "fused(bm25, random)"),
        ("fused(bm25(k1=0.9), random, weights='2  1.50') % 10", 'fused(bm25(k1=0.9), random, weights="2, 1.5") % 10'),
        ("fused(fused(bm25, random), oracle, k=1) >> reversed", "fused(fused(bm25, random), oracle, k=1) >> reversed"),
        ("fused(bm25, dense, method=weighted, scale=z)", 'fused(bm25, dense, method="weighted", scale="z")'),
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
        ("fused(bm25, random, method=mean)", 1, "rrf, weighted"),
        ("fused(bm25, random, k=-1)", 1, "0 or more"),
        ("fused(bm25, random, weight=1)", 21, "did you mean weights"),
        ("fused(bm25, random, weights='1')", 1, "for each pipeline"),
        ("fused(bm25, random, weights='1, x')", 1, "numbers, such as"),
        ("fused(bm25, random, weights='1, nan')", 1, "numbers, such as"),
        ("fused(bm25, random, weights='-1, 2')", 1, "0 or more"),
        ("fused(bm25, random, weights='0 0')", 1, "not all of them 0"),
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
    step = Fused(*["bm25"] * len(lists), **settings)  # type: ignore[arg-type]
    frame = step.join(lists, world()).frame
    assert frame["rank"].to_list() == list(range(1, frame.height + 1))
    return dict(frame.select("passage", "score").iter_rows())


def test_ranks_by_hand() -> None:
    # a: 1 / 61 + 1 / 62; b: 1 / 62 + 1 / 61; c: 1 / 63. Equal ones by id, descending.
    made = fused(run({"a": 9, "b": 5, "c": 1}), run({"b": 0.3, "a": 0.2}))
    assert list(made) == ["b", "a", "c"]
    assert made == pytest.approx({"a": 1 / 61 + 1 / 62, "b": 1 / 61 + 1 / 62, "c": 1 / 63})
    assert made["a"] == made["b"]
    # Twice the weight for the first list, and k = 0: a 2 / 1 + 1 / 2, b 2 / 2 + 1 / 1, c 2 / 3.
    made = fused(run({"a": 9, "b": 5, "c": 1}), run({"b": 0.3, "a": 0.2}), k=0, weights="2 1")
    assert made == pytest.approx({"a": 2.5, "b": 2.0, "c": 2 / 3})


def test_scores_by_hand() -> None:
    # First list: 10 → 1, 6 → 0.5, 2 → 0. Second: 0.4 → 1, 0.2 → 0. What a list lacks is 0 there.
    lists = run({"a": 10, "b": 6, "c": 2}), run({"b": 0.4, "d": 0.2})
    assert fused(*lists, method="weighted") == pytest.approx({"b": 1.5, "a": 1.0, "d": 0.0, "c": 0.0})
    assert list(fused(*lists, method="weighted")) == ["b", "a", "d", "c"]
    weighted = fused(*lists, method="weighted", weights="0.8, 0.2")
    assert weighted == pytest.approx({"a": 0.8, "b": 0.6, "d": 0.0, "c": 0.0})


def test_deviations_by_hand() -> None:
    # First list: mean 6, deviation √(32 / 3), so z = ±4 / √(32 / 3) = ±1.2247. Second: mean 0.3, z = ±1.
    # d is not in the first and has its least, −1.2247; a and c are not in the second and have −1.
    lists = run({"a": 10, "b": 6, "c": 2}), run({"b": 0.4, "d": 0.2})
    z = 1.5**0.5
    expected = {"b": 1.0, "a": z - 1, "d": -z - 1, "c": -z - 1}
    assert fused(*lists, method="weighted", scale="z") == pytest.approx(expected)


def test_a_list_that_says_nothing_about_a_query() -> None:
    empty = run({"x": 1.0}, "q2")
    for scale in ("minmax", "z"):
        step = Fused("bm25", "bm25", method="weighted", scale=scale)
        made = step.join([run({"a": 2.0, "b": 1.0}), empty], world())
        assert made.frame.filter(query="q1")["passage"].to_list() == ["a", "b"]
        assert made.frame.filter(query="q2")["passage"].to_list() == ["x"]
    assert fused(run({"a": 2.0}), Contexts({"q1": {}})) == {"a": 1 / 61}


@pytest.mark.parametrize("part", ["random", "bm25 >> reversed % 3", "bm25 >> listwise", "oracle"])
def test_lists_without_scores_are_refused_before_anything_runs(part: str) -> None:
    with pytest.raises(InputError, match="has no scores") as caught:
        Pipeline.of(f'fused(bm25, {part}, method="weighted")')
    assert 'method="rrf"' in str(caught.value)
    assert Pipeline.of(f"fused(bm25, {part})").steps


def test_a_file_without_scores_is_refused_when_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("system,query,rank,passage\nx,q1,1,a\nx,q1,2,b\n")
    systems = {"s": f'fused(bm25, run("{tmp_path}/run.csv"), method="weighted")'}
    with pytest.raises(InputError, match=r"s: .*has no scores to weight"):
        retrieve(systems, world())


@pytest.mark.parametrize("scale", ["minmax", "z"])
def test_passages_without_a_score_count_as_lacking(scale: str) -> None:
    deep = run({"a": 3.0, "b": 1.0, "c": 2.0})
    score = pl.when(pl.col("passage") != "b").then("score")
    part = Contexts.trusted(run({"a": 5.0, "c": 4.0, "b": 0.0}).frame.with_columns(score.alias("score")))
    settings = {"method": "weighted", "scale": scale}
    found = fused(deep, part, **settings)
    assert found == fused(deep, run({"a": 5.0, "c": 4.0}), **settings)
    assert set(found) == {"a", "b", "c"}
    if scale == "minmax":
        assert found == {"a": 2.0, "b": 0.0, "c": 0.5}


def test_a_query_whose_scores_are_all_unknown_is_not_counted() -> None:
    known, other = run({"a": 3.0, "b": 1.0}), run({"b": 9.0, "a": 8.0})
    unknown = other.frame.with_columns(pl.lit(None, pl.Float64).alias("score"))
    both = Contexts.trusted(pl.concat([unknown, run({"x": 1.0}, "q2").frame]))
    for scale in ("minmax", "z"):
        step = Fused("bm25", "bm25", method="weighted", scale=scale)
        assert step.join([known, both], world()).frame.filter(query="q1")["passage"].to_list() == ["a", "b"]


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


def test_a_plan_goes_by_ranks_where_nobody_was_asked(tmp_path: Path) -> None:
    system = {"s": 'fused(bm25 % 3 >> pointwise, bm25 % 3, method="weighted") % 3'}
    asker = StepAsker(Scripted(lambda request: {"YES": 0.5, "NO": 0.5}), tmp_path / "calls.sqlite", plan=True)
    context = replace(world(), model_access=asker)
    assert (
        retrieve(system, context).frame["passage"].to_list()
        == retrieve({"s": "bm25 % 3"}, context).frame["passage"].to_list()
    )
    assert [told.step for told in asker.forecasts] == ["pointwise"]
