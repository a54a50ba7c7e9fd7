"""Detect answers that decline to answer: "I don't know", "The passages do not say", "NO-RESPONSE", in many languages.

An answer declines if it equals one of a few labels, or if it has a sentence that declines, no earlier sentence answers,
and none takes it back ("… but it was Paris"). A sentence answers unless it is about the passages or the question, an
apology, an offer or a question itself. The phrases are in ``refusal_phrases.txt``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ragworth.text_match.markup import MAX_TEXT, unwrapped, without_markup
from ragworth.text_match.normalise import canonical_words
from ragworth.text_match.overlap import SCRIPTS_WITHOUT_SPACES
from ragworth.text_match.polarity import NEGATIONS

PHRASE_KINDS = ("declines", "soft", "sorry", "but", "aside")

# A few words between, within the sentence. Bounded, so that the time is proportional to the length of the text.
_GAP = r"[^.!?。！？।\n]{0,60}?"
_SCRIPTS_WITHOUT_ENDS = re.compile(f"[{SCRIPTS_WITHOUT_SPACES}\uac00-\ud7af]")

NON_LATIN_LANGUAGES = frozenset(
    ("Russian", "Arabic", "Hindi", "Chinese", "Japanese", "Korean", "Greek", "Hebrew", "Thai", "Ukrainian")
)
"""Languages whose phrases can't occur in a text of ASCII characters."""


class LanguagePhrases(NamedTuple):
    """A language with an expression for each kind of phrase that it has, and its labels."""

    name: str
    patterns: dict[str, re.Pattern[str]]
    labels: frozenset[str]

    def search(self, kind: str, text: str) -> re.Match[str] | None:
        return self.patterns[kind].search(text) if kind in self.patterns else None


class RefusalMatch(NamedTuple):
    """A refusal: the phrase found, and the language it is listed under.

    A phrase from a sentence is in lower case. A label is the unchanged answer, with the language "label". Regret
    alone ("I'm sorry, …") has the language "regret"; other excuses and custom phrases have none.
    """

    phrase: str
    language: str


def _lower(text: str) -> str:
    """Write a text as the phrases are: lower case, one form of apostrophe, composed characters."""
    return unicodedata.normalize("NFC", text).casefold().replace("’", "'").replace("ʼ", "'").replace("`", "'")


@cache
def refusal_phrases() -> list[LanguagePhrases]:
    """Read the table, whose format is explained at its top."""
    text = files("ragworth.text_match").joinpath("refusal_phrases.txt").read_text(encoding="utf-8")
    return [_read_language(part) for part in re.split(r"^\[", text, flags=re.MULTILINE)[1:]]


def _read_language(part: str) -> LanguagePhrases:
    name, *lines = filter(None, part.splitlines())
    words: dict[str, str] = {}
    phrases: dict[str, list[str]] = {}
    for line in lines:
        kind, _, rest = line.partition(" ")
        for word, choice in words.items():
            rest = rest.replace(word, choice)
        if kind == "word":
            word, _, choice = rest.partition(" = ")
            words[f"{{{word}}}"] = f"({choice})"
        else:
            phrases.setdefault(kind, []).append(_lower(rest) if kind == "label" else _expression(rest))
    labels = frozenset(phrases.pop("label", []))
    return LanguagePhrases(
        name.strip("]"), {kind: re.compile("|".join(some)) for kind, some in phrases.items()}, labels
    )


def _expression(phrase: str) -> str:
    phrase = re.sub(r"\((?!\?)", "(?:", _lower(phrase))
    # Words are separate on both sides of a gap; characters of scripts without blanks need not be.
    phrase = re.sub(r" ?… ?", lambda gap: _GAP + (r"\b" if " " in gap.group() else ""), phrase)
    return _with_word_boundaries(phrase.replace(" ?", r"\s?").replace(" ", r"\s+"))


def _with_word_boundaries(pattern: str) -> str:
    """Add word boundaries to a pattern; Korean and scripts without blanks have none where phrases end."""
    return f"(?:{pattern})" if _SCRIPTS_WITHOUT_ENDS.search(pattern) else rf"(?<!\w)(?:{pattern})(?!\w)"


# A period within a word, after a single letter or after a title doesn't end a sentence.
_SENTENCE = re.compile(
    r"(?:[^.!?。！？।؟\n]|[.!?](?=\w)|(?<=\b\w)\.|(?<=\b(?:st|dr|mr|ms|vs|no))\.|(?<=\bmrs)\.)+[.!?。！？।؟\"'”»)]*"
)
_QUOTED = re.compile(r"\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”|«[^»\n]{0,200}»|「[^」\n]{0,200}」")
# At the beginning of a sentence whose main clause may answer: "While I can't verify it, it was Paris."
_CONCEDES = re.compile(r"(?:while|although|though|even (?:though|if)|obwohl|bien que|aunque|anche se|embora|hoewel)\b")
_BECAUSE = re.compile(r"\w\W+because\b")
"""After a clause that answers: "The claim was denied because the receipt was not provided."."""
_SOURCE = re.compile(
    r"\b(passage|document|excerpt|text|context|table|filing|statement|data|page|report|source|information|article|n/a)s?\b"
)
_CREDITS = re.compile(r"\b(?:according to|based (?:up)?on)(?: \w+){1,4}")
"""What an answer comes from, which doesn't say that it is lacking: "according to the report"."""
_INSTRUCTION = re.compile(r"please (?:just |only )?(?:respond|answer|reply|select|choose|say|write)\b")
"""What small models repeat of their prompt: its phrase is quoted, not chosen."""
SOURCE_SENTENCES = 2
"""Sentences at the beginning of an answer in which it may say that its sources don't answer."""
_EDGES = " \t\r\n.,;:!?\"'`*_()[]{}<>“”‘’«»「」。，！？、।؟-–—"


