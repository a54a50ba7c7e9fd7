"""Find where a text gives the other end of what a question asks for: "the war ended in 1939" for when it started."""

from __future__ import annotations

import re

from ragworth.text_match.clauses import clauses_with
from ragworth.text_match.spelling import fold_accents
from ragworth.text_match.text_facts import QuestionFacts, TextFacts

_BEGINS_TEXT = """
start starts started starting begin begins began begun beginning commence commences commenced open opens opened
opening launch launched founded established inaugurated born birth onset beginnt begann beginn anfang gestartet
startet eroffnet offnet geboren commence debute debut ouvre ouvert ouverture naissance nee nacio comienza comenzo
empieza empezo inicio inicia abre abrio nace inizia inizio nato nata apre comeca comecou nasceu abriu begint begon
geopend rozpoczal rozpoczela zaczal zaczela urodzil urodzila depart departs departed departure checkin
"""
_ENDS_TEXT = """
end ends ended ending finish finishes finished close closes closed closing closure expire expires expired expiry
conclude concludes concluded conclusion terminate terminates terminated termination complete completed completion
dissolved die dies died death endet endete ende geendet schliesst geschlossen gestorben starb fin finit termine ferme
fermeture mort morte decede decedee termina termino finaliza cierra cerro murio finisce fine chiude morto morta
terminou fecha morreu eindigt eindigde einde sluit gesloten overleden stierf zakonczyl zakonczyla skonczyl zmarl
zmarla arrive arrives arrived arrival checkout
"""
_SIDES = dict.fromkeys(_BEGINS_TEXT.split(), 1) | dict.fromkeys(_ENDS_TEXT.split(), -1)
_WORD = re.compile(r"[^\W\d_]+")
_CHECK = re.compile(r"\bcheck[ -](in|out)\b")
_IS_OPEN = re.compile(r"(?i)\b(?:is|are|was|were)\b.*\b(?:open|closed)\b")
_TO = r"\s?(?:[-–—]|to|until|till|through|bis|à|al?|hasta|tot|do)\s?"
_TIME = r"[\w:.,]{1,9}(?:\s[\w.,]{1,9}){0,3}?"


def gives_asked_end(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> bool:
    """Whether an answer is that end of a span which the question asks for: "(1547–1616)" for a birth in 1547."""
    asked = _side(question.raw)
    return bool(asked) and _span_side(text.raw, wanted.raw) == asked


def gives_other_end(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> bool:
    """Whether each clause with the answer, a date or number, is about the other end than the question asks for."""
    asked = _side(question.raw)
    if not asked or not wanted.quantities or _side(wanted.raw) or _IS_OPEN.search(question.raw):
        return False
    sides = [_span_side(clause.raw, wanted.raw) or _side(clause.raw) for clause in clauses_with(text, wanted)]
    return bool(sides) and all(side == -asked for side in sides)


def _side(text: str) -> int:
    """1 if a text is only about a beginning, −1 if only about an end, otherwise 0."""
    words = _WORD.findall(_CHECK.sub(r"check\1", fold_accents(text).lower()))
    sides = {_SIDES[word] for word in words if word in _SIDES}
    return sides.pop() if len(sides) == 1 else 0


def _span_side(clause: str, answer: str) -> int:
    """1 if an answer is the first of two ends of a span, "from 8 am to 10 am", −1 if the last one."""
    value = re.escape(answer.strip())
    if re.search(rf"(?i)\bfrom\s+{value}{_TO}{_TIME}|(?<=\(){value}\s?[–-]\s?\d", clause):
        return 1
    if re.search(rf"(?i)\bfrom\s+{_TIME}{_TO}{value}|\(\d{{3,4}}\s?[–-]\s?{value}(?=\))", clause):
        return -1
    return 0
