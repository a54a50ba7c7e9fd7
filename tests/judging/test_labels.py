"""Labels out of probabilities and out of what models write: the one that was meant, or none at all."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue, run_programs
from ragworth.core.errors import InputError, ModelError
from ragworth.data import TRUNCATED
from ragworth.judging.labels import (
    REFUSED,
    UNPARSABLE,
    LabelResult,
    LabelScale,
    ask_label,
    choose_label_method,
    parse_label,
)
from ragworth.llm.contract import ABILITIES, Card, Choose, Generate, Generated, Output, Prompt, Request, Usage
from ragworth.llm.scripted import Scripted, ScriptedReply

RATINGS = LabelScale.numbers(0, 5)
HOLDS = LabelScale(("YES", "NO"), (1.0, 0.0))
WHERE = Prompt.chat("How well?")
NOTHING = Usage(1, 1, 0.0)


def made(text: str, finish: str = "stop") -> Generated:
    return Generated((Output(text, finish),), NOTHING)


def written(scale: LabelScale, text: str) -> str | None:
    """The label that is read out of a text; None where there is none."""
    try:
        return parse_label(made(text), scale).label
    except NoValue:
        return None


def status(text: str, finish: str = "stop", scale: LabelScale = RATINGS) -> str:
    with pytest.raises(NoValue) as caught:
        parse_label(made(text, finish), scale)
    assert caught.value.raw == text, "what the model wrote is kept"
    assert caught.value.detail
    return caught.value.status


# What people would read as a rating, and as which one.
CLEAR = {
    "3": "3",
    " 4\n": "4",
    "0": "0",
    "5.": "5",
    "**4**": "4",
    "`2`": "2",
    "(3)": "3",
    "[[3]]": "3",
    '"1"': "1",
    "Rating: 3": "3",
    "rating=3": "3",
    "The rating is 2.": "2",
    "- 3": "3",
    "4/5": "4",
    "4 / 5": "4",
    "0/5": "0",
    "5/5": "5",
    "4 out of 5": "4",
    "I would give it 4/5.": "4",
    "3: it answers the first half": "3",
    "4, because it names 12 towns and the year 1990": "4",
    "Rating (0-5): 3": "3",
    '{"label": "3"}': "3",
    '{"label": 3}': "3",
    ' {"label": "3"}\n': "3",
    '{"rating": 2}': "2",
}


@pytest.mark.parametrize("text", CLEAR, ids=repr)
def test_a_rating_is_read_as_it_was_meant(text: str) -> None:
    assert written(RATINGS, text) == CLEAR[text]


# None of these is a whole number from 0 to 5, or there is more than one. A guess would be a silent error.
UNCLEAR = [
    "",
    "   ",
    "10",
    "3.5",
    "3,5",
    "-1",
    "−1",
    "–1",
    "6",
    "50",
    "05",
    "4/10",
    "40%",
    "4%",
    "3rd",
    "x3",
    "level-3",
    "1,000",
    "1e5",
    "three",
    "½",
    "3½",
    "5²",
    "３.５",
    "１０",
    "3-4",
    "between 3 and 4",
    "good",
    '{"label": "10"}',
    '{"label": 3.5}',
    '{"label": true}',
    '{"label": null}',
    '{"label": [3, 4]}',
    "[]",
    "{}",
    "NaN",
]


@pytest.mark.parametrize("text", UNCLEAR, ids=repr)
def test_what_is_no_rating_is_not_read_as_one(text: str) -> None:
    assert status(text) == UNPARSABLE


# The most that the scale allows is named in them, and is not what the model gave.
MISLEADING = [
    "3.5 out of 5",
    "2.5 of 5",
    "10 out of 5",
    "7 (the most is 5)",
    "-1 (out of 5)",
    "I give it 3.5; the most is 5",
    "4 out of 10",
]


@pytest.mark.parametrize("text", MISLEADING, ids=repr)
def test_a_number_beside_another_number_is_no_rating(text: str) -> None:
    assert written(RATINGS, text) is None


@pytest.mark.parametrize("text", ["3 or 4", "3 to 4", "3–4", "3 − 4", "3 and 4", "4 1/2", "4 ½"], ids=repr)
def test_a_range_is_no_rating(text: str) -> None:
    assert written(RATINGS, text) is None


@pytest.mark.parametrize("text", ["NO-RESPONSE", "unknown", "north", "yesterday", "No-one knows", "YES/NO", "n/a"])
def test_a_label_within_another_word_is_none(text: str) -> None:
    assert written(HOLDS, text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("YES", "YES"),
        ("yes.", "YES"),
        ("No", "NO"),
        ("NO: it says nothing of it", "NO"),
        ("Yes, no doubt", "YES"),
        ("**YES**", "YES"),
        ("The answer is YES.", "YES"),
        ('{"label": "NO"}', "NO"),
    ],
)
def test_a_word_is_read_as_it_was_meant(text: str, expected: str) -> None:
    assert written(HOLDS, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, I have no access to the document.",
        "I'm sorry, but there is no way for me to judge this.",
        "I cannot say, as no document was given.",
        "As an AI, I have no opinion on it.",
    ],
)
def test_no_is_also_an_ordinary_word(text: str) -> None:
    """A refusal that happens to hold the word is not the judgment that the passage is irrelevant."""
    assert status(text, scale=HOLDS) == REFUSED


@pytest.mark.parametrize(
    "text",
    ["I'm sorry, I can't help with that.", "I cannot judge this.", "As an AI, I do not rate texts.", "I apologize."],
)
def test_a_refusal_says_so(text: str) -> None:
    assert status(text) == REFUSED


def test_why_there_is_no_label() -> None:
    assert status("The text is long and it", "length") == TRUNCATED
    assert status("The text is good") == UNPARSABLE
    assert status("", "length") == TRUNCATED
    assert status("I'm sorry, but as it is", "length") == REFUSED


def test_a_truncated_text_is_no_whole_label() -> None:
    for text in ("4", "4.", "The text is good, so NO", '{"label": "4"'):
        assert status(text, "length", HOLDS if "NO" in text else RATINGS) == TRUNCATED, text
    with pytest.raises(NoValue, match="before the label was whole: allow more tokens"):
        parse_label(made("4", "length"), RATINGS)
    for text in ("4 because the passage says", '{"label": 4}', "4\n\n\n"):
        assert parse_label(made(text, "length"), RATINGS).label == "4"


def test_the_longer_of_two_labels_is_read_where_one_begins_with_the_other() -> None:
    scale = LabelScale(("PARTLY", "PARTLY RIGHT", "RIGHT"), (0.0, 1.0, 2.0))
    assert written(scale, "partly right") == "PARTLY RIGHT"
    assert written(scale, "Right") == "RIGHT"


def test_labels_may_hold_any_sign() -> None:
    scale = LabelScale(("a+b", "(c)", "d.*"), (0.0, 1.0, 2.0))
    assert [written(scale, text) for text in ("a+b", "aab", "dxx")] == ["a+b", None, None]


@given(st.text(st.sampled_from("0123456789 .,/-–%outfYESNOyesno{}\":label'*\n½３"), max_size=30))
@example("3.5 out of 5")
@example('{"label": "1"}')
def test_a_label_that_was_read_is_in_the_text_as_a_word_of_its_own(text: str) -> None:
    for scale in (RATINGS, HOLDS):
        found = written(scale, text)
        if found is not None:
            assert re.search(rf"(?<![^\W_]){re.escape(found)}(?![^\W_])", text, re.I)


@given(st.integers())
def test_whole_numbers_are_ratings_exactly_from_0_to_5(number: int) -> None:
    assert written(RATINGS, str(number)) == (str(number) if 0 <= number <= 5 else None)
    assert written(RATINGS, f"Rating: {number}") == (str(number) if 0 <= number <= 5 else None)


@given(st.floats(0, 5, allow_nan=False).filter(lambda x: not x.is_integer()))
def test_other_numbers_never_are(number: float) -> None:
    assert written(RATINGS, str(number)) is None
    assert written(RATINGS, json.dumps({"label": number})) is None


@given(st.text(st.characters(exclude_categories=()), max_size=200))
@example("\ud800")
def test_no_text_is_too_strange(text: str) -> None:
    for scale in (RATINGS, HOLDS):
        found = written(scale, text)
        assert found is None or found in scale.labels


# Probabilities


def asked(model: Scripted, scale: LabelScale = RATINGS, how: str = "auto") -> LabelResult | NoValue:
    way = choose_label_method(model.card, how, "a test")
    (found,) = run_programs(Job(model), [ask_label(WHERE, scale, model.card, way)])
    return found


def chosen(**probabilities: float) -> LabelResult | NoValue:
    return asked(Scripted({"*": {name.strip("_"): value for name, value in probabilities.items()}}))


def test_the_likeliest_label_with_what_is_known_of_the_others() -> None:
    found = chosen(_2=0.1, _3=0.4, _5=0.3)
    assert isinstance(found, LabelResult)
    assert (found.label, found.value, found.estimator, found.raw) == ("3", 3.0, "first-token", None)
    # (2·0.1 + 3·0.4 + 5·0.3) / (0.1 + 0.4 + 0.3) = 2.9 / 0.8
    assert found.expected == pytest.approx(3.625)
    assert found.mass == pytest.approx(0.8)
    assert found.probabilities == (0.0, 0.0, 0.1, 0.4, 0.0, 0.3)


def test_ties_go_to_the_label_that_comes_first() -> None:
    found = chosen(_4=0.25, _1=0.25, _5=0.125)
    assert isinstance(found, LabelResult)
    assert found.label == "1"
    both = asked(Scripted({"*": {"YES": 0.5, "NO": 0.5}}), HOLDS)
    assert isinstance(both, LabelResult)
    assert both.label == "YES"


def test_labels_without_any_probability_are_no_answer() -> None:
    found = chosen(else_=0.5)
    assert isinstance(found, NoValue)
    assert found.status == "no-label"


# How a model is asked


def seen(abilities: Sequence[str], how: str = "auto") -> Request:
    requests: list[Request] = []

    def script(request: Request) -> ScriptedReply:
        requests.append(request)
        return "3" if isinstance(request, Generate) else {"3": 1.0}

    found = asked(Scripted(script, abilities=abilities), how=how)
    assert isinstance(found, LabelResult)
    assert found.label == "3"
    return requests[0]


def test_by_probabilities_where_the_model_tells_them_and_by_words_where_not() -> None:
    assert isinstance(seen(ABILITIES), Choose)
    words = seen(["generate"])
    assert isinstance(words, Generate)
    assert (words.schema, words.temperature) == ("", 0.0)
    strict = seen(["generate", "schema"])
    assert isinstance(strict, Generate)
    assert strict.schema == RATINGS.schema
    assert isinstance(seen(ABILITIES, "parsed"), Generate)
    assert isinstance(seen(["choose"], "labels"), Choose)


def test_a_model_that_cannot_be_asked_in_this_way_is_refused() -> None:
    with pytest.raises(ModelError, match="cannot choose"):
        choose_label_method(Card("x", "small", abilities=frozenset({"generate"})), "labels", "a test")
    with pytest.raises(ModelError, match="cannot generate"):
        choose_label_method(Card("x", "small", abilities=frozenset({"choose"})), "parsed", "a test")
    with pytest.raises(ModelError, match="cannot generate"):
        choose_label_method(Card("x", "small", abilities=frozenset({"score"})), "auto", "a test")
    with pytest.raises(InputError, match="not possible"):
        choose_label_method(Card("x", "small", abilities=frozenset(ABILITIES)), "by-hand", "a test")


@pytest.mark.parametrize(
    "text",
    [
        "It is NOT CORRECT.",
        "PARTIALLY CORRECT",
        "CORRECT? No, WRONG",
        "not entirely CORRECT",
        "CORRECT or WRONG or ABSTAINED",
        "It isn't CORRECT",
        "neither CORRECT nor WRONG",
    ],
)
def test_a_word_that_is_taken_back_is_no_label(text: str) -> None:
    """Small judges hedge and echo their instructions; a label read out of that would turn the grade around."""
    assert LabelScale(("CORRECT", "WRONG", "ABSTAINED"), (1.0, -1.0, 0.0)).parse(text) is None


@pytest.mark.parametrize("text", ["I cannot say YES", "YES or NO", "Answer with YES or NO."])
def test_an_echo_is_no_answer(text: str) -> None:
    assert LabelScale(("YES", "NO"), (1.0, 0.0)).parse(text) is None


@pytest.mark.parametrize("text", ["WRONG. It is not what was asked.", "The answer is WRONG", "wrong", "**WRONG**"])
def test_words_after_a_label_do_not_take_it_back(text: str) -> None:
    assert LabelScale(("CORRECT", "WRONG", "ABSTAINED"), (1.0, -1.0, 0.0)).parse(text) == 1
