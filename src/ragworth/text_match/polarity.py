"""Negations, rises and falls; and whether a text says yes or no: by its first word, or by restating what was asked.

Restating and denying are read in English only. In other languages a text says yes or no with a word for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragworth.text_match.normalise import TextPiece, canonical_words, read_pieces, singular

_NEGATION_WORDS = """
not no never none neither nor without cannot cant dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont
wouldnt couldnt shouldnt unable fail failed failing lack lacked lacking
nicht kein keine keinen pas non niet geen não nunca nie не нет 不 没 非
"""
NEGATIONS = frozenset(_NEGATION_WORDS.split())
"""Words that deny what follows, as the tokens of texts are written: without apostrophes."""

_UP_WORDS = """
rise rose risen rising raise raised increase increased increasing grow grew grown growing growth gain gained climb
climbed jump jumped surge surged expand expanded improve improved improving improvement up higher profit upward
"""
_DOWN_WORDS = """
fall fell fallen falling decrease decreased decreasing decline declined declining drop dropped dropping shrink shrank
shrunk lose lost loss deficit reduce reduced reduction contract contracted down lower dip dipped slip slipped plunge
plunged negative minus worsen worsened deteriorate deteriorated downward
"""
DIRECTIONS = dict.fromkeys(_UP_WORDS.split(), 1) | dict.fromkeys(_DOWN_WORDS.split(), -1)
"""1 for words that go up, −1 for words that go down."""

BEFORE, AFTER = 4, 2
"""How many words before an answer, and after it, a negation denies it: "not in the city of Paris", "Paris is not"."""

_CLAUSE_ENDS = frozenset((*",;:.!?\n–—()，、；：。！？", "but"))


def is_denied(tokens: Sequence[str], answer: frozenset[str]) -> bool:
    """Return whether a negation is near the words of an answer, in the first of the clauses that have most of them.

    ``tokens`` are the words and marks of a text; ``answer`` are the answer's words. Marks and "but" end a clause.
    """
    clause = max(_clauses(tokens), key=lambda clause: len(answer.intersection(clause)))
    negations = [place for place, token in enumerate(clause) if token in NEGATIONS]
    places = [place for place, token in enumerate(clause) if token in answer]
    return any(-AFTER <= place - negation <= BEFORE for place in places for negation in negations)


def _clauses(tokens: Sequence[str]) -> Iterator[list[str]]:
    clause: list[str] = []
    for token in tokens:
        if token in _CLAUSE_ENDS:
            yield clause
            clause = []
        else:
            clause.append(token)
    yield clause


_YES = "yes|yeah|yep|ja|oui|sí|si|sì|sim|da|да|tak|evet|نعم|हाँ|हां|はい|是的|是|네|예"
_NO = "no|nope|nein|non|não|nao|nee|нет|nie|hayır|لا|नहीं|いいえ|不是|否|아니요|아니오"
_SURE = "absolutely|certainly|definitely|indeed|correct|of course|true|that is correct|that's correct"
_DENIAL = (
    "not really|not at all|not yet|absolutely not|certainly not|definitely not|of course not|false|incorrect|never"
)
# What may follow the word: the end, a mark, or a new clause. "No doubt" and "no sales" don't say no.
_STOP = r"(?=\s*(?:$|[^\w\s'’])|\s+(?:it|they|he|she|there|this|that|we|i|the)\b)"
_LEAD = r"^\W*(?:(?:the |my |final |short )*answer(?: is)?\W+)?"
_LEADS_YES = re.compile(rf"(?i){_LEAD}(?:(?:{_YES}){_STOP}|(?:{_SURE})(?!\s+not)\b)")
_LEADS_NO = re.compile(rf"(?i){_LEAD}(?:(?:{_NO}){_STOP}|(?:{_DENIAL})\b)")
# Or the whole answer ends with it: "I think the answer is: yes", "Sales fell, so yes."
_ENDS = r"(?i)(?:\b(?:so|is)\W|[.!?\n])\W{0,9}"
_ENDS_YES, _ENDS_NO = (re.compile(rf"{_ENDS}(?:{words})\W*$") for words in ("yes|true", "no|false"))
_ASKS = re.compile(
    r"(?i)(?:^|[.,;:!?]\s+)(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might|must)\b"
)
_SENTENCE_END = re.compile(r"(?<=[.!?;:\n])\s+")
MIN_RESTATED = 0.5
"""Share of the question's words that a sentence must repeat to restate or deny it."""
_FUNCTION_WORDS = """
a an the is are was were be been being do does did done has have had can could will would should may might must of in
on at by to for and or with from as it its he she they them his her their there this that these those ever any still
yet also than which who what when where how if so then i we you our your but not no
"""
_FUNCTION = frozenset(_FUNCTION_WORDS.split())
_PREPOSITIONS = frozenset(("in", "on", "at", "by", "to", "for", "of", "from", "during", "as", "with", "since", "than"))
_DOUBTS = frozenset(
    ("hardly", "barely", "only", "except", "partly", "partially", "sometimes", "whether", "unless", "may", "than")
)


