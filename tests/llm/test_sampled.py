"""Probabilities by counting samples: the counts, and the intervals that go with them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragworth.calls.serialization import model_digest
from ragworth.llm.contract import Choose, Chosen, Failure, Generate, Generated, Output, Prompt, Usage
from ragworth.llm.sampled import SampledModel
from ragworth.llm.scripted import Scripted
from ragworth.stats.range_intervals import plain_wilson_interval

PROMPT = Prompt.chat("Is it so?")


class Saying(Scripted):
    """A model that can only generate, and says these texts in turn."""

    def __init__(self, *texts: str, batch: int = 16) -> None:
        super().__init__({"*": "nothing"}, abilities=["generate"], batch=batch)
        self.texts = texts
        self.seen: list[Generate] = []

    def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
        self.seen += requests
        return [
            Generated(
                tuple(Output(self.texts[i % len(self.texts)], "stop") for i in range(one.n)), Usage(5, one.n, 0.1)
            )
            for one in requests
        ]


class Ending(Saying):
    """The same, but every text ends for this reason."""

    finish = "length"

    def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
        made = [one for one in super().generate(requests) if isinstance(one, Generated)]
        return [one._replace(outputs=tuple(o._replace(finish=self.finish) for o in one.outputs)) for one in made]


def chosen(texts: Sequence[str], labels: tuple[str, ...], samples: int = 0) -> Chosen:
    (found,) = SampledModel(Saying(*texts), samples=samples or len(texts)).choose([Choose(PROMPT, labels)])
    assert isinstance(found, Chosen)
    return found


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_intervals_are_wilsons(drawn: tuple[int, int]) -> None:
    successes, number = drawn
    low, high = plain_wilson_interval(successes, number, 0.95)
    found = stats.binomtest(successes, number).proportion_ci(0.95, method="wilson")
    assert low == pytest.approx(found.low, abs=1e-12)
    assert high == pytest.approx(found.high, abs=1e-12)
    assert 0 <= low <= successes / number <= high <= 1
    assert high > low


def test_labels_are_counted() -> None:
    found = chosen(["yes", "yes", "no", "maybe"], ("yes", "no"))
    assert found.probabilities == (0.5, 0.25)
    assert found.mass == 0.75
    assert found.estimator == "sampled(4)"
    assert (found.low[0], found.high[0]) == plain_wilson_interval(2, 4, 0.95)
    assert found.usage == Usage(5, 4, 0.1)


@pytest.mark.parametrize("text", ["yes", " Yes.", "YES, it is", '"yes"', "**Yes**", "\n\n`yes`", "'yes'"])
def test_blanks_case_and_marks_in_front_are_set_aside(text: str) -> None:
    assert chosen([text], ("yes", "no")).probabilities == (1.0, 0.0)


def test_the_longest_label_counts() -> None:
    assert chosen(["NO-RESPONSE", "No."], ("NO", "NO-RESPONSE")).probabilities == (0.5, 0.5)
    assert chosen(["NO-RESPONSE", "No."], ("NO-RESPONSE", "NO")).probabilities == (0.5, 0.5)


@pytest.mark.parametrize("text", ["Nothing is known", "Yesterday", "Notably, yes"])
def test_a_label_is_a_whole_word(text: str) -> None:
    assert chosen([text], ("YES", "NO")).mass == 0.0


def test_nothing_said_is_not_nothing_known() -> None:
    found = chosen(["maybe"] * 16, ("yes", "no"))
    assert found.probabilities == (0.0, 0.0)
    assert found.low == (0.0, 0.0)
    assert found.high == (plain_wilson_interval(0, 16, 0.95)[1],) * 2
    assert found.high[0] == pytest.approx(0.194, abs=0.001)


def test_it_can_choose_and_is_another_model() -> None:
    inner = Saying("yes")
    cards = [
        SampledModel(inner, samples=n, temperature=t, seed=s).card
        for n, t, s in ((8, 1, 0), (9, 1, 0), (8, 2, 0), (8, 1, 1))
    ]
    assert all("choose" in card.abilities for card in cards)
    assert len({model_digest(card) for card in (*cards, inner.card)}) == 5
    assert cards[0].name == inner.card.name


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["Yes, because", "No: there", "It is"], ""),
        (["Yes", "No: there", "It"], ""),
        (["Yes, because", "No"], "truncated"),
        (["Yes, because", "Ye"], "truncated"),
        (["No, but", "NO-RES"], "truncated"),
        ([""], "truncated"),
    ],
)
def test_a_sample_that_ends_within_a_label_is_none(texts: list[str], reason: str) -> None:
    model = SampledModel(Ending(*texts), samples=len(texts))
    (found,) = model.choose([Choose(PROMPT, ("Yes", "No", "NO-RESPONSE"))])
    if not reason:
        assert isinstance(found, Chosen) and found.probabilities == pytest.approx((1 / 3, 1 / 3, 0))
        return
    assert isinstance(found, Failure)
    assert (found.reason, found.retry) == (reason, False)
    assert f"1 of {len(texts)} sample" in found.detail
    assert "max_tokens" in found.detail


def test_a_withheld_sample_is_no_sample() -> None:
    model = Ending("Yes")
    model.finish = "content_filter"
    (found,) = SampledModel(model, samples=2).choose([Choose(PROMPT, ("Yes", "No"))])
    assert isinstance(found, Failure) and found.reason == "refused"
