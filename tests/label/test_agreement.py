"""Agreement: by hand, against gold, with oneself; spans; weights."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ragworth.label.agreement import LabelAgreement, span_agreement
from ragworth.label.labels import Label, Labels
from ragworth.label.tasks import LabelItem, load_task
from ragworth.label.tasks.fields import make_span
from ragworth.stats.estimate import Resampling
from tests.label.samples import any_value, labels_of

PLAN = Resampling(resamples=200)
TASK = load_task("relevance")


def make_items(count: int) -> list[LabelItem]:
    return [
        TASK.make_item({"query": f"q{at // 2}", "passage": f"p{at}"}, {"question": "?", "passage": f"text {at}"})
        for at in range(count)
    ]


def agreement_of(choices: dict[str, list[int]], items: list[LabelItem] | None = None) -> LabelAgreement:
    items = items or make_items(len(next(iter(choices.values()))))
    return LabelAgreement(TASK, {item.id: item for item in items}, labels_of(TASK, items, choices), PLAN)


def test_fleiss_and_cohen_by_hand() -> None:
    # Two people, four items: equal on three. Labels 1 and 0: anna 1 1 0 0, ben 1 0 0 0.
    found = agreement_of({"anna": [1, 1, 0, 0], "ben": [1, 0, 0, 0]})
    # Cohen: observed 3/4; chance 1/2·1/4 + 1/2·3/4 = 1/2; κ = (3/4 − 1/2) / (1/2).
    assert found.pairs[0].kappa.value == pytest.approx(0.5)
    # Fleiss: shares 3/8 and 5/8; chance (9 + 25)/64 = 34/64; κ = (48 − 34) / (64 − 34).
    assert found.together["Fleiss κ"].value == pytest.approx(14 / 30)
    cells = {(cell.first, cell.second): cell.items for cell in found.confusion(0, 1)}
    assert cells == {(1.0, 1.0): 1, (1.0, 0.0): 1, (0.0, 0.0): 2}
    assert [one.item.id for one in found.disputes] == [make_items(2)[1].id]
    assert found.disputes[0].distance == pytest.approx(1 / 3)
    assert found.disputes[0].values == {"anna": "1", "ben": "0"}


def test_gold_repeats_adjudication_and_suggestions_do_not_count() -> None:
    first, second, gold = make_items(3)
    gold = replace(gold, gold={"relevance": "3"})
    again = replace(first, id="again", repeat_of=first.id)
    items = {item.id: item for item in (first, second, gold, again)}
    rows = [(first, 1), (second, 0), (gold, 3), (again, 1)]
    labels = [Label("anna", item.id, any_value(TASK, item, at), seconds=float(at)) for item, at in rows]
    labels += [Label("ben", first.id, any_value(TASK, first, 0)), Label("ben", gold.id, any_value(TASK, gold, 2))]
    labels += [Label("adjudicated", first.id, any_value(TASK, first, 1))]
    labels += [Label("cleo", first.id, any_value(TASK, first, 2), seen_suggestion=True)]
    labels += [Label("cleo", second.id, None, skipped="can't tell")]
    found = LabelAgreement(TASK, items, Labels(labels), PLAN)
    assert found.annotators == ["anna", "ben"]
    assert found.left_out == {"gold items": 2, "repeats": 1, "adjudicated": 1, "a suggestion was shown": 1}
    anna, ben, _, cleo = found.people
    assert (anna.gold, anna.self_agreement, anna.median_seconds) == ((1, 1), (1, 1), 1.0)
    assert (ben.gold, ben.self_agreement, ben.median_seconds) == ((0, 1), (0, 0), None)
    assert (cleo.labels, cleo.skipped) == (1, 1)
    assert found.disputes == []  # the only one is adjudicated


def test_nothing_to_compare_has_a_reason() -> None:
    alone = agreement_of({"anna": [1, 0]})
    assert alone.together["Fleiss κ"].value is None and alone.together["Fleiss κ"].reason
    assert alone.pairs == []
    same = agreement_of({"anna": [1, 1], "ben": [1, 1]})
    assert same.together["Fleiss κ"].value is None and "same" in same.together["Fleiss κ"].reason


def test_base_rates_use_the_inclusion_probabilities() -> None:
    items = [replace(item, probability=p) for item, p in zip(make_items(4), (0.25, 1.0, 1.0, 0.5), strict=True)]
    found = agreement_of({"anna": [3, 0, 0, 0], "ben": [3, 0, 0, 3]}, items)
    # Weights 4, 1, 1, 2; the last item counts half: (4 + 2/2) / 8.
    assert found.base_rates["3"].value == pytest.approx(5 / 8)
    assert found.base_rates["3"].reason == ""
    bare = agreement_of({"anna": [3, 0, 0, 0], "ben": [3, 0, 0, 3]})
    assert bare.base_rates["3"].value == pytest.approx(1.5 / 4)
    assert "no inclusion probabilities" in bare.base_rates["3"].reason


def test_an_item_chosen_by_hand_has_no_part_in_base_rates() -> None:
    items = [replace(item, probability=p) for item, p in zip(make_items(3), (0.5, 0.5, None), strict=True)]
    found = agreement_of({"anna": [3, 0, 3]}, items).base_rates["3"]
    assert found.value == pytest.approx(0.5)
    assert found.n == 2
    assert found.reason == "1 item without an inclusion probability left out"


def test_span_f1_by_hand() -> None:
    task = load_task("utility")
    text = "0123456789 abcdefghij"
    item = task.make_item({"query": "q", "passage": "p"}, {"question": "?", "passage": text})

    def label(name: str, *ends: tuple[int, int]) -> Label:
        return Label(name, item.id, {"utility": "answers", "support": [make_span("passage", text, *e) for e in ends]})

    found = span_agreement(
        [label("a", (0, 4), (11, 15)), label("b", (0, 4), (13, 17))], {item.id: item}, "support", PLAN
    )
    assert found.exact.value == pytest.approx(2 / 4)
    assert found.overlap.value == pytest.approx(2 * (4 + 2) / (8 + 8))
    assert found.exact.interval is None  # one query
    one_sided = span_agreement([label("a", (0, 4)), label("b")], {item.id: item}, "support", PLAN)
    assert one_sided.exact.value == one_sided.overlap.value == pytest.approx(0.0)
    assert span_agreement([label("a"), label("b")], {item.id: item}, "support", PLAN).exact.value is None


def test_intervals_contain_the_value() -> None:
    found = agreement_of({"anna": [0, 1, 2, 3] * 5, "ben": [0, 1, 2, 2] * 5, "cleo": [0, 1, 3, 3] * 5})
    assert found.together
    for one in found.together.values():
        assert one.value is not None and one.low is not None and one.high is not None
        assert one.low <= one.value <= one.high and not math.isnan(one.low)
