"""Compare the quantities of an accepted answer with those of a text.

Two quantities are the same if one is the other, converted and rounded as it is written: "$10.4 billion" for "$10,389
million", "984 feet" for "300 m", "0.921" for "92.1 %". Whole numbers without a magnitude must be equal unless one is
hedged ("about 54,000" for "54,320").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from ragworth.text_match.dates import readings_of_date
from ragworth.text_match.quantities import Quantity, QuestionHints
from ragworth.text_match.units import KELVIN, Unit

Comparison = Literal["same", "opposite", "coarse", "different", "incomparable"]
QuantityStatus = Literal["given", "opposite", "coarse", "conflict", "missing"]

MAX_ROUNDING = 0.025
"""Greatest relative error of a rounded number with at least two digits."""

MAX_HEDGED_ROUNDING = 0.05
"""Greatest relative error of a rounded number that is hedged: "about 54,000"."""

MAX_COARSE_ROUNDING = 0.005
"""Greatest relative error of a rounded number with one digit."""

CONVERSION_ERROR = 0.02
"""Relative error allowed between units whose ratio is no power of ten: 200 mph for 320 km/h."""

NEAR_MISS = 0.01
"""Relative error of a measured or rounded number up to which it may be the same, computed in another way."""

_SLACK = 1e-9
_PERCENT = Unit("percent", 1.0)
_RATIO, _MAX_SHARE = 100.0, 2
_BEST: tuple[Comparison, ...] = ("same", "opposite", "coarse", "different")
"""Comparisons of several readings: the first that one of them has."""


class QuantityFinding(NamedTuple):
    """Whether the text gives a quantity of the accepted answer, and by which of its own quantities."""

    status: QuantityStatus
    wanted: Quantity
    match: Quantity | None = None


def find_quantities(
    wanted: Sequence[Quantity], said: Sequence[Quantity], hints: QuestionHints
) -> list[QuantityFinding]:
    """Look for the quantities of the accepted answer; one that is given can't contradict another."""
    findings = [find_quantity(each, said, hints) for each in wanted]
    used = [each.match for each in findings if each.status == "given"]
    others = [each for each in said if each not in used]
    return [each if each.status == "given" else find_quantity(each.wanted, others, hints) for each in findings]


def find_quantity(wanted: Quantity, said: Sequence[Quantity], hints: QuestionHints) -> QuantityFinding:
    """Look for a quantity of the accepted answer among those of a text."""
    apart = _find_ends(wanted, said, hints) if wanted.high is not None else None
    if apart is not None:
        return apart._replace(wanted=wanted)
    results = [(compare(wanted, each, hints), each) for each in _of_same_unit(wanted, said)]
    for comparison, status in _STATUSES.items():
        match = next((each for found, each in results if found == comparison), None)
        if match is not None and status == "conflict" and any(_is_qualified(wanted, each) for each in said):
            return QuantityFinding("coarse", wanted, match)
        if match is not None:
            return QuantityFinding(status, wanted, match)
    return QuantityFinding("missing", wanted)


_QUALIFIERS = frozenset(("working", "business", "calendar", "consecutive", "full", "paid", "additional"))


def _is_qualified(wanted: Quantity, said: Quantity) -> bool:
    """Whether a word stands between the number and its unit: "25 working days"."""
    return bool(wanted.units) and said.value == wanted.value and said.noun in _QUALIFIERS


def _find_ends(wanted: Quantity, said: Sequence[Quantity], hints: QuestionHints) -> QuantityFinding | None:
    """A range whose ends the text gives apart: "from 6.5 to 8"."""
    first, second = (find_quantity(_end(wanted, low=low), said, hints) for low in (True, False))
    return first if first.status == second.status == "given" and first.match != second.match else None


_STATUSES: dict[Comparison, QuantityStatus] = {
    "same": "given",
    "opposite": "opposite",
    "coarse": "coarse",
    "different": "conflict",
}


def _of_same_unit(wanted: Quantity, said: Iterable[Quantity]) -> list[Quantity]:
    """Quantities in the wanted unit, or counting the same things, if there are any; otherwise all."""
    said = list(said)
    if wanted.units:
        closest = [each for each in said if _common(wanted.units, each.units)]
    elif wanted.noun:
        closest = [each for each in said if each.noun == wanted.noun]
    else:
        closest = []
    return closest or said


def compare(wanted: Quantity, said: Quantity, hints: QuestionHints) -> Comparison:
    """Compare two quantities: ``incomparable`` if they are of different kinds."""
    if "date" in (wanted.kind, said.kind):
        return _compare_dates(wanted, said)
    if "year" in (wanted.kind, said.kind):
        return _compare_years(wanted, said, hints)
    if wanted.kind != said.kind:
        near = wanted.noun and wanted.noun == said.noun
        return "same" if wanted.value == said.value and near else "incomparable"
    if wanted.high is not None or said.high is not None:
        return _compare_ranges(wanted, said, hints)
    found = _compare_numbers(wanted, said, hints)
    if found == "different" and {wanted.role, said.role} == {"change", "level"}:
        return "incomparable"
    if found == "different" and (_may_be_same_time(wanted, said) or _may_be_grouped(wanted, said)):
        return "coarse"
    return found


