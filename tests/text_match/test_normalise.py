"""One spelling for numbers and dates: what must be the same, and that different numbers never are."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ragworth.text_match.normalise import canonical_words, fold_accents

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
MONTHS = "January February March April May June July August September October November December"


def in_words(number: int) -> str:
    """A number in English words, made by dividing: the other way round from how it is read."""
    if number < 20:
        return SMALL.split()[number]
    if number < 100:
        tens = TENS.split()[number // 10 - 2]
        return tens + (f"-{in_words(number % 10)}" if number % 10 else "")
    for size, name in ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = f" {in_words(number % size)}" if number % size else ""
            return f"{in_words(number // size)} {name}{rest}"
    raise AssertionError


def suffix(number: int) -> str:
    return "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


@pytest.mark.parametrize(
    "spellings",
    [
        ["1,234", "1234", "1 234", "1\u202f234", "1'234", "one thousand two hundred thirty-four", "１２３４", "١٢٣٤"],
        ["3.5 million", "3,500,000", "3 500 000", "3.500.000", "three million five hundred thousand"],
        ["21st", "twenty-first", "Twenty First", "21ST"],
        ["50%", "50 percent", "50 per cent", "fifty percent", "50 %"],
        ["1987-06-05", "5 June 1987", "June 5, 1987", "5 Jun 1987", "June 5th, 1987", "the 5th of June 1987"[4:]],
        [
            "1987-06-05",
            "5.6.1987",
            "1987年6月5日",
            "1987년 6월 5일",
        ],
        ["25/12/1987", "12/25/1987", "December 25 1987", "1987/12/25", "Dec. 25, 1987"],
        ["June 5", "5 June", "June 5th", "5th of June"],
        ["$5 million", "$5,000,000"],
        ["a hundred", "one hundred", "100", "1 hundred"],
        ["two thousand and eighteen", "2018"],
        ["nineteen hundred", "1900"],
        [".5", "0.5", "0.50"],
        ["1980s", "1980's", "1980’s"],
        ["J. K. Rowling", "J.K. Rowling", "JK Rowling"],
        ["U.S.A.", "USA", "U.S.A"],
        ["Röntgen", "Rontgen", "RÖNTGEN", "Ro\u0308ntgen"],
        ["Obama's dog", "Obama’s dog"],
    ],
    ids=lambda spellings: spellings[0],
)
def test_the_same_in_different_spelling(spellings: list[str]) -> None:
    assert {canonical_words(one) for one in spellings} == {canonical_words(spellings[0])}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nineteen eighty-seven", "106"),
        ("two three", "5"),
        ("two hundred and five hundred", "205"),
        ("one thousand and two thousand", "1002"),
        ("10²", "102"),
        ("5½", "51"),
        ("-5", "5"),
        ("1.234", "1234"),
        ("3.10.2", "3.1.2"),
        ("007", "7"),
        ("21st", "21"),
        ("1980s", "1980"),
        ("5/6/1987", "5 June 1987"),
        ("Malcolm X", "Malcolm 10"),
        ("an IV drip", "an 4 drip"),
        ("World War I", "World War II"),
        ("1,2345", "12345"),
        ("in 1987 234 people", "in 1987234 people"),
        ("no one", "no 1"),
        ("32 June 1987", "2 June 1987"),
    ],
)
def test_different_stays_different(one: str, other: str) -> None:
    assert canonical_words(one) != canonical_words(other)


def test_parts_of_a_date_are_runs_of_it() -> None:
    assert canonical_words("June 5, 1987") == ("1987", "june", "day5")
    assert canonical_words("June 1987") == ("1987", "june")
    assert canonical_words("1987") == ("1987",)
    assert canonical_words("June 5") == ("june", "day5")
    assert canonical_words("5") == ("5",)


def test_words_that_only_look_like_months_and_numbers() -> None:
    assert " ".join(canonical_words("you may 5 times march 10 miles")) == "you may 5 times march 10 miles"
    assert canonical_words("one of them, no one else, 10 seconds per second") == (
        *("one", "of", "them", "no", "one", "else"),
        *("10", "seconds", "per", "second"),
    )
    assert canonical_words("vitamin A. I think") == ("vitamin", "a", "i", "think")
    assert canonical_words("C++, C# and A+") == ("c++", "c#", "and", "a+")


def test_other_scripts_keep_their_words() -> None:
    assert canonical_words("हिन्दी भाषा।") == ("हिन्दी", "भाषा")
    assert canonical_words("東京タワー、です") == tuple("東京タワーです")
    assert canonical_words("مَرحبا بالعالم؟") == ("مرحبا", "بالعالم")
    assert canonical_words("йога") == ("йога",)
    assert fold_accents("が") == "が"
    assert canonical_words("👍 … !") == ()


@given(st.integers(0, 10**12 - 1))
def test_numbers_in_words_are_the_digits(number: int) -> None:
    assert canonical_words(in_words(number)) == canonical_words(f"{number:,}") == (str(number),)
    assert canonical_words(f"{number}{suffix(number)}") == (f"{number}th",)


SPELLINGS = [str, "{:,}".format, in_words, lambda n: f"{n:,}".replace(",", " ")]


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.sampled_from(SPELLINGS), st.sampled_from(SPELLINGS))
def test_different_numbers_are_never_equal(first: int, second: int, write, read) -> None:  # type: ignore[no-untyped-def]
    assume(first != second)
    assert canonical_words(write(first)) != canonical_words(read(second))


@given(st.decimals(0, 10**6, places=3), st.decimals(0, 10**6, places=3))
def test_decimals_are_equal_when_they_are(first: object, second: object) -> None:
    assert (canonical_words(str(first)) == canonical_words(str(second))) == (first == second)
    assert (canonical_words(f"{first} million") == canonical_words(f"{second} million")) == (first == second)


@given(st.dates(date(1000, 1, 1), date(2999, 12, 31)), st.dates(date(1000, 1, 1), date(2999, 12, 31)))
def test_dates_are_equal_when_they_are(first: date, second: date) -> None:
    def written(day: date) -> list[str]:
        month = MONTHS.split()[day.month - 1]
        return [
            day.isoformat(),
            f"{day.day} {month} {day.year}",
            f"{month} {day.day}, {day.year}",
            f"{day.day}{suffix(day.day)} of {month[:3]} {day.year}",
            f"{day.day}.{day.month}.{day.year}",
        ]

    assert len({canonical_words(text) for text in written(first)}) == 1
    for one, other in zip(written(first), written(second), strict=True):
        assert (canonical_words(one) == canonical_words(other)) == (first == second)


@given(st.text(max_size=60))
def test_any_text_has_tokens_without_blanks(text: str) -> None:
    tokens = canonical_words(text)
    assert all(token and not token.isspace() and " " not in token for token in tokens)
    assert canonical_words(text) == tokens