def find_refusal(text: str, phrases: Sequence[str] = ()) -> RefusalMatch | None:
    """Find the phrase by which an answer declines; None if it answers.

    ``phrases`` are further phrases that decline, as plain words, ignoring case and repeated blanks. A refusal ("I can't
    help with that") declines. A blank text gives None. A phrase within quotation marks is only mentioned, unless it is
    the whole answer.
    """
    said = _lower(without_markup(unwrapped(text) or "") or text[:MAX_TEXT])
    whole = said.strip(_EDGES)
    own = [" ".join(_lower(phrase).strip(_EDGES).split()) for phrase in phrases]
    if whole and whole in own:
        return RefusalMatch(text.strip(), "")
    label = whole.removeprefix("answer").strip(_EDGES)
    if any(label in language.labels for language in refusal_phrases()):
        return RefusalMatch(text.strip(), "label")
    said = _QUOTED.sub(" ", said).strip() or said
    return _RefusalSearch([phrase for phrase in own if phrase]).find(said)


def tells_of_sources(text: str, question: str) -> bool:
    """Return whether an answer begins by telling of passages that the question doesn't mention."""
    said = " ".join(_SENTENCE.findall(_lower(text))[:SOURCE_SENTENCES])
    asked = set(_SOURCE.findall(_lower(question)))
    denied = not NEGATIONS.isdisjoint(canonical_words(said))
    return not asked.issuperset(_SOURCE.findall(said if denied else _CREDITS.sub(" ", said)))


class _RefusalSearch:
    """The search for a refusal in one text, sentence by sentence."""

    def __init__(self, own: Sequence[str]) -> None:
        self.own = [re.compile(_with_word_boundaries(re.escape(phrase).replace(r"\ ", r"\s+"))) for phrase in own]
        self.languages: list[LanguagePhrases] = []

    def find(self, text: str) -> RefusalMatch | None:
        ascii_only = text.isascii()
        self.languages = [one for one in refusal_phrases() if not (ascii_only and one.name in NON_LATIN_LANGUAGES)]
        refusal: RefusalMatch | None = None
        excuse: RefusalMatch | None = None
        firm: int | None = None
        but: list[LanguagePhrases] = self.languages
        for place, sentence in enumerate(_SENTENCE.findall(text)):
            words = sentence.strip(_EDGES)
            if not words or _INSTRUCTION.match(words):
                continue
            declined = self._declines(words)
            if declined is not None:
                match, languages = declined
                but = languages or self.languages
                after = words[match.end() :]
                main_clause = after.partition(",")[2] if _CONCEDES.match(words) else ""
                if firm is None and (self._takes_back(after, but) or self._answers(main_clause)):
                    return None
                # A sentence that says nothing else is meant, whatever is explained after it.
                if refusal is None and len(words) - len(match.group()) <= len("no, "):
                    firm = place
                refusal = refusal or RefusalMatch(match.group().strip(), languages[0].name if languages else "")
                continue
            contrast = next(self._matches("but", words, but), None)
            rest = words[contrast.end() :].lstrip(_EDGES) if contrast else words
            soft = next(self._searches("soft", words), None)
            regret = None if soft else next(self._searches("sorry", words), None)
            if soft or regret:
                phrase, language = soft or regret  # type: ignore[misc]
                if self._takes_back(words[phrase.end() :], [language]):
                    return None
                if excuse is None or excuse.language:
                    excuse = RefusalMatch(phrase.group().strip(), "regret" if regret else "")
            elif self._is_aside(rest) or sentence.rstrip().endswith(("?", "？", "؟")):
                continue
            elif refusal is None or (contrast and (firm is None or place == firm + 1)):
                # It answers: before anything was declined, or in spite of it.
                return None
        return refusal or excuse

    def _searches(self, kind: str, text: str) -> Iterator[tuple[re.Match[str], LanguagePhrases]]:
        return ((match, one) for one in self.languages if (match := one.search(kind, text)))

    @staticmethod
    def _matches(kind: str, text: str, languages: Sequence[LanguagePhrases]) -> Iterator[re.Match[str]]:
        patterns = (one.patterns[kind] for one in languages if kind in one.patterns)
        return (match for pattern in patterns if (match := pattern.match(text)))

    def _is_aside(self, text: str) -> bool:
        return any(self._matches("aside", text, self.languages))

    def _declines(self, sentence: str) -> tuple[re.Match[str], list[LanguagePhrases]] | None:
        """Find a phrase that declines, one of the caller's own first, and the languages that have such phrases."""
        own = next(filter(None, (pattern.search(sentence) for pattern in self.own)), None)
        if own:
            return own, []
        listed = list(self._searches("declines", sentence))
        if not listed or _BECAUSE.search(sentence, 0, listed[0][0].start()):
            return None
        return listed[0][0], [language for _, language in listed]

    def _takes_back(self, rest: str, languages: Sequence[LanguagePhrases]) -> bool:
        """Return whether the rest of a phrase's sentence answers after a "but"."""
        contrast = min(filter(None, (one.search("but", rest) for one in languages)), key=re.Match.start, default=None)
        return contrast is not None and self._answers(rest[contrast.end() :])

    def _answers(self, clause: str) -> bool:
        after = clause.lstrip(_EDGES)
        return bool(after) and self._declines(after) is None and not self._is_aside(after)