def _may_be_grouped(wanted: Quantity, said: Quantity) -> bool:
    """Whether the point of one may separate thousands: "10.000" and 10,000."""
    pairs = ((wanted, said), (said, wanted))
    return any(_has_three_decimals(one) and math.isclose(1000 * one.value, other.value) for one, other in pairs)


def _has_three_decimals(quantity: Quantity) -> bool:
    """Whether three digits stand behind the point: "10.000", and also "4.200 Millionen"."""
    if not quantity.scaled:
        return math.isclose(quantity.step, 1e-3)
    exponent = math.log10(quantity.step) if quantity.step else 0.5
    return math.isclose(exponent, 3 * round(exponent / 3), abs_tol=1e-9) and 1e3 <= quantity.value / quantity.step < 1e6


def _may_be_same_time(wanted: Quantity, said: Quantity) -> bool:
    """Whether one is a time of day and the other its hour: "3 pm" and the 15 of "15:00"."""
    times = [each for each in (wanted, said) if any(unit.dimension == "time of day" for unit in each.units)]
    plain = [each for each in (wanted, said) if not each.units]
    return len(times) == len(plain) == 1 and plain[0].value % 12 == times[0].value // 60 % 12


def _compare_dates(wanted: Quantity, said: Quantity) -> Comparison:
    if wanted.tokens and wanted.tokens == said.tokens:
        return "same"
    ours, theirs = readings_of_date(_date_tokens(wanted)), readings_of_date(_date_tokens(said))
    found = {_compare_readings(one, other) for one in ours for other in theirs}
    return next(iter(found)) if len(found) == 1 else "coarse"


def _compare_readings(one: set[str], other: set[str]) -> Comparison:
    if not one or not other:
        return "incomparable"
    shared = {_part(token) for token in one} & {_part(token) for token in other}
    if not shared:
        return "incomparable"
    if {token for token in one if _part(token) in shared} != {token for token in other if _part(token) in shared}:
        return "different"
    return "same" if one <= other else "coarse"


def _date_tokens(quantity: Quantity) -> tuple[str, ...]:
    return quantity.tokens or ((f"{quantity.value:.0f}",) if quantity.kind == "year" and quantity.high is None else ())


def _part(token: str) -> str:
    return "year" if token.isdecimal() else "day" if token[3:].isdecimal() else "month"


def _compare_years(wanted: Quantity, said: Quantity, hints: QuestionHints) -> Comparison:
    if wanted.kind != said.kind:
        # Four digits may be a year or an amount; another year is no other amount.
        if wanted.high is not None or said.high is not None or "ordinal" in (wanted.kind, said.kind):
            return "incomparable"
        if _may_be_grouped(wanted, said):
            return "coarse"
        return "same" if _compare_numbers(wanted, said, hints) == "same" else "incomparable"
    if wanted.high is None and said.high is None:
        return "same" if wanted.value == said.value else "different"
    if wanted.high is not None and said.high is None:
        if not wanted.value <= said.value <= wanted.high:
            return "different"
        return "same" if hints.span else "coarse"
    if wanted.high is None:
        assert said.high is not None
        return "coarse" if said.value <= wanted.value <= said.high else "different"
    return "same" if (wanted.value, wanted.high) == (said.value, said.high) else "different"


def _compare_ranges(wanted: Quantity, said: Quantity, hints: QuestionHints) -> Comparison:
    low = _compare_numbers(_end(wanted, low=True), _end(said, low=True), hints)
    high = _compare_numbers(_end(wanted, low=False), _end(said, low=False), hints)
    if low == high:
        return low
    if "incomparable" in (low, high):
        return "incomparable"
    if wanted.high is not None and said.high is not None:
        return "different"
    # One of them is a single number; it may lie within the other's range.
    ends = [_end(wanted, low=True), _end(wanted, low=False), _end(said, low=True), _end(said, low=False)]
    values = [_in_base(each, _shared_unit(wanted, said, each)) for each in ends]
    if wanted.high is not None:
        inside = min(values[:2]) <= values[2] <= max(values[:2])
        return ("same" if said.hedged else "coarse") if inside else "different"
    return "coarse" if min(values[2:]) <= values[0] <= max(values[2:]) else "different"


def _end(quantity: Quantity, *, low: bool) -> Quantity:
    value = quantity.value if low or quantity.high is None else quantity.high
    return quantity._replace(value=value, high=None)


def _shared_unit(wanted: Quantity, said: Quantity, each: Quantity) -> Unit | None:
    common = _common(wanted.units, said.units)
    if common is None:
        return None
    return common[0] if each.start == wanted.start and each.units == wanted.units else common[1]


def _in_base(quantity: Quantity, unit: Unit | None) -> float:
    return unit.to_base(quantity.value) if unit else quantity.value


