"""Read the quantities of a text: numbers with units, money, percentages, ranges, dates and years.

A quantity keeps how precisely it was written, so that "$1.58 billion" can be compared with "$1,577 million".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ragworth.text_match.dates import MONTHS, TextPiece, date_at, numeric_date_tokens
from ragworth.text_match.negation import NEGATIONS
from ragworth.text_match.normalise import singular
from ragworth.text_match.units import MAGNITUDES, Unit, find_unit, readings_as_written

_UP_WORDS = """
rise rose risen rising raise raised increase increased increasing grow grew grown growing growth gain gained climb
climbed jump jumped surge surged expand expanded improve improved improving improvement up higher profit upward
"""
_DOWN_WORDS = """
fall fell fallen falling decrease decreased decreasing decline declined declining drop dropped dropping shrink shrank
shrunk lose lost loss deficit reduce reduced reduction contract contracted down lower dip dipped slip slipped plunge
plunged negative minus worsen worsened deteriorate deteriorated downward
"""
DIRECTIONS = dict.fromkeys(_UP_WORDS.split(), 1) | dict.fromkeys(_DOWN_WORDS.split(), -1)
"""1 for words that go up, −1 for words that go down."""

_BEFORE, _AFTER, _DENIED = 8, 4, 3
_ENDS = frozenset(".;!?\n")


def _direction_at(words: Sequence[str], start: int, end: int) -> int:
    """The direction said of the number at ``start`` to ``end``: the nearest in its sentence; 0 if there is none."""
    for at in range(start - 1, max(-1, start - 1 - _BEFORE), -1):
        if words[at] in _ENDS:
            break
        if words[at] in DIRECTIONS:
            return _unless_denied(words, at)
    for at in range(end, min(len(words), end + _AFTER)):
        if words[at] in _ENDS:
            break
        if words[at] in DIRECTIONS:
            return _unless_denied(words, at)
    return 0


def _unless_denied(words: Sequence[str], at: int) -> int:
    return 0 if NEGATIONS.intersection(words[max(0, at - _DENIED) : at]) else DIRECTIONS[words[at]]


QuantityKind = Literal["number", "ordinal", "year", "date"]
Role = Literal["", "change", "level"]

_HEDGE_WORDS = """
about around approximately approx roughly nearly almost circa ca over under above some estimated estimate than least
most up close almost ~ ≈ probably perhaps maybe
"""
_HEDGES = frozenset(_HEDGE_WORDS.split())
_HEDGE_DISTANCE = 3
_TIMES = {"once": 1.0, "twice": 2.0, "thrice": 3.0}
_PARTS = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4, "fifth": 1 / 5, "tenth": 1 / 10}
_PLURAL_PARTS = {"halves": 2, "thirds": 3, "quarters": 4, "fifths": 5, "sixths": 6, "eighths": 8, "tenths": 10}
_DECADE = re.compile(r"(\d{3}0)s")
_FISCAL_YEAR = re.compile(r"fy(\d{4})")
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_DASHES = frozenset("–—")
_ROLES: dict[str, Role] = {"by": "change", "from": "level", "to": "level"}
MAX_SPAN = 20
"""Years of a span whose end is written in two digits."""


class Quantity(NamedTuple):
    """A number with what is said of it. ``high`` is the end of a range, ``step`` the last place that is written.

    ``units`` are the readings of its unit, none for a plain number; ``noun`` is the word that follows a plain number.
    ``tokens`` are those of a date. ``direction`` is 1 or −1 if it is said to be a rise or a fall. ``role`` is whether
    it is by how much something changed, or from or to which level.
    """

    kind: QuantityKind
    value: float
    step: float
    start: int
    end: int
    units: tuple[Unit, ...] = ()
    high: float | None = None
    scaled: bool = False
    hedged: bool = False
    noun: str = ""
    direction: int = 0
    tokens: tuple[str, ...] = ()
    role: Role = ""


def read_quantities(pieces: Sequence[TextPiece]) -> tuple[Quantity, ...]:
    """The quantities of a text in sequence."""
    if not any(_may_begin(piece) for piece in pieces):
        return ()
    return tuple(_QuantityReader(pieces).read())


def _may_begin(piece: TextPiece) -> bool:
    return piece.kind in ("number", "place", "date") or piece.value[:1].isdigit() or piece.value in _WORDS


_WORDS = {*_TIMES, *_PARTS, *_PLURAL_PARTS, *MONTHS} | {"fy"}


class _QuantityReader:
    """Reads a list of pieces from left to right."""

    def __init__(self, pieces: Sequence[TextPiece]) -> None:
        self.pieces = pieces
        self.words = [piece.raw if piece.kind == "break" else singular(piece.value) for piece in pieces]

    def read(self) -> list[Quantity]:
        found: list[Quantity] = []
        at = 0
        while at < len(self.pieces):
            quantity = self._quantity(at)
            if quantity is None:
                at += 1
                continue
            at = quantity.end
            previous = found[-1] if found else None
            joined = self._join(previous, quantity) if previous is not None else None
            if joined is not None:
                found[-1] = joined
            else:
                found.append(quantity)
        return [each._replace(direction=self._direction(each), role=self._role(each)) for each in found]

    def _role(self, quantity: Quantity) -> Role:
        return _ROLES.get(self._at(quantity.start - 1), "")

    def _direction(self, quantity: Quantity) -> int:
        return 1 if self._at(quantity.start - 1) == "+" else _direction_at(self.words, quantity.start, quantity.end)

    def _quantity(self, at: int) -> Quantity | None:
        piece = self.pieces[at]
        tokens, width = date_at(self.pieces, at)
        if width:
            return _date(tokens, at, at + width)
        if piece.kind == "date":
            return _date(numeric_date_tokens(piece.raw), at, at + 1)
        if piece.kind == "number":
            return self._number(at)
        if piece.kind == "place":
            return self._ordinal(at)
        return self._word(at) if piece.kind == "word" else None

    def _word(self, at: int) -> Quantity | None:
        value, before, after = self.pieces[at].value, self._at(at - 1), self._at(at + 1)
        if match := _FISCAL_YEAR.fullmatch(value):
            return _year(match[1], at)
        if match := _DECADE.fullmatch(value):
            first = float(match[1])
            return Quantity("year", first, 1, at, at + 1, high=first + (99 if match[1].endswith("00") else 9))
        if value in ("a", "an") and self.words[at + 2 : at + 5] == ["and", "a", "half"]:
            units, width = find_unit(self.words, at + 1)
            return Quantity("number", 1.5, 0, at, at + 5, units) if width == 1 else None
        if value in _TIMES:
            return Quantity("number", _TIMES[value], 1, at, at + 1, noun="time")
        if value in _PARTS and before in ("a", "one", "") and after in ("of", ""):
            return Quantity("number", _PARTS[value], 0, at, at + 1)
        if value == "half" and after == "a":
            units, width = find_unit(self.words, at + 2)
            return Quantity("number", 0.5, 0, at, at + 2 + width, units) if width else None
        return None

    def _ordinal(self, at: int) -> Quantity:
        value = float(self.pieces[at].value)
        noun = self._noun(at + 1)
        if self._at(at - 1) == "a" and value > 2 and self._ends_part(at):
            return Quantity("number", 1 / value, 0, at, at + 1)
        if noun == "century" and value < 100:
            return Quantity("year", 100 * (value - 1), 1, at, at + 2, high=100 * value - 1)
        return Quantity("ordinal", value, 1, at, at + 1, noun=noun)

    def _number(self, at: int) -> Quantity:
        piece = self.pieces[at]
        clock = self._clock(at)
        if clock is not None:
            return clock
        value, step, scaled = _read_number(piece)
        end = at + 1
        fraction, width = self._fraction(at)
        if width:
            value, step, end = fraction, 0.0, at + width
            if self._at(end) in MAGNITUDES:
                value, scaled, end = value * MAGNITUDES[self._at(end)], True, end + 1
        if self._at(at - 1) in ("minus", "negative"):
            value = -abs(value)
        units, end, magnitude = self._unit(at, end)
        if magnitude != 1:
            value, step, scaled = value * magnitude, step * magnitude, True
        hedged = not _HEDGES.isdisjoint(self.words[max(0, at - _HEDGE_DISTANCE) : at])
        if not units and not scaled and not width and not hedged and _YEAR.fullmatch(piece.raw):
            return _year(piece.raw, at)
        return Quantity(
            "number", value, step, at, end, units, scaled=scaled, hedged=hedged, noun="" if units else self._noun(end)
        )

    def _unit(self, at: int, end: int) -> tuple[tuple[Unit, ...], int, float]:
        """The unit behind a number, or the currency before it; where it ends; and a magnitude ("$5m")."""
        units, width = self._fitting_unit(end)
        before, before_width = find_unit(self.words, at - 1) if at else ((), 0)
        before = readings_as_written(before, self.pieces[at - 1].raw) if before_width == 1 else ()
        money = tuple(unit for unit in before if unit.is_money)
        counts = [unit for unit in units if unit.dimension == "count"]
        if counts:
            following, more = self._fitting_unit(end + width)
            own, next_ = (tuple(unit for unit in each if unit.is_money) for each in (units, following))
            money = own or money or next_
            if money or len(counts) == len(units):
                return money, end + width + (more if money is next_ and next_ else 0), counts[0].factor
        return (units, end + width, 1.0) if units else (money, end, 1.0)

    def _fitting_unit(self, at: int) -> tuple[tuple[Unit, ...], int]:
        units, width = find_unit(self.words, at)
        if width == 1:
            units = readings_as_written(units, self.pieces[at].raw)
        if not units:
            return (), 0
        if width and self.pieces[at].raw in ("$", "€", "£", "¥"):
            # The sign stood before the number; a magnitude may follow it: "$5m".
            following, more = find_unit(self.words, at + 1)
            money = tuple(unit for unit in units if unit.is_money)
            counts = [unit for unit in following if unit.dimension == "count"]
            if counts and more == 1:
                return (*money, Unit("count", counts[0].factor)), width + more
            return money, width
        return units, width

    def _fraction(self, at: int) -> tuple[float, int]:
        """A fraction at a position, and how many pieces it takes: "3/4", "3 7/8", "two thirds"."""
        first = float(self.pieces[at].value)
        part = _PLURAL_PARTS.get(self.pieces[at + 1].value) if at + 1 < len(self.pieces) else None
        if part and first < part:
            return first / part, 2
        if self._is_one_part(at):
            return 1 / float(self.pieces[at + 1].value), 2
        if self.pieces[at].raw.lower() == "one" and self._at(at + 1) in ("half", "quarter") and self._ends_part(at + 1):
            return _PARTS[self._at(at + 1)], 2
        if self.words[at + 1 : at + 4] == ["and", "a", "half"]:
            return first + 0.5, 4
        quotient = self._quotient(at)
        if quotient is not None:
            return quotient, 3
        if self._kind(at + 1) == "number" and (rest := self._quotient(at + 1)) is not None:
            return first + rest, 4
        return 0.0, 0

    def _is_one_part(self, at: int) -> bool:
        """Whether "one" and an ordinal are a fraction: "one eighth of it", but not "one third party"."""
        if self.pieces[at].raw.lower() != "one" or self._kind(at + 1) != "place":
            return False
        return self._ends_part(at + 1)

    def _ends_part(self, at: int) -> bool:
        return self.pieces[at].raw.isalpha() and self._at(at + 1) in ("of", "", ".", ",")

    def _quotient(self, at: int) -> float | None:
        if self._at(at + 1) != "/" or self._kind(at + 2) != "number" or self._at(at + 3) == "/":
            return None
        above, below = float(self.pieces[at].value), float(self.pieces[at + 2].value)
        return above / below if 0 < above < below <= 20 else None

    def _clock(self, at: int) -> Quantity | None:
        """A time of day, or hours, minutes and seconds: "7:30 a.m.", "2:14:04"."""
        width = 3 if self._at(at + 1) == ":" and self._kind(at + 2) == "number" else 1
        half = self._at(at + width)
        if half in ("am", "pm"):
            minutes = float(self.pieces[at + 2].value) if width == 3 else 0.0
            value = float(self.pieces[at].value) % 12 * 60 + minutes + 720 * (half == "pm")
            return Quantity("number", value, 1, at, at + width + 1, (Unit("time of day", 1.0),))
        parts = self.pieces[at : at + 5]
        if [part.kind for part in parts] != ["number", "break", "number", "break", "number"]:
            return None
        if parts[1].raw != ":" or parts[3].raw != ":":
            return None
        hours, minutes, seconds = (float(parts[place].value) for place in (0, 2, 4))
        return Quantity("number", 3600 * hours + 60 * minutes + seconds, 1, at, at + 5, (Unit("time", 1.0),))

    def _join(self, first: Quantity, second: Quantity) -> Quantity | None:
        """One quantity of two: a range ("5–7 %"), a measure in parts ("6 ft 3 in"), or a value and error ("5 ± 1")."""
        between = self.words[first.end : second.start]
        if between == ["±"]:
            return second._replace(kind="number", value=first.value, step=first.step, start=first.start)
        compound = self._compound(first, second, between)
        if compound is not None:
            return compound
        end = self._short_year(first, second) if not between or between == ["–"] else None
        if end is not None:
            return first._replace(high=end, end=second.start + 1)
        if first.kind == second.kind == "year":
            close = first.high is None and second.high is None and self._is_joint(first, between)
            return first._replace(high=second.value, end=second.end) if close else None
        if first.kind != "number" or second.kind != "number" or first.high is not None or second.high is not None:
            return None
        if not self._is_joint(first, between) or (not between and self._measures_other(first, second)):
            return None
        factor = 1.0
        if second.scaled and not first.scaled:
            factor = second.step / (10.0 ** -_decimals(self.pieces[second.start].raw)) if second.step else 1.0
        units = second.units or first.units
        return second._replace(value=first.value * factor, high=second.value, start=first.start, units=units)

    def _short_year(self, first: Quantity, second: Quantity) -> float | None:
        """The end of a span of years that is written in two digits: "1951–52"."""
        raw, century = self.pieces[second.start].raw, first.value - first.value % 100
        if first.kind != "year" or first.high is not None or not raw.isdecimal() or len(raw) != 2:
            return None
        return century + float(raw) if 0 < float(raw) - first.value % 100 < MAX_SPAN else None

    def _is_joint(self, first: Quantity, between: list[str]) -> bool:
        """Whether two numbers make a range; "from 5 to 7" may be a change."""
        before = self.words[max(0, first.start - 2) : first.start]
        if between == ["and"]:
            return "between" in before
        if between == ["to"]:
            return "from" not in before
        return not between or (len(between) == 1 and between[0] in _DASHES)

    @staticmethod
    def _measures_other(first: Quantity, second: Quantity) -> bool:
        """Whether a number has a unit that the next one lacks: "500 mg 3 times a day", but not "$5-7"."""
        one, two = ({unit.dimension for unit in each.units} for each in (first, second))
        return bool(one) and not one & two and not first.units[0].is_money

    def _compound(self, first: Quantity, second: Quantity, between: list[str]) -> Quantity | None:
        if between not in ([], [","], ["and"], [",", "and"], ["'"], ["’"]) or first.kind != second.kind:
            return None
        feet = between in (["'"], ["’"]) and not first.units
        one = Unit("length", 0.3048) if feet else (first.units[0] if first.units else None)
        if one is None or second.kind != "number":
            return None
        inches = one.dimension == "length" and one.factor == 0.3048 and self._at(second.end) in ("in", '"', "”")
        two = Unit("length", 0.0254) if inches else (second.units[0] if second.units else None)
        if two is None or two.dimension != one.dimension or two.factor >= one.factor or one.is_money:
            return None
        value = (first.value * one.factor + second.value * two.factor) / one.factor
        step = second.step * two.factor / one.factor
        return first._replace(value=value, step=step, end=second.end + inches, units=(one,), noun="")

    def _at(self, at: int) -> str:
        return self.words[at] if 0 <= at < len(self.words) else ""

    def _noun(self, at: int) -> str:
        return self._at(at) if self._kind(at) == "word" and self._at(at) != "of" else ""

    def _kind(self, at: int) -> str:
        return self.pieces[at].kind if 0 <= at < len(self.pieces) else ""


def _date(tokens: Sequence[str], start: int, end: int) -> Quantity:
    return Quantity("date", 0.0, 0.0, start, end, tokens=tuple(tokens))


def _year(digits: str, at: int) -> Quantity:
    return Quantity("year", float(digits), 1, at, at + 1)


def _decimals(raw: str) -> int:
    _, point, fraction = raw.rpartition(".")
    return len(fraction) if point and fraction.isdecimal() else 0


def _read_number(piece: TextPiece) -> tuple[float, float, bool]:
    """A number's value, the last place written of it, and whether a magnitude was applied."""
    value = float(piece.value)
    bare = re.sub(r"[^\d.]", "", piece.raw)
    written = float(bare) if bare.count(".") <= 1 and bare.strip(".") else 0.0
    magnitude = abs(value) / written if written else 1.0
    if written and magnitude > 1.5:
        return value, magnitude * 10.0 ** -_decimals(piece.raw), True
    # A number in words, such as "two million", is as precise as a number in digits.
    return value, 10.0 ** -_decimals(piece.raw), False


