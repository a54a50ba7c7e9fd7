"""Selection: unbiased by design, checked by drawing many times."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

from ragworth.core.errors import InputError
from ragworth.label.disagreement import judge_disagreement
from ragworth.label.selection import Selection, select_items
from ragworth.label.tasks import LabelItem, load_task
from tests.label.samples import small_source

TASK = load_task("relevance")


def make_items(queries: int, each: int = 3) -> list[LabelItem]:
    return [
        TASK.make_item({"query": f"q{q}", "passage": f"p{q}-{p}"}, {"question": "?", "passage": "text"})
        for q in range(queries)
        for p in range(each)
    ]


def test_whole_queries_are_drawn_and_the_seed_decides() -> None:
    items = make_items(10)
    found = select_items(TASK, items, Selection(queries=4, seed=1))
    assert Counter(item.group for item in found) == dict.fromkeys({item.group for item in found}, 3)
    assert len(found) == 12
    assert {(item.stratum, item.probability) for item in found} == {("random", 0.4)}
    assert found == select_items(TASK, items, Selection(queries=4, seed=1))
    assert found != select_items(TASK, items, Selection(queries=4, seed=2))


def test_all_items_by_default_with_probability_one() -> None:
    found = select_items(TASK, make_items(3), Selection())
    assert len(found) == 9 and {item.probability for item in found} == {1.0}


@pytest.mark.slow
def test_items_come_as_often_as_their_probability_says() -> None:
    items = make_items(8, 2)
    disagreement = {item.id: [0.0, 0.2, 1.0][at % 3] for at, item in enumerate(items)}
    counts: Counter[str] = Counter()
    probabilities: dict[str, float] = {}
    draws = 3000
    for seed in range(draws):
        for item in select_items(TASK, items, Selection(queries=2, disputed=4, seed=seed), disagreement):
            counts[item.id] += 1
            assert item.probability is not None
            probabilities[item.id] = item.probability
    for item in items:
        assert counts[item.id] / draws == pytest.approx(probabilities[item.id], abs=4 * (0.25 / draws) ** 0.5)
    # 5 items of 1.0 and 5 of 0.2 share 4: 1.0 gets 2/3. π = 1 − (1 − 2/8)·(1 − 2/3).
    assert probabilities[items[2].id] == pytest.approx(1 - 0.75 / 3)
    assert probabilities[items[0].id] == pytest.approx(0.25)


def test_the_weighted_mean_is_unbiased_and_the_plain_one_is_not() -> None:
    items = make_items(20, 2)
    truth = {item.id: float(at % 4 == 0) for at, item in enumerate(items)}
    disagreement = {name: 0.1 + 0.9 * value for name, value in truth.items()}
    weighted, plain = [], []
    for seed in range(800):
        found = select_items(TASK, items, Selection(queries=4, disputed=6, seed=seed), disagreement)
        weighted.append(sum(truth[item.id] / (item.probability or 0) for item in found) / len(items))
        plain.append(sum(truth[item.id] for item in found) / len(found))
    mean = sum(truth.values()) / len(items)
    assert sum(weighted) / len(weighted) == pytest.approx(mean, abs=0.02)
    assert sum(plain) / len(plain) > mean + 0.1


def test_probabilities_stop_at_one() -> None:
    items = make_items(2, 2)
    disagreement = {items[0].id: 100.0, items[1].id: 1.0, items[2].id: 1.0}
    found = select_items(TASK, items, Selection(queries=0, disputed=2, seed=0), disagreement)
    assert next(item for item in found if item.id == items[0].id).probability == 1.0
    every = select_items(TASK, items, Selection(queries=0, disputed=50, seed=0), disagreement)
    assert [item.id for item in every] == [item.id for item in items[:3]]


def test_gold_and_repeats_are_marked_and_have_no_probability() -> None:
    items = make_items(4)
    gold = [TASK.make_item({"query": "g", "passage": "g"}, {"question": "?", "passage": "!"})]
    with pytest.raises(InputError, match="without an answer"):
        select_items(TASK, items, Selection(), gold=gold)
    gold = [LabelItem(**{**gold[0].__dict__, "gold": {"relevance": "3"}})]
    found = select_items(TASK, items, Selection(repeats=2), gold=gold)
    controls = [item for item in found if item.is_control]
    assert [item.stratum for item in controls] == ["gold", "repeat", "repeat"]
    assert all(item.probability is None for item in controls)
    assert {item.repeat_of for item in controls[1:]} <= {item.id for item in items}


def test_items_that_were_drawn_before_keep_their_stratum_and_probability() -> None:
    drawn = select_items(TASK, make_items(6), Selection(queries=3, seed=2))
    by_hand = TASK.make_item({"query": "q9", "passage": "p"}, {"question": "?", "passage": "!"})
    found = select_items(TASK, [*drawn, by_hand], Selection(repeats=1))
    assert found[:-1] == [*drawn, by_hand] and found[-1].stratum == "repeat"
    for selection in (Selection(queries=2), Selection(disputed=2)):
        with pytest.raises(InputError, match="can't be drawn again"):
            select_items(TASK, drawn, selection, {drawn[0].id: 1.0})


def test_disagreement_is_a_share_of_the_range() -> None:
    items = list(TASK.items(small_source()))
    rows = [("q1", "p1", "a", 3.0), ("q1", "p1", "b", 0.0), ("q1", "p2", "a", 1.0), ("q1", "p2", "b", 1.0)]
    rows += [("q1", "p4", "a", 2.0)]
    frame = pl.DataFrame(
        [("relevance", q, p, judge, value, None) for q, p, judge, value in rows],
        schema=["aspect", "query", "item", "judge", "value", "label"],
        orient="row",
    )
    found = judge_disagreement(items, [frame])
    by_passage = {item.meta["passage"]: found.get(item.id) for item in items if item.group == "q1"}
    assert by_passage == {"p1": pytest.approx(1.0), "p2": pytest.approx(0.0), "p4": None}


def test_items_that_open_by_answers_are_not_called_random() -> None:
    task = load_task("coverage")
    items = list(task.items(small_source()))
    assert {(item.stratum, item.probability) for item in select_items(task, items, Selection())} == {("", None)}
