"""Write number words of other languages in digits: zwölf, vingt et un, двадцать один, 十二, 3万.

The grader does so only where an answer would otherwise be wrong, because a word of one language may be another word
elsewhere. A word that may be English or a name ("dos", "Otto") is only likely to be a number unless it is all that is
said, and "one" is mostly an article. A number of several words that isn't known as a whole ("ciento doce") stays as it
is, because a part of it is another number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

_TO_TWENTY = {
    "de": "zwei drei vier fünf sechs sieben acht neun zehn - zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn zwanzig",
    "nl": "twee drie vier vijf zes zeven acht negen tien - twaalf dertien veertien vijftien zestien zeventien "
    "achttien negentien twintig",
    "fr": "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf vingt",
    "es": "dos tres cuatro cinco seis siete ocho nueve diez - doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve veinte",
    "it": "- tre quattro cinque - sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove venti",
    "pt": "dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete dezoito "
    "dezenove vinte",
    "pl": "dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście trzynaście czternaście "
    "piętnaście szesnaście siedemnaście osiemnaście dziewiętnaście dwadzieścia",
    "tr": "iki üç dört beş altı yedi sekiz dokuz - on_bir on_iki on_üç on_dört on_beş on_altı on_yedi on_sekiz "
    "on_dokuz yirmi",
    "ru": "два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать "
    "пятнадцать шестнадцать семнадцать восемнадцать девятнадцать двадцать",
    "ar": "اثنان ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة عشرة أحد_عشر اثنا_عشر ثلاثة_عشر أربعة_عشر خمسة_عشر ستة_عشر "
    "سبعة_عشر ثمانية_عشر تسعة_عشر عشرون",
    "hi": "दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस बीस",
}
"""Two to twenty; a dash where the word is an English one as well."""

_TENS = {
    "de": "dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "nl": "dertig veertig vijftig zestig zeventig tachtig negentig",
    "fr": "trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix",
    "es": "treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "it": "trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "pt": "trinta quarenta cinquenta sessenta setenta oitenta noventa",
    "pl": "trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt dziewięćdziesiąt",
    "tr": "otuz kırk elli altmış yetmiş seksen doksan",
    "ru": "тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто",
}
_ONE = {"de": "ein", "nl": "een", "fr": "un", "es": "uno", "pt": "um", "pl": "jeden", "tr": "bir", "ru": "один"}
_BETWEEN = {"fr": "-", "es": " y ", "pt": " e "}
"""Between tens and units; a blank elsewhere. German and Dutch put the units first, in one word."""

_OTHERS = {
    "100": "hundert|einhundert|honderd|cien|cento|сто|yüz|sto",
    "1000": "tausend|eintausend|duizend|mil|тысяча|bin",
    "2000": "zweitausend",
    "21": "vingt et un",
    "71": "soixante et onze",
    "81": "quatre-vingt-un",
}
_SCALES = {
    "thousand": "tausend|duizend|mil|mille|mila|тысячи|тысяч|bin|tysiące|tysięcy",
    "million": "millionen|millones|millón|milioni|milione|milhões|milhão|miljoen|milion|miliony|milionów|milyon|"
    "миллион|миллиона|миллионов|млн",
    "billion": "milliarden?|milliards?|miliardi|miliardo|miljard|miliard|miliardy|miliardów|milyar|"
    "миллиард|миллиарда|миллиардов|млрд",
}
_LARGER = re.compile(
    r"(?:\w*hundert\w*|\w*tausend\w*|\w*honderd\w*|\w*duizend\w*|cents?|ciento|\w+cient[oa]s|quinient[oa]s|"
    r"\w+cent[oa]s|quinhent[oa]s|\w*cento\w*|\w+mila|двести|триста|четыреста|\w+сот|dwieście|trzysta|czterysta|\w+set|"
    r"مئة|مائة|ألف|सौ|हज़ार|हजार|लाख|करोड़)"
)
"""Parts of numbers beyond 100. They aren't read."""

_COMPOUND = re.compile(r"\w*(?:hundert|tausend|honderd|duizend)\w*")
_LINKS = r"(?:et|y|e|und|en|i)"
_ENGLISH_WORDS = frozenset(["dos", "quince", "mil", "seize", "venti", "bin"])
_NAMES = frozenset(
    ["tres", "doce", "cien", "sept", "dix", "onze", "cinque", "otto", "nove", "cento", "sete", "vinte", "sto", "elli"]
)
"""Words that are also English, or names if they begin with a capital letter."""

