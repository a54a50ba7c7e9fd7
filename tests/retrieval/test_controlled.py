"""Contexts made on purpose: what they must always hold, and worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.errors import InputError
from ragworth.formats import write
from ragworth.retrieval import retrieve
from ragworth.tables import Contexts
from tests.retrieval.samples import LABELS, PASSAGES, QUERIES, passages, world

IDS = [f"p{number}" for number in range(8)]
TEXTS = dict.fromkeys(IDS, "mill")
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
    setting = world(TEXTS, dict.fromkeys(["q1", "q2", "q3"], "mill"), **more)
    return passages(retrieve({"s": pipeline}, setting), "s")


@pytest.fixture(scope="session")
def behind(scratch: Path) -> Behind:
    """What steps make of a run."""

    def made(steps: str, run: Shown, **more: Any) -> Shown:
        ranked = {query: {passage: -float(n) for n, passage in enumerate(ids)} for query, ids in run.items()}
        write(Contexts(ranked), scratch / "given.parquet")
        return shown(f"run(given.parquet) >> {steps}", folder=scratch, **more)

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


@given(GRADES, st.integers(1, 9), st.integers(0, 3))
def test_standing_first(labels: Labels, k: int, seed: int) -> None:
    best = shown("oracle", labels=labels)
    worst = shown(f"adversary(seed={seed}) % {k}", labels=labels)
    for query in ("q1", "q2", "q3"):
        grades = labels.get(query, {})
        assert best[query] == sorted((p for p in grades if grades[p] >= 1), key=lambda p: (grades[p], p), reverse=True)
        assert len(worst[query]) == min(k, 8 - len(best[query]))
        judged = sorted((p for p in grades if grades[p] < 1), reverse=True)
        assert worst[query][: len(judged)] == judged[:k]
        assert not set(worst[query]) & set(best[query])


@given(st.integers(1, 10), st.integers(0, 3), st.sets(st.sampled_from(["q1", "q2", "x"]), min_size=1))
def test_random(k: int, seed: int, queries: set[str]) -> None:
    every = shown(f"random(seed={seed})")
    some = shown(f"random(seed={seed}) % {k}")
    assert all(len(set(ids)) == len(ids) and set(ids) <= set(IDS) for ids in every.values())
    assert some == {query: ids[:k] for query, ids in every.items()}
    # Other queries, and another order of passages, change nothing.
    setting = world(dict(reversed(TEXTS.items())), dict.fromkeys(sorted(queries), ""))
    alone = passages(retrieve({"s": f"random(seed={seed}) % {k}"}, setting), "s")
    assert all(alone[query] == some[query] for query in queries - {"x"})


def test_random_is_the_same_everywhere(behind: Behind) -> None:
    """Fixed by the seeds and ids alone: the numbers of one machine are those of all."""
    assert shown("random % 3") == RANDOM
    assert behind("shuffled", {"q1": IDS})["q1"] == SHUFFLED
    assert shown("random(seed=1) % 3") != RANDOM
    assert shown("random % 3", seed=1) != RANDOM


def test_random_is_even() -> None:
    """Of 400 queries each of 8 passages is first about 50 times; beyond 4.5 standard deviations it is not chance."""
    queries = {f"q{number}": "" for number in range(400)}
    made = retrieve({"s": "random % 1"}, world(TEXTS, queries))
    counts = made.frame["passage"].value_counts()["count"].to_list()
    assert len(counts) == 8
    assert all(abs(count - 50) < 4.5 * (400 * 1 / 8 * 7 / 8) ** 0.5 for count in counts)


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
        "first": ["p4", "p3", "p5"],
        "turned": ["p2", "p1"],
        "last": ["p4", "p2"],
    }


def test_only_passages_with_a_text_are_taken_from_labels() -> None:
    labels: Labels = {"q1": {"p1": 1, "gone": 3, "lost": 0}}
    made = retrieve({"o": "oracle", "a": "adversary"}, world(labels=labels))
    assert passages(made, "o")["q1"] == ["p1"]
    assert set(passages(made, "a")["q1"]) == set(PASSAGES) - {"p1"}
    bare = retrieve({"o": "oracle", "a": "adversary"}, world({}, labels=labels))
    assert passages(bare, "o")["q1"] == ["gone", "p1"]
    assert passages(bare, "a")["q1"] == ["lost"]


def test_a_judgment_that_failed_is_none() -> None:
    rows = {"query": ["q1"] * 2, "passage": ["p1", "p2"], "value": [1.0, None], "status": ["ok", "refused"]}
    setting = world(labels=rows)  # type: ignore[arg-type]
    made = retrieve({"o": "oracle", "a": "bm25 >> adversary"}, setting)
    assert passages(made, "o")["q1"] == ["p1"]
    assert passages(made, "a")["q1"] == ["p2", "p4"]


@pytest.mark.parametrize("pipeline", ["oracle", "adversary", "bm25 >> oracle"])
def test_labels_are_needed(pipeline: str) -> None:
    with pytest.raises(InputError, match="no relevance labels"):
        retrieve({"s": pipeline}, world(labels=None))


def test_labels_of_the_setting_count_before_those_of_the_collection() -> None:
    from ragworth.tables import Judgments

    setting = world(relevance=Judgments({"q1": {"p3": 1}}))
    assert passages(retrieve({"o": "oracle"}, setting), "o")["q1"] == ["p3"]
    assert QUERIES.keys() >= LABELS.keys()


RANDOM = {"q1": ["p1", "p3", "p6"], "q2": ["p0", "p7", "p4"], "q3": ["p7", "p4", "p6"]}
SHUFFLED = ["p7", "p4", "p6", "p3", "p2", "p1", "p5", "p0"]
