"""Yes and no: of accepted answers, and of texts."""

from __future__ import annotations

import pytest

from ragworth.text_match.polarity import read_polarity, text_polarity


@pytest.mark.parametrize(
    ("answer", "positive"),
    [
        ("Yes", True),
        ("No.", False),
        ("Yes, sales did decline.", True),
        ("No it did not", False),
        ("Ja, das stimmt", True),
        ("Nein", False),
        ("はい", True),
    ],
)
def test_accepted_answers(answer: str, positive: bool) -> None:
    found = read_polarity(answer)
    assert found is not None and found.positive is positive


@pytest.mark.parametrize("answer", ["No material weaknesses", "Yesterday", "Norway", "no one", "Paris", "None"])
def test_other_answers(answer: str) -> None:
    assert read_polarity(answer) is None


QUESTION = "Did gross sales decline in 2020?"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Yes.", True),
        ("No, sales did not decline.", False),
        ("**Yes** – they fell.", True),
        ("The answer is no.", False),
        ("Absolutely.", True),
        ("Not really.", False),
        ("Gross sales declined in 2020.", True),
        ("Gross sales did not decline in 2020.", False),
        ("Gross sales grew in 2020.", None),
        ("Sales fell, so yes.", True),
        ("Gross sales did not grow, they declined.", None),
        ("It is unclear whether gross sales declined.", None),
        ("Yes. No.", None),
        ("There is no doubt about it.", None),
        ("Paris", None),
        ("", None),
    ],
)
def test_texts(text: str, said: bool | None) -> None:
    assert text_polarity(text, QUESTION, "") is said


def test_a_contradiction_in_one_sentence() -> None:
    assert text_polarity("Yes, gross sales did not decline in 2020.", QUESTION, "") is None


def test_without_a_question_the_rest_of_the_accepted_answer_is_restated() -> None:
    assert text_polarity("Sales did decline.", "", "sales did decline") is True
    assert text_polarity("Sales did not decline.", "", "sales did decline") is False
    assert text_polarity("Sales did not decline.", "", "") is None


def test_only_questions_for_yes_or_no_are_restated() -> None:
    assert text_polarity("The Snake is the longest river.", "Which is the longest river?", "") is None
