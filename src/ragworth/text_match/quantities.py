"""Read the quantities of a text, and compare those of an accepted answer with those of a text.

A quantity is a number with its unit, a percentage, a range, a date or a year. It keeps how precisely it was written.
Two quantities are the same if one is the other, converted and rounded as it is written: "$10.4 billion" for "$10,389
million", "984 feet" for "300 m", "0.921" for "92.1 %". Whole numbers without a magnitude must be equal unless one is
hedged ("about 54,000" for "54,320").
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ragworth.text_match.normalise import TextPiece, singular
from ragworth.text_match.polarity import DIRECTIONS
from ragworth.text_match.units import MAGNITUDES, Unit, find_unit

Comparison = Literal["same", "opposite", "coarse", "different", "incomparable"]
_BEST: tuple[Comparison, ...] = ("same", "opposite", "coarse", "different")
"""Comparisons, of several the first that one of them has."""

MAX_ROUNDING, MAX_HEDGED_ROUNDING = 0.025, 0.05
"""Greatest relative error of a rounded number, and of one that is hedged: "about 54,000"."""
CONVERSION_ERROR = 0.02
"""Relative error between units whose ratio is no power of ten: 200 mph for 320 km/h."""
_SLACK = 1e-9
_PERCENT = Unit("percent", 1.0)
_MAX_SHARE = 2
"""Largest number without a unit that may be a share, 0.921 for 92.1 %."""
_BEFORE, _AFTER, _HEDGE_DISTANCE = 8, 4, 3
"""Words before and after a number that say its direction; words before it that hedge."""
_HEDGE_WORDS = """
about around approximately approx roughly nearly almost circa ca over under above some estimated estimate than least
most up close ~ ≈ probably perhaps maybe
"""
_HEDGES = frozenset(_HEDGE_WORDS.split())
_PARTS = {"thirds": 3, "quarters": 4, "fifths": 5, "tenths": 10}
_TIMES = {"once": 1.0, "twice": 2.0, "thrice": 3.0}
_YEAR = re.compile(r"(?:1[0-9]|20)[0-9]{2}")
_NAMED_YEARS = re.compile(r"(?:fy)?((?:1[0-9]|20)[0-9]{2})(s?)")
_SIGNS = ("$", "€", "£", "¥", "₹")


class Quantity(NamedTuple):
    """A number with what is said of it. ``high`` is the end of a range, ``step`` the last place that is written.

    ``units`` are the readings of its unit, none for a plain number; ``noun`` is the word that follows a plain number.
    ``date`` are the tokens of a date. ``direction`` is 1 or −1 if it is said to be a rise or a fall.
    """

    kind: Literal["number", "ordinal", "year", "date"]
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
    date: tuple[str, ...] = ()


def read_quantities(pieces: Sequence[TextPiece]) -> tuple[Quantity, ...]:
    """The quantities of a text in sequence."""
    reader = _QuantityReader(pieces)
    quantities: list[Quantity] = []
    at = 0
    while at < len(pieces):
        quantity = reader.read(at)
        if quantity is None:
            at += 1
            continue
        at = quantity.end
        joined = reader.join(quantities[-1], quantity) if quantities else None
        quantities[-1 if joined else len(quantities) :] = [joined or quantity]
    return tuple(each._replace(direction=reader.direction(each)) for each in quantities)


class _QuantityReader:
    """Reads quantities from a list of pieces."""

    def __init__(self, pieces: Sequence[TextPiece]) -> None:
        self.pieces = pieces
        self.words = [piece.raw if piece.kind == "break" else singular(piece.value) for piece in pieces]

    def read(self, at: int) -> Quantity | None:
        """The quantity that begins at a piece."""
        piece = self.pieces[at]
        if piece.kind == "number":
            return self._number(at)
        if piece.kind == "date":
            return Quantity("date", 0.0, 0.0, at, at + 1, date=tuple(piece.value.split()))
        if piece.kind == "place":
            value, noun = float(piece.value), self._noun(at + 1)
            if noun == "century":
                return Quantity("year", 100 * (value - 1), 1, at, at + 2, high=100 * value - 1)
            return Quantity("ordinal", value, 1, at, at + 1, noun=noun)
        if piece.value in _TIMES:
            return Quantity("number", _TIMES[piece.value], 1, at, at + 1, noun="time")
        if years := _NAMED_YEARS.fullmatch(piece.value):  # FY2018, the 1950s, the 1900s
            first = float(years[1])
            return Quantity("year", first, 1, at, at + 1, high=first + (9 if first % 100 else 99) if years[2] else None)
        return None

    def _number(self, at: int) -> Quantity:
        value, step, scaled = _read_number(self.pieces[at])
        if self._at(at - 1) in ("minus", "negative"):
            value = -abs(value)
        fraction, end = self._fraction(at)
        value, step = (fraction, 0.0) if end > at + 1 else (value, step)
        units, end, magnitude = self._unit(at, end)
        scaled = scaled or magnitude != 1
        hedged = not _HEDGES.isdisjoint(self.words[max(0, at - _HEDGE_DISTANCE) : at])
        if not (units or scaled or hedged) and _YEAR.fullmatch(self.pieces[at].raw):
            return Quantity("year", value, 1, at, at + 1)
        value, step, noun = value * magnitude, step * magnitude, "" if units else self._noun(end)
        return Quantity("number", value, step, at, end, units, scaled=scaled, hedged=hedged, noun=noun)

    def _fraction(self, at: int) -> tuple[float, int]:
        """A number with the fraction that follows it, "two thirds", "3/4", "3 7/8", and where it ends."""
        value = float(self.pieces[at].value)
        if part := _PARTS.get(self._at(at + 1) + "s"):
            return value / part, at + 2
        for whole, place in ((0.0, at), (value, at + 1)):
            above, slash, below, after = (self._at(place + step) for step in range(4))
            numbers = above.isdecimal() and below.isdecimal()
            if slash == "/" and after != "/" and numbers and 0 < int(above) < int(below):
                return whole + int(above) / int(below), place + 3
        return value, at + 1

    def _unit(self, at: int, end: int) -> tuple[tuple[Unit, ...], int, float]:
        """The unit behind a number, or the currency before it; where it ends; and a magnitude ("$5m")."""
        units, width = find_unit(self.words, end)
        before = _money(find_unit(self.words, at - 1)[0]) if at else ()
        if width and self.pieces[end].raw in _SIGNS:
            # The sign stood before the number; a magnitude may follow it: "$5m".
            before, end = _money(units), end + width
            units, width = find_unit(self.words, end)
            if not _count(units):
                return before, end, 1.0
        count = _count(units)
        following, more = find_unit(self.words, end + width) if count else ((), 0)
        money = before or _money(following)
        if count and (money or len(units) == 1 or self.pieces[end].raw == "M"):
            return money, end + width + (more if money and not before else 0), count
        return units or before, end + width, 1.0

    def join(self, first: Quantity, second: Quantity) -> Quantity | None:
        """One quantity of two: a range ("5–7 %"), or a measure in parts ("6 ft 3 in", "2 hours and 14 minutes")."""
        between = self.words[first.end : second.start]
        if compound := self._compound(first, second, between):
            return compound
        raw, century = self.pieces[second.start].raw, first.value - first.value % 100
        if first.kind == "year" and first.high is None and between in ([], ["–"]) and raw.isdecimal() and len(raw) == 2:
            return first._replace(high=century + float(raw), end=second.end) if float(raw) > first.value % 100 else None
        if first.kind != second.kind or first.kind not in ("number", "year") or not self._is_range(first, between):
            return None
        if first.high is not None or second.high is not None:
            return None
        if first.kind == "year":
            return first._replace(high=second.value, end=second.end)
        alike = {unit.dimension for unit in first.units} & {unit.dimension for unit in second.units}
        if first.units and not between and not alike and not _money(first.units):
            return None  # "500 mg 3 times a day", but "$5-7"
        factor = 1.0
        if second.scaled and not first.scaled and second.step:
            factor = second.step / (10.0 ** -_decimals(self.pieces[second.start].raw))
        units = second.units or first.units
        return second._replace(value=first.value * factor, high=second.value, start=first.start, units=units)

    def _is_range(self, first: Quantity, between: list[str]) -> bool:
        """Return whether two numbers make a range; "from 5 to 7" may be a change."""
        before = self.words[max(0, first.start - 2) : first.start]
        if between == ["and"]:
            return "between" in before
        if between == ["to"]:
            return "from" not in before
        return not between or between in (["–"], ["—"])

    def _compound(self, first: Quantity, second: Quantity, between: list[str]) -> Quantity | None:
        if between not in ([], [","], ["and"], [",", "and"]) or not first.units or second.kind != "number":
            return None
        one, two = first.units[0], second.units[0] if second.units else None
        if one == Unit("length", 0.3048) and self._at(second.end) == "in":
            two = Unit("length", 0.0254)
        if two is None or two.dimension != one.dimension or two.factor >= one.factor or one.is_money:
            return None
        value = first.value + second.value * two.factor / one.factor
        step = second.step * two.factor / one.factor
        return first._replace(value=value, step=step, end=second.end, units=(one,), noun="")

    def direction(self, quantity: Quantity) -> int:
        """The direction said of a number: the nearest in its sentence; 0 if there is none."""
        start, end = quantity.start, quantity.end
        if self._at(start - 1) == "+":
            return 1
        before = range(start - 1, max(-1, start - 1 - _BEFORE), -1)
        for places in (before, range(end, min(len(self.words), end + _AFTER))):
            for at in places:
                if self.words[at] in (".", ";", "!", "?", "\n"):
                    break
                if self.words[at] in DIRECTIONS:
                    return DIRECTIONS[self.words[at]]
        return 0

    def _at(self, at: int) -> str:
        return self.words[at] if 0 <= at < len(self.words) else ""

    def _noun(self, at: int) -> str:
        return self._at(at) if at < len(self.pieces) and self.pieces[at].kind == "word" and self._at(at) != "of" else ""


def _money(units: Sequence[Unit]) -> tuple[Unit, ...]:
    return tuple(unit for unit in units if unit.is_money)


def _count(units: Sequence[Unit]) -> float | None:
    return next((unit.factor for unit in units if unit.dimension == "count"), None)


def _decimals(raw: str) -> int:
    _, point, fraction = raw.rpartition(".")
    return len(fraction) if point and fraction.isdecimal() else 0


def _read_number(piece: TextPiece) -> tuple[float, float, bool]:
    """A number's value, the last place written of it, and whether a magnitude was applied."""
    value, step = float(piece.value), 10.0 ** -_decimals(piece.raw)
    bare = re.sub(r"[^\d.]", "", piece.raw)
    written = float(bare) if bare.count(".") <= 1 and bare.strip(".") else 0.0
    magnitude = abs(value) / written if written else 1.0
    # A number in words, such as "two million", is as precise as a number in digits.
    return (value, step * magnitude, True) if magnitude > 1.5 else (value, step, False)


