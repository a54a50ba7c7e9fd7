"""Re-ranking by asking a model: a perfect judge, counts of calls, and what models write."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError
from ragworth.llm.scripted import Scripted
from ragworth.retrieval import Pipeline, retrieve
from ragworth.retrieval.reranker import LlmReranker
from ragworth.retrieval.steps.listwise import (
    MISSING,
    STRANGE,
    TWICE,
    Listwise,
    parse_permutation,
    sliding_windows,
    truncate_words,
)
from ragworth.retrieval.steps.useful import Useful
from tests.retrieval.judges import METHODS, graded, grades, ideal, perfect, reranked
from tests.strategies import examples
from tests.tiers import slow


@pytest.mark.parametrize("step", METHODS, ids=str)
@examples(25)
@given(values=st.lists(st.integers(1, 9), max_size=20))
def test_a_perfect_judge_gives_the_ideal_order(step: LlmReranker, values: list[int]) -> None:
    """Equal grades stay in the order before."""
    model = Scripted(perfect)
    assert reranked(step, values, model) == ideal(values)
    assert model.calls <= step.max_calls(len(values))


@pytest.mark.parametrize("step", METHODS, ids=str)
def test_only_the_first_are_reranked(step: LlmReranker) -> None:
    values = [5, 6, 7, 8, 9, 9]
    assert reranked(replace(step, depth=3), values) == [2, 1, 0, 3, 4, 5]
    assert reranked(replace(step, depth=50), values) == ideal(values)


def test_scores_are_those_of_the_judge() -> None:
    context, before = graded([3, 7])
    assert Useful(depth=1).apply(before, context).frame["score"].to_list() == [pytest.approx(0.3), None]
    assert Useful().apply(before, context).frame["score"].to_list() == pytest.approx([0.7, 0.3])
    assert Listwise().apply(before, context).frame["score"].to_list() == [None, None]


def test_a_model_that_only_writes() -> None:
    model = Scripted(lambda request: "Ann" if grades(request)[0] > 4 else "NO-RESPONSE", abilities=("generate",))
    assert reranked(Useful(estimator="sampled"), [1, 6, 2, 9], model) == [1, 3, 0, 2]
    with pytest.raises(InputError, match=r"s: .*abstention"):
        retrieve({"s": Pipeline.of("bm25") >> Useful()}, graded([1], model)[0])


# Calls, as the papers count them.


@pytest.mark.parametrize("n", [0, 1, 20, 21, 31, *slow(2, 19, 30, 100)])
@pytest.mark.parametrize(("window", "step"), [(20, 10), (5, 4), *slow((4, 2), (3, 1))])
def test_windows_of_lists(n: int, window: int, step: int) -> None:
    """One for a list that fits; else ⌈(n − w) / s⌉ more: 9 for a hundred passages with 20 and 10, as in the paper."""
    found = list(sliding_windows(n, window, step))
    assert len(found) == (0 if n < 2 else 1 + max(0, math.ceil((n - window) / step)))
    assert {place for start, end in found for place in range(start, end)} == (set(range(n)) if n > 1 else set())
    if (n, window, step) == (100, 20, 10):
        assert len(found) == 9
    model = Scripted(perfect)
    values = [(7 * place) % 10 for place in range(n)]
    order = reranked(Listwise(window=window, step=step), values, model)
    assert model.calls == len(found)
    # What the window carries to the front is in order.
    assert order[: max(0, window - step)] == ideal(values)[: max(0, window - step)]
    assert sorted(order) == list(range(n))


# What a model writes.


@pytest.mark.parametrize(
    ("text", "places", "remarks"),
    [
        ("[2] > [1] > [3]", [1, 0, 2], {}),
        ("The order is [3] > [1] > [2].", [2, 0, 1], {}),
        ("2 > 3 > 1", [1, 2, 0], {}),
        ("2, 3, 1.", [1, 2, 0], {}),
        ("[2]", [1, 0, 2], {MISSING: 2}),
        ("[2] > [2] > [1] > [3] > [2]", [1, 0, 2], {TWICE: 2}),
        ("[4] > [0] > [3] > [1] > [2]", [2, 0, 1], {STRANGE: 2}),
        ("[3] > [3] > [7]", [2, 0, 1], {TWICE: 1, STRANGE: 1, MISSING: 2}),
    ],
)
def test_permutations(text: str, places: list[int], remarks: dict[str, int]) -> None:
    found = parse_permutation(text, 3)
    assert found.places == places
    assert found.remarks == remarks


@pytest.mark.parametrize("text", ["", "the second one", "In 2023 there were 3", "[9] > [10]", "-1", "[²]", "[two]"])
def test_no_permutation(text: str) -> None:
    with pytest.raises(NoValue):
        parse_permutation(text, 3)


def test_the_last_number_of_a_truncated_order_may_lack_digits() -> None:
    assert parse_permutation("2 > 3 > 1", 12, cut_off=True).places[:3] == [1, 2, 0]
    assert parse_permutation("2 > 3 > 1", 12, cut_off=True).remarks[MISSING] == 10
    assert parse_permutation("[2] > [3] > [1]", 12, cut_off=True).remarks[MISSING] == 9


@given(st.text(alphabet="[]>, 0123456789ab.", max_size=60), st.integers(1, 8))
def test_any_text_is_a_permutation_or_none(text: str, n: int) -> None:
    try:
        found = parse_permutation(text, n)
    except NoValue:
        return
    assert sorted(found.places) == list(range(n))


def test_what_was_mended_is_noted() -> None:
    context, before = graded([1, 2, 3], Scripted(lambda request: "[3] > [3] > [8]"))
    made = Listwise().apply(before, context)
    assert made.frame["passage"].to_list() == ["p002", "p000", "p001"]
    assert [note.partition(": ")[2] for note in made.notes] == [f"{MISSING} (2)", f"{STRANGE} (1)", f"{TWICE} (1)"]


def test_only_the_beginning_is_shown() -> None:
    assert truncate_words("one two  three four", 3) == "one two  three"
    assert truncate_words("one two", 0) == "one two"
    assert truncate_words("", 3) == ""
    assert truncate_words(" one", 1) == " one"
    assert truncate_words("one two \n", 2) == truncate_words("one two \n", 9) == "one two"
    # Scripts without blanks between words count by their signs.
    assert truncate_words("風車" * 2500, 300) == "風車" * 150
    assert truncate_words("the 風車 of Ann", 3) == "the 風車"
