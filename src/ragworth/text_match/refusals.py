"""Detect answers that decline to answer: "I don't know", "The passages do not say", "NO-RESPONSE", in many languages.

An answer declines if it equals one of a few labels, or if it has a sentence that declines, no earlier sentence answers,
and none takes it back ("… but it was Paris"). A sentence answers unless it is about the passages or the question, an
apology, an offer or a question itself. The phrases are in ``refusal_phrases.txt``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ragworth.text_match.markup import MAX_TEXT, unwrapped, without_markup
from ragworth.text_match.negation import NEGATIONS
from ragworth.text_match.normalise import canonical_words
from ragworth.text_match.overlap import SCRIPTS_WITHOUT_SPACES

PHRASE_KINDS = ("declines", "soft", "sorry", "but", "aside")
_OWN_BUT = "yet"

# A few words between, within the sentence. Bounded, so that the time is proportional to the length of the text.
_GAP = r"[^.!?。！？।\n]{0,60}?"
_SCRIPTS_WITHOUT_ENDS = re.compile(f"[{SCRIPTS_WITHOUT_SPACES}\uac00-\ud7af]")


class LanguagePhrases(NamedTuple):
    """The phrases of a language by kind, as regular expressions, and its labels."""

    phrases: dict[str, list[str]]
    labels: list[str]


class RefusalPatterns(NamedTuple):
    """One expression per kind for all languages, one per language for phrases that decline, and all labels."""

    declines: re.Pattern[str]
    soft: re.Pattern[str]
    sorry: re.Pattern[str]
    but: re.Pattern[str]
    aside: re.Pattern[str]
    by_language: dict[str, re.Pattern[str]]
    labels: frozenset[str]
    but_after: dict[str, re.Pattern[str]]
    """For languages with a "but" that is a word of another language: all of their words for it."""


def normalise_for_phrases(text: str) -> str:
    """Normalize a text for phrase matching: lower case, one form of apostrophe, composed characters."""
    return unicodedata.normalize("NFC", text).casefold().replace("’", "'").replace("ʼ", "'").replace("`", "'")


def with_word_boundaries(pattern: str) -> str:
    """Add word boundaries to a pattern; Korean and scripts without blanks have none where phrases end."""
    if _SCRIPTS_WITHOUT_ENDS.search(pattern):
        return f"(?:{pattern})"
    return rf"(?<!\w)(?:{pattern})(?!\w)"


NON_LATIN_LANGUAGES = frozenset(
    ("Russian", "Arabic", "Hindi", "Chinese", "Japanese", "Korean", "Greek", "Hebrew", "Thai", "Ukrainian")
)
"""Languages whose phrases can't occur in a text of ASCII characters."""


@cache
def refusal_patterns(*, ascii_only: bool = False) -> RefusalPatterns:
    """The table, compiled on first use; ``ascii_only`` leaves out phrases in other scripts, which saves time."""
    table = parse_phrases(files("ragworth.text_match").joinpath("refusal_phrases.txt").read_text(encoding="utf-8"))
    if ascii_only:
        table = {name: language for name, language in table.items() if name not in NON_LATIN_LANGUAGES}
    together = [
        re.compile("|".join(phrase for language in table.values() for phrase in language.phrases[kind]))
        for kind in PHRASE_KINDS
    ]
    by_language = {
        name: re.compile("|".join(language.phrases["declines"]))
        for name, language in table.items()
        if language.phrases["declines"]
    }
    labels = frozenset(label for language in table.values() for label in language.labels)
    declines, soft, sorry, but, aside = together
    but_after = {
        name: re.compile("|".join((but.pattern, *language.phrases[_OWN_BUT])))
        for name, language in table.items()
        if language.phrases[_OWN_BUT]
    }
    return RefusalPatterns(declines, soft, sorry, but, aside, by_language, labels, but_after)