class QuestionHints(NamedTuple):
    """What a question says of the number it asks for: a magnitude ("in USD millions"), or a decade or century."""

    magnitude: float = 1.0
    span: bool = False


_ASKED_MAGNITUDE = re.compile(r"(?i)\b(?:in|of)\W+(?:\w+\W+){0,3}?(?<!\d )(thousand|million|billion|trillion)s?\b")
_ASKED_SPAN = re.compile(r"(?i)\b(?:decade|century|period|era)\b")


def read_hints(question: str) -> QuestionHints:
    """Return what a question asks a number to be."""
    magnitude = _ASKED_MAGNITUDE.search(question)
    factor = MAGNITUDES[magnitude[1].lower()] if magnitude else 1.0
    return QuestionHints(factor, _ASKED_SPAN.search(question) is not None)


class QuantityFinding(NamedTuple):
    """A quantity of the accepted answer with the text's that is most like it; ``incomparable`` without any."""

    result: Comparison
    wanted: Quantity
    match: Quantity | None = None


def find_quantities(
    wanted: Sequence[Quantity], said: Sequence[Quantity], hints: QuestionHints
) -> list[QuantityFinding]:
    """Look for the quantities of the accepted answer; one that is given can't contradict another."""
    findings = [_find_quantity(each, said, hints) for each in wanted]
    used = [each.match for each in findings if each.result == "same"]
    others = [each for each in said if each not in used]
    return [each if each.result == "same" else _find_quantity(each.wanted, others, hints) for each in findings]


