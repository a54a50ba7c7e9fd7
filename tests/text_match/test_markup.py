"""Answers as language models write them: with Markdown, LaTeX, tags, JSON, and their reasoning."""

from __future__ import annotations

import pytest

from ragworth.text_match.markup import unwrapped, without_markup
from ragworth.text_match.refusals import find_refusal
from ragworth.text_match.short_answers import grade_short_answer


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("It is **not** *Paris*.", "It is not Paris."),
        ("首都是**巴黎**。", "首都是巴黎。"),
        ("Run `docker ps`.", "Run docker ps."),
        ("H<sub>2</sub>O<br>and<br/>CO<sub>2</sub>", "H2O\nand\nCO2"),
        (r"$x = \frac{2}{3}$", "x = 2/3"),
        (r"\boxed{\frac{2}{3}}", "2/3"),
        (r"\$25 and 5\%", "$25 and 5%"),
        ("~~Paris~~ Lyon", "Lyon"),
        ("5&nbsp;°C", "5 °C"),
        # These are no marks.
        ("2*3*4 and 2**3**4", "2*3*4 and 2**3**4"),
        ("* one\n* two", "* one\n* two"),
        ("from $25 to $30", "from $25 to $30"),
        (r"C:\Users\text\new", r"C:\Users\text\new"),
        ("a < b and b > c", "a < b and b > c"),
        ("max_connections", "max_connections"),
    ],
)
def test_marks_are_removed(text: str, plain: str) -> None:
    assert without_markup(text) == plain


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Paris? No.</think>\nLyon", "Lyon"),
        ("Paris? No.\n</think>\n\nLyon", "Lyon"),
        ("It may be Paris. <answer>Lyon</answer>", "Lyon"),
        ('{"reasoning": "Not Paris.", "answer": "Lyon"}', "Lyon"),
        ('```json\n{"Answer": ["Lyon", "Nice"]}\n```', "Lyon, Nice"),
        ('{"answer": 12.5}', "12.5"),
        ('{"answer": null}', "null"),
        ('{"city": "Lyon"}', '{"city": "Lyon"}'),
        ("{Lyon}", "{Lyon}"),
        ("<think>Paris, or is it", None),
        ("<think>Paris</think>", None),
    ],
)
def test_what_is_around_an_answer_is_removed(text: str, answer: str | None) -> None:
    assert unwrapped(text) == answer


@pytest.mark.parametrize(
    ("answer", "accepted", "label"),
    [
        ("The capital is not **Paris**.", "Paris", "undecided"),
        ("It isn’t “Paris”.", "Paris", "undecided"),
        ("It is not **25** days but 30.", "25 days", "undecided"),
        ("<think>Could be Paris. But the passage says Lyon.</think>\nLyon", "Paris", "wrong"),
        ("<think>Could be Paris, or maybe", "Paris", "undecided"),
        ('{"reasoning": "Paris is larger.", "answer": "Lyon"}', "Paris", "wrong"),
        ('{"answer": "not found", "sources": []}', "Paris", "abstained"),
        (r"So $x = \frac{2}{3}$.", "2/3", "correct"),
        (r"\frac{2}{3}", r"\frac{2}{3}", "correct"),
        ("H₂O", "H2O", "correct"),
        ("It has 10² rows.", "102 rows", "wrong"),
        ("Lyon is large, but not the capital. So the answer is Paris.", "Paris", "correct"),
        ("It is Paris. The answer is based on passage 3.", "Paris", "correct"),
        ("It was John F. Kennedy. The answer is Kennedy.", "John F. Kennedy", "correct"),
        ("Answer: see below.\n\nParis", "Paris", "correct"),
    ],
)
def test_only_what_is_answered_counts(answer: str, accepted: str, label: str) -> None:
    assert grade_short_answer(answer, [accepted]).label == label


@pytest.mark.parametrize(
    "text",
    [
        "The context does **not** mention it.",
        "<think>Is it Paris? They don't say.</think>\nI don't know.",
        '{"answer": "I don\'t know", "confidence": 0.1}',
        "<answer>unanswerable</answer>",
    ],
)
def test_declining_in_marks(text: str) -> None:
    assert find_refusal(text) is not None


def test_reasoning_that_would_decline_is_no_answer() -> None:
    assert find_refusal("<think>I don't know. Wait, passage 2 says it.</think>\nIt was Paris.") is None


@pytest.mark.parametrize(
    ("question", "accepted", "answer", "label"),
    [
        ("How often are backups taken?", "every day", "Backups are taken weekly.", "wrong"),
        ("How often is it backed up?", "twice daily", "There is a twice-daily backup.", "correct"),
        ("How often is the pool cleaned?", "every day", "It's cleaned seven days a week, drained yearly.", "undecided"),
        ("Which HTML tag makes text italic?", "the <i> tag", "The <b> tag.", "wrong"),
        ("Which HTML tag makes text bold?", "<b>", "The `<b>` tag makes text bold.", "correct"),
        ("Which tag breaks a line?", "<br>", "Use the <br> tag.", "correct"),
        ("Which entity is a blank?", "&nbsp;", "It's `&nbsp;`.", "correct"),
        ("How many sessions are there?", "16 sessions", "There are sixteen thirty-minute sessions.", "correct"),
        ("What should I do?", "restart it", "Please restart it. Otherwise, I'd need more information.", "correct"),
        ("What is the fee?", "5 euros", "I need more information to answer this question.", "abstained"),
        ("Who is the manager?", "Lena Koch", "Tim Brown was replaced by Lena Koch last year.", "correct"),
        ("What is the capital?", "Paris", "It is Paris. The answer is clearly stated in document 2.", "correct"),
        ("What is the capital?", "Paris", "It is Paris.\n\n#### Sources\n- Document 1", "correct"),
    ],
)
def test_what_rules_about_the_form_of_an_answer_leave_alone(
    question: str, accepted: str, answer: str, label: str
) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == label


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": ' + "[" * 900 + '"Paris"' + "]" * 900 + "}",
        "<s>" * 3000 + "Paris",
        r"\(" * 3000 + "Paris",
        "a" + "\n" * 20_000 + "Paris",
        "\n" * 20_000 + "Paris",
        "[1] " * 2000 + "Paris",
    ],
)
def test_odd_texts_end_in_time(text: str) -> None:
    assert grade_short_answer(text, ["Paris"], question="What is the capital?").label == "correct"


def test_the_beginning_of_a_long_answer_is_read() -> None:
    grade = grade_short_answer("It was Paris. " + "Many books say so. " * 1000, ["Paris"])
    assert (grade.label, grade.why) == ("correct", "contains 'Paris'; only the first 10,000 characters were read")
    grade = grade_short_answer("x " * 6_000 + "Paris", ["Paris"])
    assert grade.label == "undecided"
    thought = "<think>" + "It may be Lyon. " * 2000 + "</think>"
    assert grade_short_answer(f"{thought} It was Paris.", ["Paris"]).why == "contains 'Paris'"