_ONE_OF_THEM = r"(?:eine?|une?|uno?|um|een|один)"
_VEINTI = {"dos": "dós", "tres": "trés", "seis": "séis"}
_KANJI = {sign: value for value, sign in enumerate("〇一二三四五六七八九")}
_KANJI |= {"两": 2, "兩": 2}
_KANJI_TENS = {"十": 10, "百": 100, "千": 1000}
_KANJI_SCALES = {"万": 10**4, "億": 10**8, "亿": 10**8}
_COUNTERS = "人个個名位本枚年月日歳岁階层層冊册回次匹台円元点度時时分秒つ倍週周種种件章巻卷"
_KANJI_NUMBER = re.compile(
    rf"(?<![\u4e00-\u9fff])([\d.]*[〇一二三四五六七八九两兩十百千万億亿]+)(?=[{_COUNTERS}]|[^\u4e00-\u9fff]|$)"
)
_FRACTIONS = {"½": "0.5", "¼": "0.25", "¾": "0.75"}


_HOUR_NAMES = "one two three four five six seven eight nine ten eleven twelve"
_HOURS = {name: str(hour) for hour, name in enumerate(_HOUR_NAMES.split(), 1)}
_HALF_DAY = re.compile(
    r"(?:(午前|上午|早上|오전)|(午後|下午|晚上|오후))?\s?(\d{1,2})\s?[時时點点시](?![間间])(?:\s?(\d{1,2})\s?[分분])?"
)
_OCLOCK = re.compile(rf"(?i)\b(\d{{1,2}}|{'|'.join(_HOURS)}) o['’]?clock\b")


class SpelledText(NamedTuple):
    """A text with its number words in digits.

    ``sure`` has those in digits that are surely numbers, ``likely`` also those that may be other words. ``unread`` is
    whether there is a number in words that stays as it is.
    """

    sure: str
    likely: str
    unread: bool


def with_digits(text: str) -> SpelledText:
    """Write number words of other languages in digits."""
    text = unicodedata.normalize("NFC", text)
    runs = list(_find_numbers(text))
    sure, likely = (
        _with_scales(_replace_runs(text, [run for run in runs if run.digits and run.sure >= least]))
        for least in (True, False)
    )
    return SpelledText(sure, likely, any(not run.digits for run in runs))


class _NumberRun(NamedTuple):
    """Number words that follow each other; no digits if they can't be read."""

    start: int
    end: int
    digits: str
    sure: bool


def _find_numbers(text: str) -> Iterator[_NumberRun]:
    pattern, spelled = _patterns()
    whole = re.sub(r"^\W+|\W+$", "", text)
    for match in pattern.finditer(text):
        run, plain = match[0], _plain(match[0])
        if run.isupper():
            continue  # "DOS" is no two
        number, _, scale = plain.rpartition(" ")
        if plain in spelled:
            sure = plain not in _ENGLISH_WORDS and (_is_small(run) or (plain not in _NAMES and _begins(text, match)))
            yield _NumberRun(match.start(), match.end(), spelled[plain], sure or run == whole)
        elif number in spelled and (english := _scale_word(scale)):
            yield _NumberRun(match.start(), match.end(), f"{spelled[number]} {english}", True)
        elif (" " in plain and any(word in spelled for word in plain.split())) or _COMPOUND.fullmatch(plain):
            yield _NumberRun(match.start(), match.end(), "", False)


def _is_small(word: str) -> bool:
    """Whether a word begins with a small letter, or one of a script that has no others."""
    return word[0] == word[0].lower()


def _begins(text: str, match: re.Match[str]) -> bool:
    """Whether a match is where a sentence begins, so that its first letter may be a capital one."""
    before = text[max(0, match.start() - 8) : match.start()]
    return not before.strip() or re.search(r"(?:[.!?:;]\s|[\n\"'“„«(*])\s*$", before) is not None


def _scale_word(word: str) -> str:
    return next((english for english, names in _SCALES.items() if re.fullmatch(names, word)), "")


def _replace_runs(text: str, runs: list[_NumberRun]) -> str:
    ends = [0, *(run.end for run in runs)]
    kept = [text[end : run.start] + run.digits for end, run in zip(ends, runs, strict=False)]
    return "".join([*kept, text[ends[-1] :]])