def _find_quantity(wanted: Quantity, said: Sequence[Quantity], hints: QuestionHints) -> QuantityFinding:
    if wanted.high is not None:
        # A range whose ends the text gives apart: "from 6.5 to 8".
        low, high = (_find_quantity(_end(wanted, low=low), said, hints) for low in (True, False))
        if low.result == high.result == "same" and low.match != high.match:
            return low._replace(wanted=wanted)
    # Quantities in the wanted unit, or counting the same things, if there are any; otherwise all.
    alike = [each for each in said if wanted.units and _common(wanted.units, each.units)]
    alike = alike or [each for each in said if not wanted.units and wanted.noun and each.noun == wanted.noun]
    results = {compare(wanted, each, hints): each for each in reversed(alike or said)}
    best = next((result for result in _BEST if result in results), None)
    return QuantityFinding(best, wanted, results[best]) if best else QuantityFinding("incomparable", wanted)


def compare(wanted: Quantity, said: Quantity, hints: QuestionHints) -> Comparison:
    """Compare two quantities: ``incomparable`` if they are of different kinds."""
    for one, other in ((wanted, said), (said, wanted)):
        if one.units == other.units and math.isclose(one.step, 1e-3) and math.isclose(1e3 * one.value, other.value):
            return "coarse"  # its point may separate thousands: "10.000"
        if _is_near_share(one, other):
            return "coarse"
    kinds = {wanted.kind, said.kind}
    whole = wanted.high is None and said.high is None
    if kinds <= {"date", "year"}:
        return _compare_dates(_date_parts(wanted), _date_parts(said)) if whole else _compare_spans(wanted, said, hints)
    if kinds == {"year", "number"} and whole:
        # Four digits may be a year or an amount; another year is no other amount.
        return "same" if _compare_numbers(wanted, said, hints) == "same" else "incomparable"
    if len(kinds) > 1:
        return "same" if wanted.value == said.value and wanted.noun and wanted.noun == said.noun else "incomparable"
    return _compare_numbers(wanted, said, hints) if whole else _compare_ranges(wanted, said, hints)