def parse_phrases(text: str) -> dict[str, LanguagePhrases]:
    """Parse the table of phrases, whose format is explained at its top."""
    table: dict[str, LanguagePhrases] = {}
    words: dict[str, str] = {}
    language = LanguagePhrases({kind: [] for kind in (*PHRASE_KINDS, _OWN_BUT)}, [])
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if not line or kind == "#":
            continue
        if line.startswith("["):
            words = {}
            language = table[line.strip("[]")] = LanguagePhrases({kind: [] for kind in (*PHRASE_KINDS, _OWN_BUT)}, [])
        elif kind == "word":
            name, _, choice = rest.partition(" = ")
            words[f"{{{name}}}"] = f"({_with_words(choice, words)})"
        elif kind == "label":
            language.labels.append(normalise_for_phrases(rest))
        else:
            language.phrases[kind].append(_expression(rest, words))
    return table


def _with_words(phrase: str, words: dict[str, str]) -> str:
    for name, choice in words.items():
        phrase = phrase.replace(name, choice)
    return phrase


def _expression(phrase: str, words: dict[str, str]) -> str:
    phrase = re.sub(r"\((?!\?)", "(?:", normalise_for_phrases(_with_words(phrase, words)))
    # Words are separate on both sides of a gap; characters of scripts without blanks need not be.
    phrase = re.sub(r" ?… ?", lambda gap: _GAP + (r"\b" if " " in gap.group() else ""), phrase)
    return with_word_boundaries(phrase.replace(" ?", r"\s?").replace(" ", r"\s+"))


# A period within a word, after a single letter or after a title doesn't end a sentence.
_SENTENCE = re.compile(
    r"(?:[^.!?。！？।؟\n]|[.!?](?=\w)|(?<=\b\w)\.|(?<=\b(?:st|dr|mr|ms|vs|no))\.|(?<=\bmrs)\.)+[.!?。！？।؟\"'”»)]*"
)
_QUOTED = re.compile(r"\"[^\"\n]{0,200}(?:\"|$)|“[^”\n]{0,200}(?:”|$)|«[^»\n]{0,200}»|「[^」\n]{0,200}」")
# Instructions that models repeat: the phrase is quoted, not chosen.
_INSTRUCTION = re.compile(r"please (?:just |only )?(?:respond|answer|reply|select|choose|say|write)\b")
# At the beginning of a sentence whose main clause may answer: "While I can't verify it, it was Paris."
_CONCEDES = re.compile(
    r"(?:while|whilst|although|though|even (?:though|if)|obwohl|auch wenn|bien que|même si|aunque|anche se|sebbene|"
    r"embora|hoewel|ook al|chociaż|mimo że)\b"
)
_BECAUSE = re.compile(r"\w\W+because\b")
"""After a clause that answers: "The claim was denied because the receipt was not provided."."""
_SOURCE = re.compile(
    r"\b(passage|document|excerpt|text|context|table|filing|statement|data|page|report|source|information|article|n/a)s?\b"
)
_CREDITS = re.compile(r"\b(?:according to|based (?:up)?on)(?: \w+){1,4}")
"""What an answer comes from, which doesn't say that it is lacking: "according to the report"."""
SOURCE_SENTENCES = 2
"""Sentences at the beginning of an answer in which it may say that its sources don't answer."""
_EDGES = " \t\r\n.,;:!?\"'`*_()[]{}<>“”‘’«»「」。，！？、।؟-–—"


class RefusalMatch(NamedTuple):
    """A refusal: the phrase found, and the language it is listed under.

    A phrase from a sentence is in lower case. A label is the unchanged answer, with the language "label". Regret
    alone ("I'm sorry, …") has the language "regret"; other excuses and custom phrases have none.
    """

    phrase: str
    language: str