def _compare_numbers(wanted: Quantity, said: Quantity, hints: QuestionHints) -> Comparison:
    if not wanted.units and hints.units and not wanted.noun:
        if _PERCENT in hints.units and abs(wanted.value) <= _MAX_SHARE:
            # "0.654" may be a share or a percentage, even if the question asks for percent. So may a bare number.
            bare = not said.units and not said.noun
            pairs = [(wanted, said), (wanted._replace(units=hints.units), said)]
            pairs += [(wanted, said._replace(units=hints.units))] if bare else []
            readings = {_compare_plain(*pair) for pair in pairs}
            return next((each for each in _BEST if each in readings), "incomparable")
        wanted = wanted._replace(units=hints.units)
    if hints.magnitude != 1 and not wanted.scaled and all(unit.is_money for unit in wanted.units):
        wanted = _magnified(wanted, hints.magnitude)
        if not said.scaled and all(unit.is_money for unit in said.units):
            plain = _compare_plain(wanted, _magnified(said, hints.magnitude))
            if plain == "same":
                return plain
    return _compare_plain(wanted, said)


def _magnified(quantity: Quantity, factor: float) -> Quantity:
    return quantity._replace(value=quantity.value * factor, step=quantity.step * factor, scaled=True)


def _compare_plain(wanted: Quantity, said: Quantity) -> Comparison:
    found = {_compare_values(one, other) for one, other in _readings(wanted, said)}
    return next((each for each in _BEST if each in found), "incomparable")


def _in_kelvin(wanted: Quantity, said: Quantity) -> list[tuple[Quantity, Quantity]]:
    """Readings of a number with a K, which is read as thousands, beside a temperature: "351.5 K"."""
    if not wanted.units and said.units:
        return [(one, other) for other, one in _in_kelvin(said, wanted)]
    if said.units or not said.scaled:
        return []
    kelvin = said._replace(value=said.value / 1e3, step=said.step / 1e3, units=(KELVIN,), scaled=False)
    return [
        (_convert(wanted, unit, KELVIN), _convert(kelvin, KELVIN, unit))
        for unit in wanted.units
        if unit.dimension == KELVIN.dimension
    ]


def _readings(wanted: Quantity, said: Quantity) -> list[tuple[Quantity, Quantity]]:
    """Both quantities in comparable units, in every reading of them."""
    if wanted.units and said.units:
        pairs = [(a, b) for a in wanted.units for b in said.units if a.dimension == b.dimension]
        if pairs:
            return [(_convert(wanted, a, b), _convert(said, b, a)) for a, b in pairs]
        if wanted.units[0].is_money and said.units[0].is_money:
            # Another currency: the numbers are comparable, and must not be the same.
            return [(wanted, said._replace(value=math.inf))]
        return []
    plain = [(wanted, said), *_in_kelvin(wanted, said)]
    if _PERCENT in wanted.units and abs(said.value) <= _MAX_SHARE and not said.noun:
        return [*plain, (wanted, said._replace(value=said.value * _RATIO, step=said.step * _RATIO))]
    if _PERCENT in said.units and not wanted.units and abs(wanted.value) <= _MAX_SHARE and not wanted.noun:
        return [*plain, (wanted._replace(value=wanted.value * _RATIO, step=wanted.step * _RATIO), said)]
    if bool(wanted.units) != bool(said.units) and (wanted.noun if said.units else said.noun):
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
    signed = _signs(wanted, said)
    one, other = (wanted.value, said.value) if signed == 0 else (abs(wanted.value), abs(said.value))
    close = _compare_sizes(one, other, wanted, said)
    return "opposite" if close == "same" and signed < 0 else close


def _signs(wanted: Quantity, said: Quantity) -> int:
    """1 if both have the same sign, −1 if not, 0 if at most one has any; a fall is a negative number."""
    one = -1 if wanted.value < 0 else wanted.direction
    other = -1 if said.value < 0 else said.direction
    if wanted.value < 0 and not other:
        return -1
    if said.value < 0 and not one:
        return -1
    return one * other


def _compare_sizes(one: float, other: float, wanted: Quantity, said: Quantity) -> Comparison:
    error = abs(one - other)
    if not math.isfinite(error):
        return "same" if one == other else "different"
    if error <= _SLACK * max(abs(one), abs(other)):
        return "same"
    step = max(_rounding_step(wanted, one), _rounding_step(said, other))
    relative = error / max(abs(one), abs(other))
    if error > step / 2 * (1 + 1e-6):
        return "coarse" if relative <= NEAR_MISS and _is_measured(wanted) and _is_measured(said) else "different"
    coarser = wanted if _rounding_step(wanted, one) > _rounding_step(said, other) else said
    digits = abs(coarser.value) / coarser.step if coarser.step else math.inf
    most = MAX_ROUNDING if digits >= 9.5 else MAX_COARSE_ROUNDING
    return "same" if relative <= (MAX_HEDGED_ROUNDING if coarser.hedged else most) else "coarse"


def _is_measured(quantity: Quantity) -> bool:
    """Whether a number was measured or computed rather than counted."""
    return bool(quantity.units) or quantity.scaled or quantity.step != 1


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
