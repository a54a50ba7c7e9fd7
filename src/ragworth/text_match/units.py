"""Units of measurement, money and magnitudes: which names there are, and how they convert.

A unit belongs to a dimension; values of one dimension are compared after ``value * factor + offset``. A name may have
several readings ("pounds" are money or mass); two quantities are comparable if any of their readings are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MONEY = "money"


class Unit(NamedTuple):
    """A unit: its dimension, and the factor and offset to the dimension's base. Each currency is a dimension."""

    dimension: str
    factor: float
    offset: float = 0.0

    @property
    def is_money(self) -> bool:
        return self.dimension.startswith(MONEY)

    def to_base(self, value: float) -> float:
        return value * self.factor + self.offset


# Dimension, factor, names (separated by commas, in lower case and singular).
_TABLE = """
length 1e-9   nm, nanometre, nanometer
length 1e-6   μm, um, micrometre, micrometer, micron
length 1e-3   mm, millimetre, millimeter
length 1e-2   cm, centimetre, centimeter
length 1      m, metre, meter, metri, metro, メ ー ト ル, 米
length 1e3    km, kilometre, kilometer, kilometri, kilometro, chilometri, chilometro, quilometro, 公 里
length 0.0254 inch, inche, ″
length 0.3048 ft, foot, feet
length 0.9144 yd, yard
length 1609.344 mi, mile
length 1852   nautical mile
length 9.4607e15 ly, light year, lightyear
length 1.495979e11 au, astronomical unit
area 1        m2, m², sq m, square metre, square meter
area 1e6      km2, km², sq km, square kilometre, square kilometer
area 1e4      ha, hectare
area 4046.86  acre
area 0.092903 sq ft, square foot, square feet
area 2589988  sq mi, square mile
volume 1e-3   ml, millilitre, milliliter, cm3, cm³, cc
volume 1e-2   cl, centilitre, centiliter
volume 1      l, litre, liter, litri, litro, litros
volume 1e3    m3, m³, cubic metre, cubic meter
volume 1e12   km3, km³, cubic kilometre, cubic kilometer
volume 3.785412 gallon, gal
volume 0.236588 cup
volume 0.015  tbsp, tablespoon, eetlepel, esslöffel
volume 0.005  tsp, teaspoon, theelepel, teelöffel
mass 1e-9     μg, ug, mcg, microgram
mass 1e-6     mg, milligram
mass 1e-3     g, gram, gramme, gramm, grammi, grammo, gramo
mass 1        kg, kgs, kilo, kilogram, kilogramme, kilogramm, chilogrammi, kilogramo, quilo, 公 斤, 千 克
mass 1e3      t, tonne, ton, metric ton
mass 0.45359237 lb, lbs, pound
mass 0.0283495 oz, ounce
time 1e-9     ns, nanosecond
time 1e-6     μs, microsecond
time 1e-3     ms, millisecond
time 1        s, sec, second, sekunde, sekunden, seconde, seconden, segundo, secondo, secondi, 秒
time 60       min, minute, minuten, minuto, minuti, minuut, minut, minuty, 分 钟, 分 鐘
time 3600     h, hr, hrs, hour, stunde, stunden, heure, hora, uur, uren, godzina, godziny, godzin, 小 时, 時 間
time 86400    day, tag, tage, tagen, dag, dagen, jour, dia, giorno, giorni, dzien, dni
time 604800   week, woche, wochen, weken, semaine, semana, settimana, settimane, tydzien, tygodnie, tygodni
time 2629800  month, monat, monate, monaten, maand, maanden, mois, mes, mese, mesi, miesiac, miesiace, miesiecy
time 31557600 year, yr, yrs, jahr, jahre, jahren, jaar, jaren, annee, ano, anno, anni, lata, lat
time 315576000 decade
time 3155760000 century
speed 1       m/s, metre per second, meter per second
speed 1e3     km/s, kilometre per second, kilometer per second
speed 0.2777777778 km/h, kmh, kph, kilometre per hour, kilometer per hour
speed 0.44704 mph, mile per hour
speed 0.514444 knot, kn
power 1       w, watt
power 1e3     kw, kilowatt
power 1e6     mw, megawatt
power 1e9     gw, gigawatt
energy 1      j, joule
energy 1e3    kj, kilojoule
energy 1e6    mj, megajoule
energy 3.6e6  kwh, kilowatt hour
energy 3.6e9  mwh, megawatt hour
energy 4.184  cal, calorie, calory
energy 4184   kcal, kilocalorie, kilocalory, calorie, calory
frequency 1   hz, hertz
frequency 1e3 khz, kilohertz
frequency 1e6 mhz, megahertz
frequency 1e9 ghz, gigahertz
pressure 1    pa, pascal
pressure 100  hpa, hectopascal, mbar, millibar
pressure 1e3  kpa, kilopascal
pressure 1e6  mpa, megapascal
pressure 1e5  bar
pressure 101325 atm, atmosphere
pressure 6894.757 psi
pressure 133.322 mmhg
voltage 1e-3  mv, millivolt
voltage 1     v, volt
voltage 1e3   kv, kilovolt
current 1     amp, ampere
charge 1      c, coulomb
force 1       newton
torque 1      nm, n · m, newton metre, newton meter
torque 1.355818 lb ft, ft lb, lbf ft, ft lbf, foot pound, pound foot
torque 0.112985 lb in, in lb, lbf in, in lbf, inch pound, pound inch
density 1     kg/m3, kg/m³
density 1e3   g/cm3, g/cm³, g/ml, kg/l, gram per cubic centimetre, gram per cubic centimeter
rate 1        bps, bit/s
rate 1e3      kbp, kbps, kbit, kbit/s, kilobit per second
rate 1e6      mbp, mbps, mbit, mbit/s, megabit per second
rate 1e9      gbp, gbps, gbit, gbit/s, gigabit per second
data 1        byte
data 1e3      kb, kilobyte, kilobase
data 1e6      mb, megabyte, megabase
data 1e9      gb, gigabyte, gigabase
data 1e12     tb, terabyte
angle 1       °, degree
temperature 1 °c, c, degree, degree celsius, degree c, celsius, centigrade, °
percent 1     %, percentage point, point, pp
points 1      point
percent 0.01  bp, bps, basis point
money:usd 1   dollar, us dollar, usd
money:eur 1   euro, eur
money:gbp 1   pound, gbp, pound sterling
money:jpy 1   yen, jpy
money:chf 1   chf, swiss franc, franc
money:cny 1   cny, rmb, yuan, renminbi
money:inr 1   inr, rupee
money:pln 1   pln, zl, zloty, zlote, zlotych
money:brl 1   brl, reai, reais
money:aud 1   aud, australian dollar, dollar
money:cad 1   cad, canadian dollar, dollar
money:hkd 1   hkd, hong kong dollar, dollar
money:nzd 1   nzd, new zealand dollar, dollar
money:sgd 1   sgd, singapore dollar, dollar
money:twd 1   twd, taiwan dollar, dollar
money:nok 1   nok, norwegian krone, norwegian kroner
money:dkk 1   dkk, danish krone, danish kroner
money:czk 1   czk
money:sek 1   sek, swedish krona, swedish kronor, krona, kronor
money:usd 0.01 cent
money:eur 0.01 cent
count 1e3     k, тыс, тысяча, тысячи, тысяч, tsd, tausend, duizend
count 1e6     m, mn, mln, mio, millionen, millones, milione, milioni, milhao, milhoe, millions
count 1e6     miljoen, milyon, млн, миллион, миллиона, миллионов
count 1e9     b, bn, mrd, milliarde, milliarden, milliard, miliardo, miliardi, mld
count 1e6     milion, miliony, milionow
count 1e9     miliard, miliardy, miliardow, bilhao, bilhoe
count 1e9     miljard, milyar, млрд, миллиард, миллиарда, миллиардов
count 1e12    tn
"""
KELVIN = Unit("temperature", 1.0, -273.15)
_SHIFTED = {
    "°f": Unit("temperature", 5 / 9, -160 / 9),
    "f": Unit("temperature", 5 / 9, -160 / 9),
    "degree fahrenheit": Unit("temperature", 5 / 9, -160 / 9),
    "degree f": Unit("temperature", 5 / 9, -160 / 9),
    "fahrenheit": Unit("temperature", 5 / 9, -160 / 9),
    "degree": Unit("temperature", 5 / 9, -160 / 9),
    "kelvin": KELVIN,
}
LONGEST = 4
"""Tokens of the longest name: "gram per cubic centimetre"."""


def _read_table() -> dict[str, tuple[Unit, ...]]:
    units: dict[str, tuple[Unit, ...]] = {}
    for line in _TABLE.strip().splitlines():
        dimension, factor, names = line.split(None, 2)
        for name in names.split(","):
            units[name.strip()] = (*units.get(name.strip(), ()), Unit(dimension, float(factor)))
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


def readings_as_written(units: tuple[Unit, ...], raw: str) -> tuple[Unit, ...]:
    """The readings that a name has as it is written: 5 V, 5 m, 5M; none for "5 v" or "5 A"; USD is no other dollar."""
    if raw.lower() == "usd":
        return tuple(unit for unit in units if unit.dimension == f"{MONEY}:usd")
    if len(raw) > 1 or not raw.isalpha():
        return units
    if raw in "MBK":
        return tuple(unit for unit in units if unit.dimension == "count")
    return units if raw in "mglhstkLVWJCF" else ()
