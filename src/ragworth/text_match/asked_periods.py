"""Find where a text gives a number for another quarter, half or year than the question asks for."""

from __future__ import annotations

import re
from functools import lru_cache

from ragworth.text_match.clauses import clauses_with
from ragworth.text_match.text_facts import QuestionFacts, TextFacts

_FIRST = r"first|erste[nrs]?|premier|première|primer|primo|primeiro|eerste|第一|一"
_SECOND = r"second|zweite[nrs]?|deuxième|segundo|secondo|tweede|第二|二"
_THIRD = r"third|dritte[nrs]?|troisième|tercer|terzo|terceiro|derde|第三|三"
_FOURTH = r"fourth|vierte[nrs]?|quatrième|cuarto|quarto|vierde|第四|四"
_NUMBERED = rf"(?:(?P<one>1(?:st|er|[.eº°])?|{_FIRST})|(?P<two>2(?:nd|[.eº°])?|{_SECOND})"
_NUMBERED_QUARTER = rf"{_NUMBERED}|(?P<three>3(?:rd|[.eº°])?|{_THIRD})|(?P<four>4(?:th|[.eº°])?|{_FOURTH}))"
_QUARTER = re.compile(
    rf"(?i)\b[QTK](?P<digit>[1-4])(?!\d)|\b(?P<before>[1-4])[QT](?=\d|\b)"
    rf"|{_NUMBERED_QUARTER}[\s-]?(?:fiscal )?(?:quarter|quartal|trimestre|kwartaal|kwartał|季度|四半期)"
)
_HALF = re.compile(
    rf"(?i)\b[HS](?P<digit>[12])(?!\d)|\b(?P<before>[12])H(?=\d|\b)"
    rf"|{_NUMBERED})[\s-]?(?:half|halbjahr|semestre|halfjaar|半年|半期)"
)
_YEAR = re.compile(r"(?i)(?<![\d$€£.,-])(?:FY\s?)?((?:19|20)\d\d)(?![\d%]|[.,]\d|-\d)|\bFY\s?['’]?(\d\d)(?!\d)")
_DIGITS = {"one": "1", "two": "2", "three": "3", "four": "4"}


def is_for_other_period(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> bool:
    """Whether each clause with the answer, a number, names another quarter, half or year, and not the one asked."""
    if not any(each.kind == "number" for each in wanted.quantities) or "respectively" in text.raw:
        return False
    asked = [(kind, names) for kind, names in _periods(question.raw) if len(names) == 1]
    if not asked:
        return False
    said = [_periods(clause.raw) for clause in clauses_with(text, wanted, commas=False)]
    return bool(said) and all(
        any(
            names and not names & wanted_names
            for kind, names in periods
            for asked_kind, wanted_names in asked
            if kind == asked_kind
        )
        for periods in said
    )


def names_asked_period(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> bool:
    """Whether a clause with the answer names the quarter, half or year that the question asks for, and no other."""
    asked = [names for _, names in _periods(question.raw)]
    said = ([names for _, names in _periods(clause.raw)] for clause in clauses_with(text, wanted, commas=False))
    return any(any(asked) and names == asked for names in said)


@lru_cache(maxsize=8192)
def _periods(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The quarters, halves and years of a text."""
    return (
        ("quarter", frozenset(map(_number, _QUARTER.finditer(text)))),
        ("half", frozenset(map(_number, _HALF.finditer(text)))),
        ("year", frozenset(match[1] or f"20{match[2]}" for match in _YEAR.finditer(text))),
    )


def _number(match: re.Match[str]) -> str:
    groups = match.groupdict()
    digit = groups["digit"] or groups["before"]
    return digit or next(number for name, number in _DIGITS.items() if groups.get(name))
