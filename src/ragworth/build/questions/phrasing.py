"""Wording of questions that are made from a sentence by rules."""

from __future__ import annotations

import random
import re

from ragworth.build.questions.facts import PRONOUN, Fact

WH = {"date": "what date", "year": "which year", "number": "how many", "name": "what", "list": "what"}
OPENERS = ("can you tell me {}", "I'd like to know {}", "quick question: {}", "do you know {}")
_COMMON = (
    "a an the is are was were be been of in on at to for and or by with from as that which what who how many do does "
    "did it its their his her this these those has have had can you tell me when where year date"
)
STOP_WORDS = frozenset(_COMMON.split())
PLURAL = re.compile(r"(?:[a-z-]+ ){0,2}[a-z-]+s\b")
FRONTED = re.compile(
    r"^(?P<subject>(?:The |A |An |Each |Every )?[\w'’ -]{2,60}?) (?P<verb>is|are|was|were|can|may|must|will|should) "
    r"(?P<rest>.*?)(?P<preposition>in|on|by|to|of|with|from|for|at|until|since|as|after|before)?$"
)


def ask_for(fact: Fact, title: str, named: str = "") -> str:
    """The sentence as a question for the fact, without capital and question mark, and with its subject.

    ``named``: the title to replace by ``title``, to ask about something else.
    """
    before, after = fact.before, fact.after
    if named:
        before, after = (re.sub(re.escape(named), title, part, flags=re.IGNORECASE) for part in (before, after))
    if title:
        before = PRONOUN.sub(lambda match: _subject(match[0], title), before)
    question = _fronted(fact, before, after) or _in_place(fact, before, after)
    known = {word.casefold() for word in re.findall(r"\w{3,}", question)}
    about = [word.casefold() for word in re.findall(r"\w{3,}", title)]
    if title and (named or not any(word in known for word in about)):
        return f"{title}: {question}"
    return question


def _subject(pronoun: str, title: str) -> str:
    return f"{title}'s" if pronoun in ("Its", "His", "Her", "Their") else title


def _fronted(fact: Fact, before: str, after: str) -> str:
    """``Who``-first word order, where the fact ends the clause behind *is*, *was* and the like; otherwise empty."""
    match = FRONTED.match(before)
    if match is None or "," in before or fact.kind == "number" or (after and not after.startswith((",", ";", "and "))):
        return ""
    wh = _wh(fact, after)
    start = f"{match['preposition']} {wh}" if match["preposition"] else wh
    words = [start, match["verb"], _lowered(match["subject"]), match["rest"].strip()]
    return " ".join(filter(None, words)) if match["rest"].strip() or match["preposition"] else ""


def _in_place(fact: Fact, before: str, after: str) -> str:
    """The wh-word where the fact stood."""
    joined = " ".join(filter(None, (_lowered(before), _wh(fact, after), after)))
    return re.sub(r" (?=[,.;:!?)])", "", joined)


def _wh(fact: Fact, after: str) -> str:
    """The wh-word: *how many* only before a plural."""
    if fact.kind == "number" and (not fact.text.replace(",", "").isalnum() or not PLURAL.match(after)):
        return "what number" if not after.startswith("%") else "what percentage"
    return WH[fact.kind]


def _lowered(text: str) -> str:
    """Without the capital of a sentence; a name or an abbreviation keeps its own."""
    first = text.split(" ", 1)[0]
    common = first in ("The", "A", "An", "In", "On", "At", "Each", "Every", "Its", "All", "Some", "With", "For", "By")
    return text[:1].lower() + text[1:] if common else text


def gap_statement(fact: Fact, title: str) -> str:
    """The sentence with a gap, in quotes, and its subject."""
    text = f"{fact.before} … {fact.after}".strip()
    known = title and not any(word in text for word in re.findall(r"\w{4,}", title))
    return f"“{text}” ({title})" if known else f"“{text}”"


def standalone(text: str) -> str:
    """A question with its capital and question mark."""
    return f"{text[:1].upper()}{text[1:].rstrip('?. ')}?"


def in_style(text: str, style: str, draw: random.Random) -> str:
    """The question as a user of this style puts it."""
    if style == "keywords":
        words = [word for word in re.findall(r"[\w'’%.,-]*\w", text) if word.casefold() not in STOP_WORDS]
        return " ".join(words) if len(words) >= 3 else text
    if style == "chat":
        return standalone(draw.choice(OPENERS).format(text))
    return standalone(text)
