"""Names in a group of passages: where a question mentions one, and which words can stand for it.

A follow-up can refer to something by a pronoun only if we know that it is a thing, or which pronoun its passages use
for the person. Evidence decides: a noun next to the name (``Lauen Tunnel``, ``the film Madame Curare``, ``Velmora is a
Swiss producer``) or he/she after it. A name without evidence gets no pronoun.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from training.reader.texts import sentences
from training.reader.written import Group
from training.rewriter.words import words

WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*|&")
_LINKS = {"of", "de", "da", "du", "del", "della", "la", "van", "von", "der", "den", "&", "y", "e", "al", "bin"}
_ASKING = words("asking")
"""Words that are capitalised only because a question begins with them."""
_MONTHS = words("dates")
_PEOPLES = words("peoples")

NOUNS = {**{noun: noun for noun in words("nouns")}, **dict.fromkeys(words("companies"), "company"), "movie": "film"}
"""Common nouns by which a name can be called afterwards: ``the tunnel``."""
_BEFORE_NAMES = words("nouns_before_names")
"""Nouns that names begin with: ``Lake Turuma``."""
_MANY = words("plural_nouns")


@lru_cache(maxsize=20_000)
def fold(text: str) -> str:
    """A text without case and accents, of the same length."""
    return "".join((unicodedata.normalize("NFKD", letter)[0] or letter).lower()[:1] or letter for letter in text)


class Pronouns(NamedTuple):
    subject: str
    object: str
    possessive: str


IT = Pronouns("it", "it", "its")
THEY = Pronouns("they", "them", "their")
HE = Pronouns("he", "him", "his")
SHE = Pronouns("she", "her", "her")

_PRONOUNS = {"he": HE, "his": HE, "him": HE, "she": SHE, "her": SHE, "it": IT, "its": IT}


@dataclass(frozen=True)
class Name:
    """A name in its longest spelling, the other spellings, and what can stand for it."""

    text: str
    spellings: tuple[str, ...]
    pronouns: Pronouns | None
    noun: str | None

    @property
    def short(self) -> str | None:
        """A spelling with fewer words, such as the surname."""
        fewer = [spelling for spelling in self.spellings if len(spelling.split()) < len(self.text.split())]
        return min(fewer, key=len) if fewer else None


class Mention(NamedTuple):
    """Where a question mentions a name: positions in its text."""

    name: Name
    start: int
    end: int


def capitalised(text: str) -> list[str]:
    """Runs of capitalised words and numbers, without the word that begins a sentence only."""
    found: list[str] = []
    for part in sentences(text):
        run: list[re.Match[str]] = []
        for match in WORD.finditer(part):
            if run and part[run[-1].end() : match.start()].strip():
                found += _run(part, run)
                run = []
            word = match[0]
            begins = match.start() == 0 or part[: match.start()].strip() == ""
            proper = word[0].isupper() and not (begins and word.lower() in _ASKING)
            if proper or (run and (word in _LINKS or word[0].isdigit())):
                run.append(match)
            else:
                found += _run(part, run)
                run = []
        found += _run(part, run)
    return found


def _run(part: str, run: list[re.Match[str]]) -> list[str]:
    while run and (run[-1][0] in _LINKS or (run[-1][0].isdigit() and len(run[-1][0]) == 4)):
        run = run[:-1]
    while run and run[0][0] in {"The", "A", "An"}:
        run = run[1:]
    if not run:
        return []
    text = re.sub(r"['’]s$", "", part[run[0].start() : run[-1].end()])
    worth = [word for word in WORD.findall(text) if word[0].isupper() and word.lower() not in _MONTHS]
    return [text] if worth and len(text) > 2 else []


def names(group: Group) -> list[Name]:
    """The names in the questions of a group, the longest first."""
    questions = [asked.text for asked in group.questions]
    answers = [answer for asked in group.questions for answer in asked.answers[:1]]
    found: dict[str, str] = {}
    for text in (group.topic, *questions, *answers):
        for name in capitalised(text):
            found.setdefault(fold(name), name)
    said = {word for passage in group.passages.values() for word in WORD.findall(passage)}
    common = {key for key, name in found.items() if name.lower() in said | _MONTHS | _PEOPLES}
    families = _families([name for key, name in found.items() if key not in common])
    return sorted((_name(family, group) for family in families), key=lambda name: -len(name.text))


def _families(spellings: Sequence[str]) -> list[tuple[str, ...]]:
    """Spellings of the same name together: a part of exactly one longer name is another spelling of that name."""
    ordered = sorted(spellings, key=lambda text: (-len(text.split()), text))
    families: list[list[str]] = []
    for text in ordered:
        within = [family for family in families if _part(text, family[0])]
        if len(within) == 1:
            within[0].append(text)
        else:
            families.append([text])
    return [tuple(family) for family in families]


def _part(short: str, long: str) -> bool:
    few, many = fold(short).split(), fold(long).split()
    begins = few == many[: len(few)] and not any(letter.isdigit() for letter in long)
    return begins or few == many[-len(few) :]


def _name(spellings: tuple[str, ...], group: Group) -> Name:
    texts = [group.topic, *(asked.text for asked in group.questions), *group.passages.values()]
    after = _pronouns_after(spellings, group.passages.values())
    person = next((one for one, other in ((HE, SHE), (SHE, HE)) if after[one] and not after[other]), None)
    asked_about = [(spelling, asked.text) for spelling in spellings for asked in group.questions]
    if _answers_who(spellings, group) or any(_personal(*pair) for pair in asked_about):
        return Name(spellings[0], spellings, person, None)
    noun = _noun(spellings, texts)
    made = any(_thing(*pair) for pair in asked_about)
    thing = noun is not None or made or (after[IT] > 1 and not after[HE] and not after[SHE])
    return Name(spellings[0], spellings, (THEY if noun in _MANY else IT) if thing else None, noun)


def _personal(spelling: str, question: str) -> bool:
    """Whether a question treats the name as a person."""
    name, text = re.escape(fold(spelling)), fold(question)
    if fold(spelling) not in text:
        return False
    kin = "wife|husband|daughter|son|father|mother|brother|sister|coach|successor|age|birthday|nickname"
    return bool(re.search(rf"\b{name}(?:['’]s (?:{kin})| (?:die|born|marry|married|buried|study|retire))\b", text))


def _thing(spelling: str, question: str) -> bool:
    """Whether a question treats the name as something that is made, opened or sold."""
    if fold(spelling) not in fold(question):
        return False
    name = rf"(?:the )?{re.escape(fold(spelling))}"
    made = "founded|built|opened|launched|released|published|designed|established|discovered|completed|demolished|shown"
    patterns = (
        rf"\b(?:was|were|is) {name} (?:first )?(?:{made})\b",
        rf"\bwho (?:founded|designed|built|owns|composed|directed|wrote|created|invented|makes|runs) {name}$",
        rf"\b(?:does|did|will) {name} (?:cost|open|close)\b",
        rf"\bprice of {name}\b",
    )
    return any(re.search(pattern, fold(question.rstrip("?"))) for pattern in patterns)


def _pronouns_after(spellings: tuple[str, ...], passages: Iterable[str]) -> Counter[Pronouns]:
    """How often passages go on with it, he or she after the name, without another name between."""
    counts: Counter[Pronouns] = Counter()
    for passage in passages:
        folded = fold(passage)
        for spelling in map(fold, spellings):
            ends = [match.end() for match in re.finditer(re.escape(spelling), folded)] if spelling in folded else []
            counts.update(pronoun for end in ends for pronoun in _next_pronoun(passage[end:]))
    return counts


def _next_pronoun(after: str) -> list[Pronouns]:
    """The first pronoun within two sentences, unless a name comes before it."""
    for match in WORD.finditer(" ".join(sentences(after[:400])[:2])):
        word = match[0]
        if word.lower() in _PRONOUNS:
            return [_PRONOUNS[word.lower()]]
        if word[0].isupper() and word.lower() not in _MONTHS:
            return []
    return []


def _noun(spellings: tuple[str, ...], texts: Sequence[str]) -> str | None:
    """The common noun that a name ends with, begins with, stands next to, or is said to be."""
    counts: Counter[str] = Counter()
    for spelling in spellings:
        words = [word.lower() for word in spelling.split()]
        if words[-1] in NOUNS:
            counts[NOUNS[words[-1]]] += 5
        elif words[0] in NOUNS and (words[0] in _BEFORE_NAMES or words[1:2] == ["of"]):
            counts[NOUNS[words[0]]] += 5
        name = re.escape(fold(spelling))
        for text in (text for text in map(fold, texts) if fold(spelling) in text):
            before = re.findall(rf"\b([a-z]+) [\"“']?{name}\b", text)
            counts.update(NOUNS[word] for word in before if word in NOUNS)
            for match in re.finditer(rf"\b{name}(?: \w+)? (?:is|was) (?:an?|the) ((?:[\w-]+ ){{0,4}}[\w-]+)", text):
                said = [NOUNS[word] for word in match[1].split() if word in NOUNS]
                counts.update(dict.fromkeys(said[:1], 4))
    best = counts.most_common(1)
    return best[0][0] if best and best[0][1] >= 2 else None


def _answers_who(spellings: tuple[str, ...], group: Group) -> bool:
    """Whether a question that asks who has the name as its answer: it is a person, or at least an agent."""
    folded = {fold(spelling) for spelling in spellings}
    return any(
        re.match(r"who\b|whom\b", asked.text, re.I) and folded & {fold(answer) for answer in asked.answers}
        for asked in group.questions
    )


def mentions(text: str, known: Sequence[Name]) -> list[Mention]:
    """The names that a text mentions, the longest spelling at each place, from left to right."""
    folded, taken, found = fold(text), [False] * len(text), []
    spelt = sorted(((s, name) for name in known for s in name.spellings), key=lambda pair: -len(pair[0]))
    for spelling, name in spelt:
        if fold(spelling) not in folded:
            continue
        for match in re.finditer(rf"(?<![\w-]){re.escape(fold(spelling))}(?![\w-])", folded):
            if not any(taken[match.start() : match.end()]):
                taken[match.start() : match.end()] = [True] * (match.end() - match.start())
                particle = re.search(r"\b(?:(?:de|van|von|der|den|da|di|du) )+$", folded[: match.start()])
                found.append(Mention(name, particle.start() if particle else match.start(), match.end()))
    return sorted(found, key=lambda mention: mention.start)
