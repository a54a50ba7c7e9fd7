"""Find whether a text denies an answer that it names, or names it only to compare: "it was not Paris"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragworth.text_match.languages import identify_language
from ragworth.text_match.matching import spellings

DENIAL_REACH = 50
"""Characters before an answer in which a word that denies it may stand."""

_STEM = 6
_WORD_INSIDE = re.compile(r"[A-Za-z]{2}|\d{2}")
_LINK = r"(?:a |an |the |in |on |by |from |after )?[\"'“‘«„(_*]{0,2}$"
_DENIES = re.compile(
    rf"(?:\b(?:not|never|neither|nor|rather than|instead of|unlike)|\w+n['’]t)\s+(?:\w+\s+){{0,2}}?{_LINK}"
    r"|\b(?:without(?: any)?|non|ohne|zonder|sans|sem|senza|bez)[ -]$|[非未無无不]$"
)
_NO = re.compile(r"\bno[ -]$")
_SETS_APART = re.compile(
    r"\b(?:except(?: for| in)?|excluding|other than|apart from|aside from|but not|used to be|formerly|previously|"
    r"no longer|followed (?:closely )?by|preced(?:es?|ed|ing)|succeed(?:s|ed|ing)?(?! by)|replac(?:es?|ed|ing)(?! by)|"
    r"(?:successor|predecessor) (?:of|to)|(?:different|distinct) from|confused with|mistaken for|"
    r"(?:up|down|rose|fell|raised|reduced|lowered|changed|switched|rising|falling|increased|decreased)"
    r"(?: [^.;]{0,30})? from|"
    r"(?:although|though|even if|while|whereas) [^.;]{0,30}\b(?:claim|say|think|believe|argue|suggest)s?(?: that)?"
    r"(?: it(?: is| was|['’]s))?|"
    r"(?:former|previous|old|outgoing)(?: \w+){1,3} (?:was|were|is)|"
    r"(?:all|any\w*|every\w*|none|nobody|nothing|no one)(?: [^.;]{0,20})? but|compared (?:with|to)|versus|vs\.?)\s+"
    rf"(?:about |approximately |around |roughly )?{_LINK}"
    r"|\b(?:day|night|week|month|year)s? (after|before) (?:the )?$|\b(half|twice|double|triple) (?:of )?(?:the )?$"
)
_THOUGHT = re.compile(
    r"\b(?:think|thinks|thought|believed?s?|assumed?s?|suspect(?:ed|s)?|guess(?:ed)?|expect(?:ed|s)?|blamed(?: on)?|"
    r"would have said|might think|initially|originally|at first|formerly|claim(?:ed|s)?|rumou?red)\b[^.;!?]{0,40}$"
)
_BUT_THEN = re.compile(
    r"[^.;!?]{0,40}[,.;:—–-]\s*(?:but|however|yet|actually|in fact|in reality|although)\b[^.;!?]{0,60}"
    r"\b(?:actually|really|in fact|in reality|real|actual|true|correct|turned out|"
    r"clearly|states|says|later|now|wrong|incorrect|mistaken)\b"
    r"|[^.;!?]{0,40}[,.;:—–-]\s*(?:actually|in fact|in reality)\b"
)
_RELATIVES = (
    "friend|sister|brother|son|daughter|wife|husband|father|mother|cousin|colleague|student|pupil|rival|competitor|"
    "north|south|east|west|neighbou?r|subsidiary|division|supplier|partner|suburb|assistant|deputy"
)
_RELATED = re.compile(rf"\b(?:{_RELATIVES})s? (?:of|to) (?:the )?$")
_ASKS_RELATED = re.compile(
    rf"\b(?:{_RELATIVES}|parent|owner|teacher|taught|mentor|tutor|studied|whose|where|relat\w+|famil\w+)s?\b|\bown"
)
_MOVED = re.compile(r"\b(?:moved|relocated|transferred|renamed|switched|changed|migrated) (?:\w+ ){0,2}from (?:the )?$")
_MOVED_TO = re.compile(r"[^.;]{0,20}\bto\b")
_ENDED = re.compile(
    r"[^.;!?]{0,20}\b(?:until|till|up to|before|prior to)\s+(?:\w+\s+){0,2}\d{4}\b[^.!?]{0,20}"
    r"[,.;]\s*(?:but |and )?(?:it |since |then |this |that )?(?:\w+\s+){0,3}?(?:now|currently|today|nowadays)\b"
)
_TAKES_BACK = re.compile(
    r"(?i)[.!?…;,—–-]\s*(?:no,? wait|wait,? no|sorry,? i mean|i mean|make that|or rather|strike that)\b|"
    r"(?:…|\.\.\.|—|–)\s*no,\s|"
    r"[.!?…;—–-]\s*(?:(?:oh|oops|hm+|well|no|wait|sorry|apologies)\b[,.!]?\s+){0,2}"
    r"(?:correction\b|i meant?\b|scratch that\b|on second thought|let me correct|my mistake|"
    r"actually,? (?:no\b|correction\b|it(?:['’]s| is| was)\b)|wait,? (?:no\b|it\b)|"
    r"correctie\b|korrektur\b|sprostowanie\b|correção\b|corrección\b|rectification\b|correzione\b)"
    r"|訂正"
)
_INITIAL = re.compile(r"\b(?:first|initial|original|former|previous|early|earlier|used to)")
_ASKS_ORIGIN = re.compile(r"\b(?:from|before|first|original\w*|former\w*|previous\w*)\b")
_FORMER = re.compile(r"\b(?:was|were|did|until|before|former|previous|original|used to)\b")
_ASKED = re.compile(r"(?i)[^.;!?]*\?\s*no\b")
_OFFERS = (
    r"(?i)\b(?:either|could be|may be|might be|possibly|perhaps|maybe)\s+"
    r"(?:(?:a|an|the|in|on|at|by|from|to|for|with)\s+){0,2}"
)
_OFFERS_FIRST = re.compile(rf"{_OFFERS}(?:[^.;!?]{{1,40}},\s+)?$")
_OFFERS_LAST = re.compile(rf"{_OFFERS}[^.;!?]{{1,40}}\bor\s+(?:\w+\s+){{0,2}}$")
_OR_AFTER = re.compile(r"(?i),? or\b|,[^.;!?]{1,60}\bor\b")
_ONLY = re.compile(
    r"\bnot\s+(?:only|just|merely|until|unlike|least)\b|\b(?:nicht (?:nur|allein|zuletzt)|pas seulement|no s[oó]lo|"
    r"no solamente|non solo|não (?:só|apenas)|niet alleen|не только|nie tylko)\b"
)
# The same in other languages, where the word that denies stands before the answer, or after it. Words that are also
# parts of names or English ("Pas de Calais", "non profit") stand right before it, or after a verb.
_DENIES_ELSEWHERE = re.compile(
    r"(?:\b(?:nicht|keine?\w?|niemals|anstatt|no (?:es|era|fue|son|eran|fueron|está|estaba|en)|não|niet|geen|не|"
    r"ليس|ليست|ليسوا)\s+(?:\w+\s+){0,2}?"
    r"|\b(?:n['’]|ne )[^.,;]{1,20}\b(?:pas|jamais)\s+(?:(?:à|au|en|de|du|des|le|la|les|un|une)\s+|l['’])?"
    r"|(?:\best |\bétait |\bet |\bmais |[,;] |^)(?:pas|jamais)\s+(?:(?:à|au|en|le|la|les|un|une)\s+|l['’])?"
    r"|(?:\bnon (?:è|era|fu|sono|erano|si chiama(?:va)?|si trova)|(?:\be |\bma |[,;] |^)non)\s+"
    r"(?:(?:a|in|il|la|un|una)\s+)?"
    r"|\b(?:nie|nunca)\s+(?:(?:jest|był|była|było|to|w|en|em|foi|fue)\s+)?"
    r"|(?:不是|并非|並非|而非|不在|不叫)\s*)$"
)
_DENIED_AFTER_ELSEWHERE = re.compile(
    r"\s*(?:(?:では|じゃ|で)(?:ない|ありません|なく|なかった|ございません)|[이가은는]?\s*(?:아니|아닙|아닌)|değil|नहीं)"
)
_DENIED_AFTER = re.compile(
    r"-(?:free|exempt|less)\b|\s*,?\s*(?:is|was|are|were|has|have|had|did|does|do|can|could|will|would)"
    r"(?:n['’]t|\s+(?:not|never|no longer))\b(?!\s+(?:only|just|merely))"
    r"|[\"'”’»_*)]{0,2}\s*(?:is|was|would be|seems)\s+(?:\w+\s+)?"
    r"(?:incorrect|wrong|false|mistaken|a misconception|a myth)\b"
)


def is_denied(text: str, answer: str, question: str) -> bool:
    """Whether a text denies an answer in every place where it stands verbatim."""
    said, asked, places = text.lower(), question.lower(), list(answer_places(text, answer))
    return bool(places) and all(_denied_at(said, start, end, asked) for start, end in places)


def is_set_apart(text: str, answer: str, question: str) -> bool:
    """Whether an answer stands only as an exception, as what was, or as what is compared with."""
    said, asked = text.lower(), question.lower()
    places = list(answer_places(text, answer))
    return bool(places) and all(_set_apart_at(said, start, end, asked) for start, end in places)


def _set_apart_at(said: str, start: int, end: int, asked: str) -> bool:
    before = said[max(0, start - DENIAL_REACH) : start]
    found = _SETS_APART.search(before)
    if found is None and _BUT_THEN.match(said, end) and not _INITIAL.search(asked):
        found = _THOUGHT.search(before)
    if _RELATED.search(before) and not _ASKS_RELATED.search(asked):
        return True
    if _MOVED.search(before) and _MOVED_TO.match(said, end) and not _ASKS_ORIGIN.search(asked):
        return True
    if found is None:
        return _ENDED.match(said, end) is not None and not _FORMER.search(asked)
    # A question for the exception or the former state is answered by it.
    return found[found.lastindex or 0][:_STEM] not in asked


def is_taken_back(text: str, answer: str) -> bool:
    """Whether a correction follows the last place of an answer: "Paris. Correction: it is Lyon."."""
    ends = [end for _, end in answer_places(text, answer)]
    return bool(ends) and bool(_TAKES_BACK.search(text, ends[-1]) or _ASKED.match(text, ends[-1]))


def is_offered(text: str, answer: str) -> bool:
    """Whether an answer is only one of several in every place: "either Paris or Lyon"."""
    places = list(answer_places(text, answer))
    return bool(places) and all(_offered_at(text, start, end) for start, end in places)


def _offered_at(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - DENIAL_REACH) : start]
    first = _OFFERS_FIRST.search(before) is not None and _OR_AFTER.match(text, end) is not None
    return first or _OFFERS_LAST.search(before) is not None


def answer_places(text: str, answer: str) -> Iterator[tuple[int, int]]:
    """Where an answer stands verbatim, or else its forms: whole words, if it is anywhere one."""
    for form in (answer, *spellings(answer)):
        places = list(_occurrences(text.lower(), form.strip().strip(".").lower()))
        whole = [(start, end) for start, end in places if not _within_word(text, start, end)]
        if places:
            yield from whole or places
            return


def _occurrences(said: str, wanted: str) -> Iterator[tuple[int, int]]:
    place = said.find(wanted) if wanted else -1
    while place >= 0:
        yield place, place + len(wanted)
        place = said.find(wanted, place + 1)


def _within_word(text: str, start: int, end: int) -> bool:
    return bool(_WORD_INSIDE.match(text[max(0, start - 1) : start + 1])) or bool(
        _WORD_INSIDE.match(text[end - 1 : end + 1])
    )


def _denied_at(said: str, start: int, end: int, asked: str) -> bool:
    before = said[max(0, start - DENIAL_REACH) : start]
    if _DENIED_AFTER.match(said, end) or _DENIED_AFTER_ELSEWHERE.match(said, end):
        return True
    if _NO.search(before) and not said[start].isdigit():  # "no 5" is number 5
        return identify_language(f"{asked} {said}") != "Portuguese"  # there, "no" is "in the"
    denied = _DENIES.search(before) or _DENIES_ELSEWHERE.search(before)
    return denied is not None and _ONLY.search(before) is None