def _with_scales(text: str) -> str:
    """The text with millions, dozens, hours, fractions and Chinese numerals in digits."""
    for english, names in _SCALES.items():
        text = re.sub(rf"(?i)\b{_ONE_OF_THEM} (?=(?:{names}|{english})\b)", "1 ", text)
        if english != "thousand":  # "5 mil" may be millions
            text = re.sub(rf"(?i)(?<=\d )(?:{names})\b\.?", english, text)
    text = re.sub(r"(?i)\b(?:half a|a half|half) dozen\b", "6", text)
    text = re.sub(r"(?i)\b(?:a|one) dozen\b", "12", text)
    text = re.sub(r"\b(\d{1,2}) Uhr\b", r"\1:00", text)
    text = _HALF_DAY.sub(_read_half_day, text)
    text = _OCLOCK.sub(lambda found: f"{_HOURS.get(found[1].lower(), found[1])}:00", text)
    text = re.sub(r"\b(\d{1,2})\s?h\s?([0-5]\d)\b", r"\1:\2", text)
    text = re.sub(r"(?<![\d.,])(\d{1,4})\s?(€|(?i:euros?))\s?(\d\d)(?![\d.,%]|\s?\w)", r"\1.\3 €", text)
    for sign, number in _FRACTIONS.items():
        text = re.sub(rf"(?<!\d)(?<!\d ){sign}", number, text)
    return _KANJI_NUMBER.sub(_read_kanji, text)


def _read_half_day(found: re.Match[str]) -> str:
    """A time of day in Chinese, Japanese or Korean: "3:00 pm" for "午後3時"."""
    half = " am" if found[1] else " pm" if found[2] else ""
    return f" {found[3]}:{int(found[4] or 0):02d}{half} "


def _plain(word: str) -> str:
    return " ".join(word.lower().split())


@cache
def _patterns() -> tuple[re.Pattern[str], dict[str, str]]:
    """An expression for number words that follow each other, and the digits of each that is known."""
    spelled = {word: value for value, words in _OTHERS.items() for word in words.split("|")}
    for language, names in _TO_TWENTY.items():
        small = {value: name.replace("_", " ") for value, name in enumerate(names.split(), 2)}
        tens = {20: small[20]} | dict(zip(range(30, 100, 10), _TENS.get(language, "").split(), strict=False))
        units = {value: name for value, name in small.items() if value < 10} | (
            {1: _ONE[language]} if language in _ONE else {}
        )
        spelled |= {name: str(value) for value, name in (small | tens).items() if name != "-"}
        for ten, name in tens.items():
            spelled |= {_joined(language, name, unit): str(ten + value) for value, unit in units.items() if unit != "-"}
        if language == "fr":
            spelled |= {f"soixante-{small[value]}": str(60 + value) for value in range(12, 20)}
            spelled |= {f"quatre-vingt-{small[value]}": str(80 + value) for value in range(2, 20)}
        if language == "es":
            spelled |= {f"veinti{_VEINTI.get(name, name)}": str(20 + value) for value, name in units.items()}
    spelled = {_plain(word): value for word, value in spelled.items() if word != "six"}  # the same in English
    longest = sorted(spelled, key=len, reverse=True)
    choice = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in longest)
    scales = "|".join(_SCALES.values())
    word = rf"(?<![\w-])(?:{choice}|{_LARGER.pattern}|{scales})(?![\w-])"
    run = rf"(?i){word}(?:[\s-]+(?:{_LINKS}\s+)?{word})*"
    return re.compile(rf"{run}(?!\.?\s*\d)"), spelled  # "Sept. 5" is no seven


def _joined(language: str, ten: str, unit: str) -> str:
    if language == "de":
        return f"{unit}und{ten}"
    if language == "nl":
        return f"{unit}{'ën' if unit.endswith('e') else 'en'}{ten}"
    if language == "it":
        return f"{ten[:-1] if unit[0] in 'uo' else ten}{'tré' if unit == 'tre' else unit}"
    return f"{ten}{_BETWEEN.get(language, ' ')}{unit}"


def _read_kanji(match: re.Match[str]) -> str:
    """The number that a run of digits and Chinese numerals stands for."""
    head = re.match(r"[\d.]+", match[1])
    rest = match[1][head.end() :] if head else match[1]
    if head and (head[0].count(".") > 1 or head[0].endswith(".")):
        return match[1]
    total, section, unit = 0.0, 0.0, float(head[0]) if head else 0.0
    for sign in rest:
        if sign in _KANJI:
            unit = 10 * unit + _KANJI[sign]
        elif sign in _KANJI_TENS:
            section, unit = section + (unit or 1) * _KANJI_TENS[sign], 0.0
        else:
            total, section, unit = total + (section + unit or 1) * _KANJI_SCALES[sign], 0.0, 0.0
    return f"{total + section + unit:.0f}"
