"""Does a text say yes or no? By its first word, its last, or by restating or denying what was asked.

Restating and denying are read in English only. In other languages a text says yes or no with a word for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ragworth.text_match.negation import NEGATIONS
from ragworth.text_match.normalise import canonical_words, read_pieces, singular
from ragworth.text_match.quantities import DIRECTIONS

_YES = "yes|yeah|yep|ja|oui|sí|si|sì|sim|da|да|tak|evet|نعم|हाँ|हां|はい|是的|是|네|예"
_NO = "no|nope|nein|non|não|nao|nee|нет|nie|hayır|لا|नहीं|いいえ|不是|否|아니요|아니오"
_SURE = "absolutely|certainly|definitely|indeed|correct|of course|true|that is correct|that's correct"
_DENIAL = (
    "not really|not at all|not yet|not exactly|unfortunately,? not|absolutely not|certainly not|definitely not|"
    "of course not|i don't think so|false|incorrect|never|no longer|not any ?more|not any longer"
)
# What may follow the word: the end, a mark, or a new clause. "No doubt" and "no sales" don't say no.
_STOP = r"(?=\s*(?:$|[^\w\s'’])|\s+(?:it|they|he|she|there|this|that|we|i|the)\b)"
_LEAD = r"^\W*(?:(?:the |my |final |short )*answer(?: is)?\W+)?"
# "It did." and "They don't, because …" stand for the question.
_PRO_FORM = (
    "(?:it|they|he|she|we|you|this|that|these|those) "
    "(?:do(?:es)?|did|is|are|was|were|ha[sd]|have|can|could|will|would|should|must)"
)
_ELLIPSIS = r"(?=\s*(?:$|[.,;:!–—(]))"
_LEADS_YES = re.compile(rf"(?i){_LEAD}(?:(?:{_YES}){_STOP}|(?:{_SURE})(?!\s+not)\b|{_PRO_FORM}{_ELLIPSIS})")
_LEADS_NO = re.compile(rf"(?i){_LEAD}(?:(?:{_NO}){_STOP}|(?:{_DENIAL})\b|{_PRO_FORM}(?: ?n['’]?t| not)\b{_ELLIPSIS})")
_LATER = r"(?i)(?:[.!?:\n*\"]\W{0,9}|\b(?:so|is|therefore|thus|hence)\W{1,9})"
_SAYS_YES = re.compile(rf"{_LATER}(?:yes|true)(?=\W{{0,9}}(?:[,.;!?\n*\"]|$))")
_SAYS_NO = re.compile(rf"{_LATER}(?:no|false)(?=\W{{0,9}}(?:[,.;!?\n*\"]|$))")
# After a yes or no, the other one at the beginning of a sentence, behind two words at most: "Or actually, no."
_RETRACTS = r"(?i)[.!?…。！？\n]\W{0,9}(?:\w{1,20}[,:]?\s{1,9}){0,2}?"
_RETRACTS_YES = re.compile(rf"{_RETRACTS}(?:{_NO})(?=\W{{0,9}}(?:[,.;!?、。\n]|$))")
_RETRACTS_NO = re.compile(rf"{_RETRACTS}(?:{_YES})(?=\W{{0,9}}(?:[,.;!?、。\n]|$))")
_ASKS = re.compile(
    r"(?i)(?:^|[.,;:!?]\s+)(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might|must)\b"
)
# They have a "no" and deny nothing.
_IDIOMS = re.compile(r"(?i)\bno (?:problem|doubt|question|wonder|worries|matter)\b")
_NON = re.compile(r"(?i)\bnon-(?=\w)")
_SENTENCE_END = re.compile(r"(?<=[.!?;:\n])\s+")

_STEM = 6
_MIN_VERB = 3
_REACH = 4
MIN_RESTATED = 0.5
"""Share of the question's words that a sentence must repeat to restate or deny it."""

_FUNCTION_WORDS = """
a an the is are was were be been being do does did done has have had can could will would should may might must of in
on at by to for and or with from as it its he she they them his her their there this that these those ever any still
yet also than which who what when where how if so then i we you our your but not no
"""
_PREPOSITIONS = frozenset(
    ("in", "on", "at", "by", "to", "for", "of", "from", "during", "as", "with", "between", "since", "than")
)
_FUNCTION = frozenset(_FUNCTION_WORDS.split())
_DOUBTS = frozenset(
    (
        "hardly",
        "barely",
        "scarcely",
        "only",
        "except",
        "partly",
        "partially",
        "sometimes",
        "whether",
        "unless",
        "may",
        "information",
        "mention",
        "evidence",
    )
)


class StatedPolarity(NamedTuple):
    """A yes or no at the start of an accepted answer, and what follows it."""

    positive: bool
    rest: str


def read_polarity(answer: str) -> StatedPolarity | None:
    """The yes or no (true or false) that an accepted answer begins with; None if it has none."""
    for positive, words in ((True, f"{_YES}|true"), (False, f"{_NO}|false")):
        match = re.match(rf"(?i)\W*(?:{words}){_STOP}\W*", answer)
        if match:
            return StatedPolarity(positive, answer[match.end() :])
    return None