def find_refusal(text: str, phrases: Sequence[str] = ()) -> RefusalMatch | None:
    """Find the phrase by which an answer declines; None if it answers.

    ``phrases`` are further phrases that decline, as plain words, ignoring case and repeated blanks. A refusal ("I can't
    help with that") declines. A blank text gives None. A phrase within quotation marks is only mentioned, unless it is
    the whole answer.
    """
    plain = without_markup(unwrapped(text) or "")
    seen = normalise_for_phrases(plain or text[:MAX_TEXT])
    whole = seen.strip(_EDGES)
    own = [" ".join(normalise_for_phrases(phrase).strip(_EDGES).split()) for phrase in phrases]
    for label in own:
        if label and whole == label:
            return RefusalMatch(text.strip(), "")
    if whole.removeprefix("answer").strip(_EDGES) in refusal_patterns().labels:
        return RefusalMatch(text.strip(), "label")
    return _by_sentence(seen, [phrase for phrase in own if phrase])


def tells_of_sources(text: str, question: str) -> bool:
    """Whether an answer begins by telling of passages, which the question doesn't: "The excerpt omits 2022."."""
    said = " ".join(_SENTENCE.findall(normalise_for_phrases(text))[:SOURCE_SENTENCES])
    asked = set(_SOURCE.findall(normalise_for_phrases(question)))
    denied = not NEGATIONS.isdisjoint(canonical_words(said))
    return not asked.issuperset(_SOURCE.findall(said if denied else _CREDITS.sub(" ", said)))


def _by_sentence(seen: str, own: list[str]) -> RefusalMatch | None:
    whole = seen.strip().strip("\"'“”«»「」")
    said = _QUOTED.sub(" ", whole)
    table = refusal_patterns(ascii_only=said.isascii())
    found: RefusalMatch | None = None
    soft: RefusalMatch | None = None
    firm: int | None = None
    but = table.but
    for place, sentence in enumerate(_SENTENCE.findall(said)):
        words = sentence.strip(_EDGES)
        if not words or _INSTRUCTION.match(words):
            continue
        declined = _declines(words, own, table)
        if declined is not None:
            match, language = declined
            but = table.but_after.get(language, table.but)
            after = words[match.end() :]
            if firm is None and (_takes_back(after, own, table, but) or _concedes(words, after, own, table)):
                return None
            # A sentence that says nothing else is meant, whatever is explained after it.
            if found is None and len(words) - len(match.group()) <= len("no, "):
                firm = place
            found = found or RefusalMatch(match.group().strip(), language)
            continue
        excuse, language = table.soft.search(words), ""
        if excuse is None:
            excuse, language = table.sorry.search(words), "regret"
        contrast = but.match(words)
        rest = words[contrast.end() :].lstrip(_EDGES) if contrast else words
        if excuse is not None:
            if _takes_back(words[excuse.end() :], own, table, but):
                return None
            if soft is None or soft.language:
                soft = RefusalMatch(excuse.group().strip(), language)
        elif table.aside.match(rest) or sentence.rstrip().endswith(("?", "？", "؟")):
            continue
        elif found is None or (contrast and (firm is None or place == firm + 1)):
            # It answers: before anything was declined, or in spite of it.
            return None
    return found or soft


def _declines(sentence: str, own: Iterable[str], table: RefusalPatterns) -> tuple[re.Match[str], str] | None:
    for phrase in own:
        match = re.search(with_word_boundaries(r"\s+".join(map(re.escape, phrase.split()))), sentence)
        if match:
            return match, ""
    found = table.declines.search(sentence)
    if not found or _BECAUSE.search(sentence, 0, found.start()):
        return None
    return found, next(name for name, one in table.by_language.items() if one.search(sentence))


def _takes_back(rest: str, own: Sequence[str], table: RefusalPatterns, but: re.Pattern[str]) -> bool:
    """Whether the rest of a phrase's sentence answers after a "but"."""
    contrast = but.search(rest)
    return contrast is not None and _answers(rest[contrast.end() :], own, table)


def _concedes(sentence: str, rest: str, own: Sequence[str], table: RefusalPatterns) -> bool:
    """Whether a phrase only stands in a concession, and the main clause after it answers."""
    return _CONCEDES.match(sentence) is not None and _answers(rest.partition(",")[2], own, table)


def _answers(clause: str, own: Sequence[str], table: RefusalPatterns) -> bool:
    after = clause.lstrip(_EDGES)
    return bool(after) and _declines(after, own, table) is None and not table.aside.match(after)
