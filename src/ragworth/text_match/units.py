"""Units of measurement, money and magnitudes: which names there are, and how they convert.

A unit belongs to a dimension; values of one dimension are compared after ``value * factor + offset``. A name may have
several readings ("pounds" are money or mass); two quantities are comparable if any of their readings are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit: its dimension, and the factor and offset to the dimension's base. Each currency is a dimension."""

    dimension: str
    factor: float
    offset: float = 0.0

    @property
    def is_money(self) -> bool:
        return self.dimension.startswith("money")

    def to_base(self, value: float) -> float:
        return value * self.factor + self.offset


# For each dimension its units, with their factor: names in lower case, singular and British ("metre" is also "meter").
_TABLE = """
length: 1e-9 nm, nanometre; 1e-6 μm, um, micrometre, micron; 1e-3 mm, millimetre; 1e-2 cm, centimetre; 1 m, metre;
    1e3 km, kilometre; .0254 inch, inche; .3048 ft, foot, feet; .9144 yd, yard; 1609.344 mi, mile; 9.4607e15 light year
area: 1 m2, m², square metre; 1e6 km2, km², sq km, square kilometre; 1e4 ha, hectare; 4046.86 acre;
    2589988 sq mi, square mile
volume: 1e-3 ml, millilitre, cm3, cm³, cc; 1 l, litre; 1e3 m3, m³, cubic metre; 3.785412 gallon
mass: 1e-9 μg, mcg, microgram; 1e-6 mg, milligram; 1e-3 g, gram; 1 kg, kilo, kilogram; 1e3 t, tonne, ton;
    .45359237 lb, lbs, pound; .0283495 oz, ounce
time: 1e-3 ms, millisecond; 1 s, sec, second; 60 min, minute; 3600 h, hr, hrs, hour; 86400 day; 604800 week;
    2629800 month; 31557600 year, yr, yrs; 315576000 decade; 3155760000 century
speed: 1 m/s, metre per second; 1e3 km/s, kilometre per second; .2777777778 km/h, kmh, kilometre per hour;
    .44704 mph, mile per hour
power: 1e3 kw, kilowatt; 1e6 mw, megawatt; 1e9 gw, gigawatt
energy: 1 j, joule; 1e3 kj, kilojoule; 3.6e6 kwh, kilowatt hour; 4184 kcal, kilocalorie, calorie
frequency: 1 hz, hertz; 1e3 khz, kilohertz; 1e6 mhz, megahertz; 1e9 ghz, gigahertz
pressure: 1e3 kpa, kilopascal; 1e5 bar; 133.322 mmhg
voltage: 1 v, volt
charge: 1 c, coulomb
density: 1 kg/m3, kg/m³; 1e3 g/cm3, g/cm³, gram per cubic centimetre
rate: 1e6 mbps, mbp, mbit, mbit/s; 1e9 gbps, gbp, gbit, gbit/s
data: 1e6 mb, megabyte, megabase; 1e9 gb, gigabyte, gigabase; 1e12 tb, terabyte
angle: 1 °, degree
temperature: 1 °c, c, degree, degree celsius, celsius, °
percent: 1 %, percentage point, point, pp; .01 bp, bps, basis point
points: 1 point
money:usd: 1 dollar, us dollar, usd; .01 cent
money:eur: 1 euro, eur
money:gbp: 1 pound, gbp
money:jpy: 1 yen, jpy
money:chf: 1 chf, swiss franc
money:inr: 1 rupee, inr
money:cny: 1 yuan, cny
money:cad: 1 cad
money:aud: 1 aud
count: 1e3 k; 1e6 m, mn; 1e9 b, bn; 1e12 tn
"""
_FAHRENHEIT, _KELVIN = Unit("temperature", 5 / 9, -160 / 9), Unit("temperature", 1.0, -273.15)
_SHIFTED = {"°f": _FAHRENHEIT, "f": _FAHRENHEIT, "degree fahrenheit": _FAHRENHEIT, "fahrenheit": _FAHRENHEIT}
_SHIFTED |= {"degree": _FAHRENHEIT, "kelvin": _KELVIN}
LONGEST = 4
"""Tokens of the longest name: "gram per cubic centimetre"."""


def _read_table() -> dict[str, tuple[Unit, ...]]:
    units: dict[str, tuple[Unit, ...]] = {}
    for line in _TABLE.replace("\n    ", " ").strip().splitlines():
        dimension, _, rest = line.partition(": ")
        for entry in rest.split("; "):
            factor, _, names = entry.partition(" ")
            for british in names.split(", "):
                for name in {british, british.replace("metre", "meter").replace("litre", "liter")}:
                    units[name] = (*units.get(name, ()), Unit(dimension, float(factor)))
    for name, unit in _SHIFTED.items():
        units[name] = (*units.get(name, ()), unit)
    return units


UNITS = _read_table()
"""Readings of each name of a unit."""

MAGNITUDES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
"""Magnitudes that a question asks for: "in USD millions"."""


def find_unit(tokens: Sequence[str], start: int) -> tuple[tuple[Unit, ...], int]:
    """The readings of the longest name of a unit at ``start``, and how many tokens it takes; 0 if there is none."""
    for length in range(min(LONGEST, len(tokens) - start), 0, -1):
        name = " ".join(tokens[start : start + length]).replace(" / ", "/").replace("° ", "°")
        if name in UNITS:
            return UNITS[name], length
    return (), 0