def text_polarity(text: str, question: str, statement: str) -> bool | None:
    """Whether a text says yes or no to a question, or else to a statement; None if that isn't clear."""
    positive, negative = _LEADS_YES.match(text) is not None, _LEADS_NO.match(text) is not None
    stated = restated_polarity(text, (question if asks_polarity(question) else "") if question else statement)
    if positive != negative:
        others = (_SAYS_NO, _RETRACTS_YES) if positive else (_SAYS_YES, _RETRACTS_NO)
        contradicted = any(other.search(text) for other in others)
        return None if contradicted or (stated is not None and stated != positive) else positive
    positive, negative = _SAYS_YES.search(text) is not None, _SAYS_NO.search(text) is not None
    if positive != negative:
        return None if stated is not None and stated != positive else positive
    return None if positive else stated


def asks_polarity(question: str) -> bool:
    """Whether a question can be answered by yes or no."""
    return _ASKS.search(question) is not None


def adds_words(text: str, question: str) -> bool:
    """Whether a text has content that a question lacks: "built by Roebling" for "built by Eiffel?"."""
    added = _content(canonical_words(text)).keys() - _content(canonical_words(question)).keys()
    return not added <= set(map(_stem, NEGATIONS))


def restated_polarity(text: str, question: str) -> bool | None:
    """Whether a text restates (True) or denies (False) what a question asks, in its first two sentences."""
    text, question = _NON.sub("non", text), _NON.sub("non", question)
    asked = _content(canonical_words(question))
    if not asked or NEGATIONS.intersection(canonical_words(question)):
        return None
    predicate = _predicate(question)
    for sentence in _SENTENCE_END.split(_IDIOMS.sub("", text).strip())[:2]:
        words = [singular(word) for word in canonical_words(sentence)]
        stems = set(map(_stem, words))
        kept = asked.keys() & stems
        flipped = {stem for stem, word in asked.items() if stem not in stems and _has_opposite(word, words)}
        if len(kept) + len(flipped) < MIN_RESTATED * len(asked):
            continue
        if _DOUBTS.intersection(words) or not all(_is_said(word, words) for word in predicate):
            return None
        if _swapped_than(question, sentence):
            return None
        negations = [place for place, word in enumerate(words) if word in NEGATIONS]
        denied = len(negations)
        if any(_has_opposite(word, words[place : place + _REACH]) for place in negations for word in asked.values()):
            return None
        return None if denied + len(flipped) > 1 else not denied and not flipped
    return None


def _predicate(question: str) -> list[str]:
    """The words that a sentence must have to answer a question: what is asked of its first word.

    Names may be left out, and so may what follows a preposition: "in 2020", "to shareholders".
    """
    core: list[str] = []
    names = set()
    for piece in read_pieces(question):
        if piece.value in _PREPOSITIONS and len(core) > 1:
            break
        if piece.kind == "word" and piece.value not in _FUNCTION:
            core.append(singular(piece.value))
            if piece.raw[:1].isupper():
                names.add(core[-1])
    return [word for word in core[1:] if word not in names] or core[-1:]


def _is_said(word: str, words: Sequence[str]) -> bool:
    """Whether a sentence has a word, one of the same direction ("fell" for "declined"), or its opposite."""
    direction = DIRECTIONS.get(word)
    return any(
        _stem(other) == _stem(word) or (direction and DIRECTIONS.get(other) == direction) for other in words
    ) or _has_opposite(word, words)


def _has_opposite(word: str, words: Iterable[str]) -> bool:
    """Whether the opposite direction of a word is among others: "grew" for "declined"."""
    direction = DIRECTIONS.get(word, 0)
    return bool(direction) and any(DIRECTIONS.get(other, 0) == -direction for other in words)


def _content(words: Sequence[str]) -> dict[str, str]:
    found = (singular(word) for word in words if word not in _FUNCTION and not word.isdigit())
    return {_stem(word): word for word in found}


def _stem(word: str) -> str:
    """The beginning of a word without an ending of verbs: "cover" and "covered", "carry" and "carried"."""
    for ending, other in (("ied", "y"), ("ing", ""), ("ed", "")):
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_VERB:
            word = word[: -len(ending)] + other
            break
    return word[:_STEM].removesuffix("e") if len(word) <= _STEM else word[:_STEM]


def _swapped_than(question: str, sentence: str) -> bool:
    """Whether what is compared has changed places: "the old office is larger than the new one"."""
    asked, said = canonical_words(question), canonical_words(sentence)
    if "than" not in asked or "than" not in said:
        return False
    (left, right), (text_left, text_right) = (
        [set(words[: words.index("than")]), set(words[words.index("than") + 1 :])] for words in (asked, said)
    )
    return bool((left - right) & (text_right - text_left)) and bool((right - left) & (text_left - text_right))
