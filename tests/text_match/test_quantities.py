"""Quantities: what is read of a text, and which are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.text_match.normalise import read_pieces
from ragworth.text_match.quantities import Quantity, compare, find_quantities, read_hints, read_quantities
from ragworth.text_match.units import UNITS


def read(text: str) -> tuple[Quantity, ...]:
    return read_quantities(read_pieces(text))


@pytest.mark.parametrize(
    ("text", "value", "dimension"),
    [
        ("$1,577 million", 1.577e9, "money:usd"),
        ("$12.5m", 12.5e6, "money:usd"),
        ("CHF 2.4 million", 2.4e6, "money:chf"),
        ("-$1,561", -1561, "money:usd"),
        ("($1,561)", -1561, "money:usd"),
        ("$(1,561) million", -1.561e9, "money:usd"),
        ("minus 38.8 degrees Celsius", -38.8, "temperature"),
        ("320 km/h", 320, "speed"),
        ("25 basis points", 25, "percent"),
        ("2 hours, 14 minutes and 4 seconds", 2 + 14 / 60 + 4 / 3600, "time"),
        ("6 ft 3 in", 6.25, "length"),
        ("3.5M users", 3.5e6, None),
        ("2.5 × 10^6", 2.5e6, None),
        ("3.2e-19", 3.2e-19, None),
        ("3 7/8", 3.875, None),
        ("two thirds", 2 / 3, None),
        ("twice", 2, None),
    ],
)
def test_reading(text: str, value: float, dimension: str | None) -> None:
    (found,) = read(f"It is {text}.")
    assert found.value == pytest.approx(value)
    assert (found.units[0].dimension if found.units else None) == dimension


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("$3.10–$3.30", 3.1, 3.3),
        ("between 15 and 35 km", 15, 35),
        ("1998–2003", 1998, 2003),
        ("the 1950s", 1950, 1959),
        ("the 17th century", 1600, 1699),
    ],
)
def test_ranges(text: str, low: float, high: float) -> None:
    (found,) = read(text)
    assert [found.value, found.high] == pytest.approx([low, high])


def test_from_one_number_to_another_is_a_change() -> None:
    assert [each.value for each in read("from 41% to 44%")] == [41, 44]


@pytest.mark.parametrize("text", ["", "Paris", "no numbers at all", "…", "$", "%"])
def test_no_quantity(text: str) -> None:
    assert read(text) == ()


SAME = [
    ("$10,389 million", "$10.4 billion", ""),
    ("38.46%", "38.5 percent", ""),
    ("300 m", "984 feet", ""),
    ("100 °C", "212 °F", ""),
    ("92.1%", "0.921", ""),
    ("$1577.00", "$1,577 million", "How much, in USD millions?"),
    ("$1577.00", "1577", "How much, in USD millions?"),
    ("820", "820 km", "How many kilometres does it run?"),
    ("54,320", "about 54,000", ""),
    ("-8.5%", "a drop of 8.5%", ""),
    ("the 1950s", "1955", "In which decade?"),
    ("June 5, 1987", "1987-06-05", ""),
]
DIFFERENT = [
    ("$10,389 million", "$10.9 billion", ""),
    ("54,320", "54,000", ""),
    ("300 m", "300 feet", ""),
    ("$5", "€5", ""),
    ("$842.00", "$842 thousand", "How much, in USD millions?"),
    ("2.5 × 10^6", "2.5 × 10^5", ""),
    ("2004", "2014", ""),
    ("$8.70", "$8.74", ""),
    ("5–12 days", "5 to 12 weeks", ""),
]
UNCLEAR = [
    ("$2,600 million", "$3 billion", ""),
    ("10.5%", "11%", ""),
    ("the 1950s", "1955", ""),
]


@pytest.mark.parametrize(
    ("wanted", "said", "question", "expected"),
    [(*each, "same") for each in SAME]
    + [(*each, "different") for each in DIFFERENT]
    + [(*each, "coarse") for each in UNCLEAR],
)
def test_comparing(wanted: str, said: str, question: str, expected: str) -> None:
    assert compare(read(wanted)[0], read(said)[0], read_hints(question)) == expected


def test_an_opposite_direction() -> None:
    assert compare(read("it fell 3%")[0], read("it rose 3%")[0], read_hints("")) == "opposite"
    assert compare(read("-21 °C")[0], read("21 °C")[0], read_hints("")) == "opposite"


def test_a_quantity_that_is_given_contradicts_no_other() -> None:
    findings = find_quantities(read("42 stores and 17"), read("42 stores"), read_hints(""))
    assert [each.result for each in findings] == ["same", "incomparable"]


def test_only_numbers_of_the_same_unit_or_noun_are_compared() -> None:
    (percent,) = find_quantities(read("64%"), read("72% of serves, with 64 winners"), read_hints(""))
    (goals,) = find_quantities(read("31 goals"), read("13 goals in 31 matches"), read_hints(""))
    assert percent.result == goals.result == "different"


def test_the_table_of_units() -> None:
    for name, readings in UNITS.items():
        assert name == name.casefold().strip(), name
        assert all(unit.factor > 0 for unit in readings)
        assert len(set(readings)) == len(readings), name


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    for each in read(f"{text} 5 km {text}"):
        assert each.start < each.end


@given(st.integers(1, 10**9), st.sampled_from(["", " km", " %", " million", " goals"]))
def test_a_quantity_is_the_same_as_itself(number: int, unit: str) -> None:
    (found, *_) = read(f"{number:,}{unit}")
    assert compare(found, found, read_hints("")) == "same"


@pytest.mark.parametrize("digits", [400, 100_000])
def test_numbers_too_large_for_a_float(digits: int) -> None:
    (found,) = read("9" * digits)
    assert compare(found, found, read_hints("")) == "same"
    assert compare(found, read("5")[0], read_hints("")) == "different"