class StatedPolarity(NamedTuple):
    """A yes or no at the start of an accepted answer, and what follows it."""

    positive: bool
    rest: str


def read_polarity(answer: str) -> StatedPolarity | None:
    """Read the yes or no (true or false) that an accepted answer begins with; None if it has none."""
    for positive, words in ((True, f"{_YES}|true"), (False, f"{_NO}|false")):
        match = re.match(rf"(?i)\W*(?:{words}){_STOP}\W*", answer)
        if match:
            return StatedPolarity(positive, answer[match.end() :])
    return None


def asks_polarity(question: str) -> bool:
    """Return whether a question can be answered by yes or no."""
    return _ASKS.search(question) is not None


def text_polarity(text: str, question: str, statement: str) -> bool | None:
    """Return whether a text says yes or no to a question, or else to a statement; None if that isn't clear."""
    leads = [positive for positive, pattern in ((True, _LEADS_YES), (False, _LEADS_NO)) if pattern.match(text)]
    leads += [positive for positive, pattern in ((True, _ENDS_YES), (False, _ENDS_NO)) if pattern.search(text)]
    asked = (question if asks_polarity(question) else "") if question else statement
    restated = _restated_polarity(text, asked)
    answers = {*leads, restated} - {None}
    return answers.pop() if len(answers) == 1 else None


def _restated_polarity(text: str, question: str) -> bool | None:
    """Return whether a text restates (True) or denies (False) what a question asks, in its first two sentences."""
    asked = {_stem(word) for word in canonical_words(question) if word not in _FUNCTION and not word.isdigit()}
    if not asked or NEGATIONS.intersection(canonical_words(question)):
        return None
    for sentence in _SENTENCE_END.split(text.strip())[:2]:
        words = canonical_words(sentence)
        stems = set(map(_stem, words))
        if len(asked & stems) < MIN_RESTATED * len(asked):
            continue
        denials = sum(word in NEGATIONS for word in words)
        directions = {DIRECTIONS[word] for word in words if word in DIRECTIONS}
        clear = denials < 2 and len(directions) < 2 and _DOUBTS.isdisjoint(words) and _predicate(question) <= stems
        return not denials if clear else None
    return None


def _predicate(question: str) -> set[str]:
    """The words that a sentence must have to answer a question: what is asked of its first word.

    Names may be left out, and so may what follows a preposition: "in 2020", "to shareholders".
    """
    core: list[TextPiece] = []
    for piece in read_pieces(question):
        if piece.value in _PREPOSITIONS and len(core) > 1:
            break
        if piece.kind == "word" and piece.value not in _FUNCTION:
            core.append(piece)
    said = [piece for piece in core[1:] if not piece.raw[:1].isupper()] or core[-1:]
    return {_stem(piece.value) for piece in said}


def _stem(word: str) -> str:
    """The beginning of a word without an ending of verbs: "cover" and "covered", "carry" and "carried"."""
    word = singular(word)
    for ending, other in (("ied", "y"), ("ing", ""), ("ed", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + other
            break
    return word[:6].removesuffix("e")
