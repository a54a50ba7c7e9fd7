"""Recognize a country or city by its name in another language: "Duitsland" for "Germany", "München" for "Munich"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files

_WORD = re.compile(r"[\w.'’-]*\w")
_ELIDED = re.compile(r"^[ldLD]['’](?=\w)")
_MAX_WORDS = 4
_BLANKLESS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts whose words stand side by side, or have particles attached."""


def with_place_names(text: str, answer: str) -> tuple[str, str]:
    """A text with the places that an accepted answer names spelled as there, and the answer without "l'"."""
    said = text
    for name in _names_in(answer):
        said = _other_names(name).sub(name, said)
    return (said, _ELIDED.sub("", answer.strip())) if said != text else (text, answer)


@cache
def _table() -> dict[str, tuple[str, ...]]:
    """Every name, with all names of its place."""
    lines = files("ragworth.text_match").joinpath("place_names.txt").read_text(encoding="utf-8").splitlines()
    places = [tuple(line.split("|")) for line in lines if line and not line.startswith("#")]
    return {name: names for names in places for name in names}


@lru_cache(maxsize=8192)
def _names_in(answer: str) -> tuple[str, ...]:
    return tuple(_find_names(answer))


def _find_names(answer: str) -> Iterator[str]:
    words = list(_WORD.finditer(answer))
    at = 0
    while at < len(words):
        elided = _ELIDED.match(words[at].group())
        begin = words[at].start() + (elided.end() if elided else 0)
        name = next((name for name in _runs(answer, words, at, begin) if name in _table()), "")
        if name:
            yield name
        at += len(_WORD.findall(name)) or 1


def _runs(answer: str, words: list[re.Match[str]], at: int, begin: int) -> Iterator[str]:
    """Runs of words from a place in an answer, the longest first."""
    for last in range(min(at + _MAX_WORDS, len(words)), at, -1):
        yield answer[begin : words[last - 1].end()]


@lru_cache(maxsize=1024)
def _other_names(name: str) -> re.Pattern[str]:
    """The other names of a place, in a text."""
    others = sorted((other for other in _table()[name] if other != name), key=len, reverse=True)
    return re.compile("|".join(_pattern(other) for other in others))


def _pattern(name: str) -> str:
    return re.escape(name) if _BLANKLESS.match(name) else rf"(?<!\w){re.escape(name)}(?!\w)"