def _is_near_share(percent: Quantity, share: Quantity) -> bool:
    """Return whether a percentage and a share differ by one in the last place, perhaps cut: "65.3 %" and 0.654."""
    if _PERCENT not in percent.units or share.units or not math.isclose(percent.step, 100 * share.step):
        return False
    return math.isclose(abs(percent.value - 100 * share.value), percent.step, rel_tol=1e-6)


def _date_parts(quantity: Quantity) -> dict[str, str]:
    """Year, month and day of a date or of a year."""
    tokens = quantity.date or (f"{quantity.value:.0f}",)
    kinds = ["year" if token.isdecimal() else "day" if token[3:].isdecimal() else "month" for token in tokens]
    return dict(zip(kinds, tokens, strict=True)) if len({*kinds}) == len(kinds) else {"ambiguous": ""}


def _compare_dates(one: dict[str, str], other: dict[str, str]) -> Comparison:
    if "ambiguous" in one or "ambiguous" in other:
        return "coarse"
    shared = one.keys() & other.keys()
    if not shared:
        return "incomparable"
    if any(one[part] != other[part] for part in shared):
        return "different"
    return "same" if one.keys() <= other.keys() else "coarse"


def _compare_spans(wanted: Quantity, said: Quantity, hints: QuestionHints) -> Comparison:
    """Compare years with a span of years, or two spans."""
    if "date" in (wanted.kind, said.kind):
        return "incomparable"
    (low, high), (start, end) = (
        (each.value, each.value if each.high is None else each.high) for each in (wanted, said)
    )
    if (low, high) == (start, end):
        return "same"
    if low <= start and end <= high:
        return "same" if hints.span and start == end else "coarse"
    return "coarse" if start <= low and high <= end else "different"


def _compare_ranges(wanted: Quantity, said: Quantity, hints: QuestionHints) -> Comparison:
    """Compare two ranges, or one with a single number, which may lie within it."""
    low, high = (_compare_numbers(_end(wanted, low=end), _end(said, low=end), hints) for end in (True, False))
    if low == high:
        return low
    if "incomparable" in (low, high):
        return "incomparable"
    return "different" if wanted.high is not None and said.high is not None else "coarse"


def _end(quantity: Quantity, *, low: bool) -> Quantity:
    value = quantity.value if low or quantity.high is None else quantity.high
    return quantity._replace(value=value, high=None)


