"""Detect answers that decline to answer: "I don't know", "The passages do not say", "NO-RESPONSE", in many languages.

An answer declines if it equals one of a few labels, or if it has a sentence that declines, no earlier sentence answers,
and none takes it back ("… but it was Paris"). A sentence answers unless it is about the passages or the question, an
apology, an offer or a question itself. The phrases are in ``refusal_phrases.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ragworth.text_match.markup import MAX_TEXT, unwrapped, without_markup
from ragworth.text_match.negation import NEGATIONS
from ragworth.text_match.normalise import canonical_words
from ragworth.text_match.refusal_phrases import (
    RefusalPatterns,
    normalise_for_phrases,
    refusal_patterns,
    with_word_boundaries,
)

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
