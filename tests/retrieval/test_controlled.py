"""Contexts made on purpose: what they must always hold, and worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.core.errors import InputError
from ragworth.data import Contexts, Judgments
from ragworth.evaluation.stages.score import unlabelled_copy_notes
from ragworth.formats import write
from ragworth.retrieval import retrieve
from tests.retrieval.samples import LABELS, PASSAGES, QUERIES, passages, world
from tests.strategies import examples

IDS = [f"p{number}" for number in range(8)]
TEXTS = {each: f"mill {each}" for each in IDS}
RUNS = st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), st.permutations(IDS).map(lambda ids: ids[:5]), min_size=1)
GRADES = st.dictionaries(
    st.sampled_from(["q1", "q2"]),
    st.dictionaries(st.sampled_from(IDS), st.sampled_from([0, 1, 2, 3]), min_size=1),
    min_size=1,
)


Shown = dict[str, list[str]]
Labels = dict[str, dict[str, float]]
Behind = Callable[..., Shown]


def shown(pipeline: str, **more: Any) -> Shown:
    """What a pipeline gives for three queries."""
    context = world(TEXTS, dict.fromkeys(["q1", "q2", "q3"], "mill"), **more)
    return passages(retrieve({"s": pipeline}, context), "s")


@pytest.fixture(scope="session")
def behind(scratch: Path) -> Behind:
    """What steps make of a run."""

    def made(steps: str, run: Shown, **more: Any) -> Shown:
        ranked = {query: {passage: -float(n) for n, passage in enumerate(ids)} for query, ids in run.items()}
        write(Contexts(ranked), scratch / "given.parquet")
        return shown(f"run('given.parquet') >> {steps}", folder=scratch, **more)

    return made


@given(RUNS)
def test_reversed_turns_round(behind: Behind, run: Shown) -> None:
    turned = behind("reversed", run)
    assert {query: ids for query, ids in turned.items() if ids} == {query: ids[::-1] for query, ids in run.items()}
    assert behind("reversed >> reversed", run) == behind("top(5)", run)


@given(RUNS, st.integers(0, 5), st.integers(1, 6))
def test_shuffled_keeps_the_passages_and_forgets_their_order(behind: Behind, run: Shown, seed: int, k: int) -> None:
    mixed = behind(f"shuffled(seed={seed})", run)
    assert {query: sorted(ids) for query, ids in mixed.items() if ids} == {q: sorted(ids) for q, ids in run.items()}
    assert behind(f"reversed >> shuffled(seed={seed})", run) == mixed
    assert behind(f"shuffled(seed={seed}) % {k}", run) == {query: ids[:k] for query, ids in mixed.items()}


@given(RUNS, GRADES, st.integers(1, 3))
def test_oracle_behind_a_run(behind: Behind, run: Shown, labels: Labels, level: int) -> None:
    best = behind(f"oracle(level={level})", run, labels=labels)
    kept = behind(f"oracle(level={level}, fill=false)", run, labels=labels)
    for query in ("q1", "q2", "q3"):
        relevant = {p for p, grade in labels.get(query, {}).items() if grade >= level}
        retrieved = [p for p in run.get(query, []) if p in relevant]
        assert kept[query] == retrieved
        assert best[query][: len(retrieved)] == retrieved
        assert set(best[query]) == relevant
        rest = [labels[query][p] for p in best[query][len(retrieved) :]]
        assert rest == sorted(rest, reverse=True)


@given(RUNS, GRADES, st.integers(1, 3))
def test_adversary_behind_a_run(behind: Behind, run: Shown, labels: Labels, level: int) -> None:
    worst = behind(f"adversary(level={level})", run, labels=labels)
    for query in ("q1", "q2", "q3"):
        grades = labels.get(query, {})
        assert worst[query] == [p for p in run.get(query, []) if grades.get(p, 0) < level]


@given(st.integers(1, 10), st.integers(0, 3), st.sets(st.sampled_from(["q1", "q2", "x"]), min_size=1))
def test_random(k: int, seed: int, queries: set[str]) -> None:
    every = shown(f"random(seed={seed})")
    some = shown(f"random(seed={seed}) % {k}")
    assert all(len(set(ids)) == len(ids) and set(ids) <= set(IDS) for ids in every.values())
    assert some == {query: ids[:k] for query, ids in every.items()}
    # Other queries, and another order of passages, change nothing.
    context = world(dict(reversed(TEXTS.items())), dict.fromkeys(sorted(queries), ""))
    alone = passages(retrieve({"s": f"random(seed={seed}) % {k}"}, context), "s")
    assert all(alone[query] == some[query] for query in queries - {"x"})


def test_worked_by_hand() -> None:
    # Words shared with "Who built the mill?": p1 has built, the, mill; p2 and p4 have the and mill, and p4,
    # with mill twice, is longer.
    made = retrieve(
        {
            "bm25": "bm25",
            "oracle": "oracle",
            "behind": "bm25 >> oracle",
            "adversary": "bm25 >> adversary",
            "first": "adversary % 3",
            "turned": "bm25 % 2 >> reversed",
            "last": "bm25 >> reversed % 2",
        },
        world(),
    )
    assert {name: passages(made, name)["q1"] for name in made.systems} == {
        "bm25": ["p1", "p2", "p4"],
        "oracle": ["p1", "p2"],
        "behind": ["p1", "p2"],
        "adversary": ["p4"],
        "first": ["p4", "p3"],
        "turned": ["p2", "p1"],
        "last": ["p4", "p2"],
    }


def test_only_passages_with_a_text_are_taken_from_labels() -> None:
    labels: Labels = {"q1": {"p1": 1, "gone": 3, "lost": 0}}
    made = retrieve({"o": "oracle", "a": "adversary"}, world(labels=labels))
    assert passages(made, "o")["q1"] == ["p1"]
    assert set(passages(made, "a")["q1"]) == set(PASSAGES) - {"p1", "p5"}
    assert made.notes[0] == "oracle leaves out 1 relevant passage without a text: 1 query ('q1')"
    bare = retrieve({"o": "oracle", "a": "adversary"}, world({}, labels=labels))
    assert passages(bare, "o")["q1"] == ["gone", "p1"]
    assert passages(bare, "a")["q1"] == ["lost"]


MILL = "The mill on the Wye was built by Ann Lee in 1850, and it grinds corn to this day."


@pytest.mark.parametrize(
    ("text", "is_copy"),
    [
        (MILL, True),
        (f"  {MILL.upper()}\n", True),
        ("The mill on the Wye was built by Ann Lee in 1850 – and it grinds corn, to this day!", True),
        (f"Mills of the Wye. {MILL} See also: bread.", True),
        (MILL.replace("grinds", "grids"), True),
        (MILL.replace("1850", "1830"), False),  # another version, which misleads
        (MILL.replace("was built", "was not built"), False),
        ("The mill on the Wye was built by Ann Lee.", False),
        ("Ann Lee", False),
        ("!", False),
    ],
)
def test_a_copy_of_a_relevant_passage_is_not_shown_as_irrelevant(text: str, is_copy: bool) -> None:
    texts = {"gold": MILL, "bread": "Bread is baked at night.", "same": text}
    context = world(texts, {"q1": "mill bread Ann"}, {"q1": {"gold": 1}})
    made = retrieve({"a": "adversary"}, context)
    assert ("same" not in passages(made, "a")["q1"]) == is_copy
    noted = "adversary leaves out 1 unlabelled passage with the text of a relevant one, or nearly so: 1 query ('q1')"
    assert (noted in made.notes) == is_copy


def test_short_relevant_passages_are_copied_only_word_for_word() -> None:
    texts = {"gold": "Ann Lee", "longer": "Ann Lee sold the mill.", "same": "ann lee."}
    made = retrieve({"a": "bm25 >> adversary"}, world(texts, {"q1": "Ann Lee"}, {"q1": {"gold": 1}}))
    assert passages(made, "a")["q1"] == ["longer"]


def test_copies_that_are_shown_without_a_label_are_noted() -> None:
    texts = pl.DataFrame({"passage": ["a", "b", "c", "d"], "text": [MILL, f"{MILL.upper()} ", MILL, " "]})
    labels = Judgments({"q1": {"a": 1, "d": 1}, "q2": {"c": 1, "b": 0, "a": 0}})
    shown = Contexts({"q1": {"a": 3.0, "b": 2.0}, "q2": {"b": 1.0}})
    assert unlabelled_copy_notes(shown, labels, texts) == [
        "1 unlabelled passage has the text of a relevant passage (1 query: 'q1'), but metrics count what isn't "
        "labelled as not relevant; label copies like their originals, or remove them"
    ]
    assert unlabelled_copy_notes(shown.only("run").having("query", ["q2"]), labels, texts) == []


def test_a_copy_that_was_labelled_is_what_its_label_says() -> None:
    texts = {"gold": MILL, "same": MILL}
    made = retrieve({"a": "adversary"}, world(texts, {"q1": "mill"}, {"q1": {"gold": 1, "same": 0}}))
    assert passages(made, "a")["q1"] == ["same"]


def test_blank_passages_are_never_shown(tmp_path: Path) -> None:
    texts = {"p0": "mill", "p1": " \n", "p2": "bread", "p3": "\u3000"}
    write(Contexts({"q1": {"p1": 4.0, "p3": 3.0, "p2": 2.0, "p0": 1.0}}), tmp_path / "given.parquet")
    context = world(texts, {"q1": "mill"}, {"q1": {"p0": 1, "p3": 1, "p1": 0}}, folder=tmp_path)
    for pipeline, expected in (
        ("oracle", ["p0"]),
        ("adversary", ["p2"]),
        ("best_by(relevance)", ["p0", "p2"]),
    ):
        made = retrieve({"s": f"run('given.parquet') >> {pipeline}"}, context)
        assert passages(made, "s")["q1"] == expected
    assert set(passages(retrieve({"s": "random"}, context), "s")["q1"]) == {"p0", "p2"}


def test_a_judgment_that_failed_is_none() -> None:
    rows = {"query": ["q1"] * 2, "passage": ["p1", "p2"], "value": [1.0, None], "status": ["ok", "refused"]}
    context = world(labels=rows)  # type: ignore[arg-type]
    made = retrieve({"o": "oracle", "a": "bm25 >> adversary"}, context)
    assert passages(made, "o")["q1"] == ["p1"]
    assert passages(made, "a")["q1"] == ["p2", "p4"]


def test_labels_of_the_setting_count_before_those_of_the_collection() -> None:
    context = world(relevance=Judgments({"q1": {"p3": 1}}))
    assert passages(retrieve({"o": "oracle"}, context), "o")["q1"] == ["p3"]
    assert QUERIES.keys() >= LABELS.keys()


def judged(aspect: str, values: Labels) -> Judgments:
    rows = [(q, p, aspect, value, "ok", "test") for q, items in values.items() for p, value in items.items()]
    return Judgments.trusted(pl.DataFrame(rows, schema=Judgments.schema, orient="row"))


@examples(40)
@given(RUNS, GRADES, GRADES)
def test_best_by(behind: Behind, run: Shown, labels: Labels, grades: Labels) -> None:
    values = {query: {p: grade / 4 for p, grade in items.items()} for query, items in grades.items()}
    known = {"labels": labels, "judgments": judged("abstention", values)}
    by_utility, by_label = behind("best_by(utility)", run, **known), behind("best_by(relevance)", run, **known)
    by_mine = behind('best_by("my own")', run, labels=labels, judgments=judged("my own", values))
    for query, found in run.items():
        signs = {p: 1 if labels.get(query, {}).get(p, 0) >= 1 else -1 for p in found}
        candidates = [p for p in found if p in values.get(query, {})]
        assert by_utility[query] == sorted(candidates, key=lambda p: -signs[p] * (1 - values[query][p]))
        assert by_mine[query] == sorted(candidates, key=lambda p: -values[query][p])
        assert by_label[query] == sorted(found, key=lambda p: -signs[p])


def test_passages_that_nobody_judged_are_no_candidates() -> None:
    context = world(judgments=judged("downstream", {"q1": {"p2": 0.5}}))
    made = retrieve({"s": "bm25 >> best_by(downstream)"}, context)
    assert passages(made, "s") == {"q1": ["p2"], "q2": [], "q3": [], "q4": []}
    left = "3 passages without a judgment of downstream: 2 queries ('q1', 'q2')"
    assert made.notes[0] == f'best_by("downstream") leaves out {left}'


@pytest.mark.parametrize(
    ("pipeline", "words"),
    [
        ("bm25 >> best_by", "best_by lacks the name of a judgment"),
        ("bm25 >> best_by(abstention)", "abstention says how bad a passage is"),
        ("bm25 >> best_by(utility)", "needs judgments of abstention"),
        ("bm25 >> best_by(likelihood)", "needs judgments of likelihood"),
    ],
)
def test_controlled_contexts_that_cannot_be(pipeline: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        retrieve({"s": pipeline}, world())
    assert words in str(caught.value)