def _compare_numbers(wanted: Quantity, said: Quantity, hints: QuestionHints) -> Comparison:
    pairs = [(wanted, said)]
    if hints.magnitude != 1 and not wanted.scaled and len(_money(wanted.units)) == len(wanted.units):
        wanted = _magnified(wanted, hints.magnitude)
        pairs = [(wanted, said)]
        magnified = _magnified(said, hints.magnitude)
        plain = not said.scaled and len(_money(said.units)) == len(said.units)
        pairs += [(wanted, magnified)] if plain and _compare_readings([(wanted, magnified)]) == "same" else []
    return _compare_readings(pairs)


def _magnified(quantity: Quantity, factor: float) -> Quantity:
    return quantity._replace(value=quantity.value * factor, step=quantity.step * factor, scaled=True)


def _compare_readings(pairs: Sequence[tuple[Quantity, Quantity]]) -> Comparison:
    """The best comparison of all readings of some pairs."""
    results = {_compare_values(*reading) for pair in pairs for reading in _readings(*pair)}
    return next((each for each in _BEST if each in results), "incomparable")


def _readings(wanted: Quantity, said: Quantity) -> list[tuple[Quantity, Quantity]]:
    """Both quantities in comparable units, in every reading of them."""
    if wanted.units and said.units:
        pairs = [(a, b) for a in wanted.units for b in said.units if a.dimension == b.dimension]
        if not pairs and wanted.units[0].is_money and said.units[0].is_money:
            # Another currency: the numbers are comparable, and must not be the same.
            return [(wanted, said._replace(value=math.inf))]
        return [(_convert(wanted, a, b), _convert(said, b, a)) for a, b in pairs]
    plain = [(wanted, said)]
    measured, bare = (wanted, said) if wanted.units else (said, wanted)
    if _PERCENT in measured.units and abs(bare.value) <= _MAX_SHARE and not bare.noun:
        share = bare._replace(value=bare.value * 100, step=bare.step * 100)
        return [*plain, (wanted, share) if measured is wanted else (share, said)]
    if measured.units and bare.noun:
        # One counts things, the other measures.
        return plain if wanted.value == said.value and not wanted.noun else []
    return plain


def _convert(quantity: Quantity, unit: Unit, other: Unit) -> Quantity:
    if unit == other:
        return quantity
    step = quantity.step * unit.factor
    ratio = math.log10(unit.factor / other.factor)
    if abs(ratio - round(ratio)) > _SLACK:
        step = max(step, 2 * CONVERSION_ERROR * abs(quantity.value * unit.factor))
    return quantity._replace(value=unit.to_base(quantity.value), step=step)


def _compare_values(wanted: Quantity, said: Quantity) -> Comparison:
    # A fall is a negative number.
    mine, theirs = (-1 if each.value < 0 else each.direction for each in (wanted, said))
    opposed = mine * theirs < 0 or (wanted.value < 0 and not theirs) or (said.value < 0 and not mine)
    signed = opposed or mine * theirs > 0
    one, other = (abs(wanted.value), abs(said.value)) if signed else (wanted.value, said.value)
    close = _compare_sizes(one, other, wanted, said)
    return "opposite" if close == "same" and opposed else close


def _compare_sizes(one: float, other: float, wanted: Quantity, said: Quantity) -> Comparison:
    error = abs(one - other)
    if not math.isfinite(error):
        return "same" if one == other else "different"
    if error <= _SLACK * max(abs(one), abs(other)):
        return "same"
    steps = _rounding_step(wanted, one), _rounding_step(said, other)
    if error > max(steps) / 2 * (1 + 1e-6):
        return "different"
    coarser = wanted if steps[0] > steps[1] else said
    most = MAX_HEDGED_ROUNDING if coarser.hedged else MAX_ROUNDING
    return "same" if error <= most * max(abs(one), abs(other)) else "coarse"


def _rounding_step(quantity: Quantity, value: float) -> float:
    """The last place written; of a hedged whole number, the last that is not 0, so that "about 54,000" is rounded."""
    if not quantity.hedged or quantity.step != 1 or not value or not math.isfinite(value):
        return quantity.step
    step = 1.0
    while step * 100 <= abs(quantity.value) and quantity.value % (step * 10) == 0:
        step *= 10
    return step


def _common(one: Sequence[Unit], other: Sequence[Unit]) -> tuple[Unit, Unit] | None:
    return next(((a, b) for a in one for b in other if a.dimension == b.dimension), None)