class QuestionHints(NamedTuple):
    """What a question says of the number it asks for: magnitude ("in USD millions") and unit ("how many days")."""

    magnitude: float = 1.0
    units: tuple[Unit, ...] = ()
    span: bool = False
    """Whether it asks for a decade or a century, so that a year in it is an answer."""


_ASKED_MAGNITUDE = re.compile(r"(?i)\b(?:in|of)\W+(?:\w+\W+){0,3}?(?<!\d )(thousand|million|billion|trillion)s?\b")
_ASKED_UNIT = re.compile(r"(?i)(?:\bhow many|\bin|\bhow much in)\s+(\w+)(?=\s+(?:do|does|did|is|are|was|were)\b|\W*$)")
_ASKED_SPAN = re.compile(r"(?i)\b(?:decade|century|period|era)\b")
_ASKED_PERCENT = re.compile(r"(?i)\b(?:percent|percentage|per cent)\b")


def read_hints(question: str) -> QuestionHints:
    """What a question asks a number to be."""
    magnitude = _ASKED_MAGNITUDE.search(question)
    factor = MAGNITUDES[magnitude[1].lower()] if magnitude else 1.0
    span = _ASKED_SPAN.search(question) is not None
    if _ASKED_PERCENT.search(question):
        return QuestionHints(factor, (Unit("percent", 1.0),), span)
    asked = _ASKED_UNIT.search(question)
    units, _ = find_unit([singular(asked[1].lower())], 0) if asked and len(asked[1]) > 2 else ((), 0)
    return QuestionHints(factor, tuple(unit for unit in units if unit.dimension != "count"), span)
