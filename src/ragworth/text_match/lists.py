"""Find the items of a list in an answer, whatever language joins them: "red, green and blue", "甲、乙和丙".

Some words that join items are other words elsewhere: Dutch "en" is "in" in French and Spanish, Polish "i" is "in" in
Swedish, Czech "a" is an article in English. They join items only if all of these begin with a capital letter, or none
does: "Jan en Piet", but not "invierno en Madrid". Arabic and Korean attach the "and" to a word: "والماء", "서울과".
"""

from __future__ import annotations

import re
from functools import lru_cache

AND = "and|und|sowie|et|y|e|ed|og|och|oraz|és|și|şi|ve|и|і|й|та|και|및|그리고|و"
"""Words that join the last item of a list."""

_MAYBE_AND = re.compile(r"(?<=[^\W\d_]|\.) (en|i|ja|a) (?=[^\W\d_])")

_ARTICLES = r"\b(?:el|la|los|las|le|les|un|una|une|du|del|des|il|gli)\b"
_ELSEWHERE = {
    "en": rf"[ñçœàáâãèêîíòóôùúû]|\b[dl]['’]|{_ARTICLES}"
    r"|en (?:France|Europe|Espagne|Italie|Allemagne|Angleterre|Provence|Francia|Italia|Alemania|Inglaterra)\b",
    "i": rf"[åäöæø]|{_ARTICLES}|\btutti\b|\b(?:the|if|what|how|when|all|can|should)\b| i (?:of|in|Norge|Danmark)\b"
    r"|\b(?:war|part|chapter|volume|book|act|phase|type|class|stage|section|article) i\b",
}
"""Signs that a word which may join items is another one: French or Spanish "en"; Swedish, Italian or English "i"."""
_NOT_CZECH = re.compile(
    rf"^(?!.*[ěščřžůťďňľĺŕýíĚŠČŘŽŮŤĎŇĽÝÍ])|[ñãõçàèìòùâêîöüőű]|{_ARTICLES}"
    r"|(?i:\b(?:is|was|are|were|be|the|of|as|in|by|for|to|at|on|from|with|not|just|such|what|like|once|half|only)\b)",
    re.DOTALL,
)
"""Signs that "a" doesn't join items, as in Czech and Slovak: no letter of these."""
_OTHER_WORD = {word: re.compile(signs, re.IGNORECASE) for word, signs in _ELSEWHERE.items()} | {"a": _NOT_CZECH}
_CZECH_QUESTION = re.compile(
    r"[ěřůťďňľĺŕ]|(?<![-\w])(?:jak|jaké|co|čo|kdo|kto|kde|ktoré|které|aký|ako|sú|jsou)(?![-.\w])", re.IGNORECASE
)
_CZECH_AND = re.compile(r"(?<=[^\W\d_]|\.) a (?=[^\W\d_])")

_IDEOGRAPH = "[\u30a0-\u30ff\u3400-\u9fff]"
_ITEM = f"{_IDEOGRAPH}{{2}}"
_LETTER = r"[A-Za-z\d]"
_IDEOGRAPH_AND = "以及|及び|および|和|与|與|及|跟|と|や"
_NOT_AND = (
    "共和[国國党黨制]|和平(?![壤民])|平和[条賞主憲公記維部運]|呼和浩特|[饱飽温溫缓緩柔]和|和[谐諧睦服食歌尚]"
    "|[参參][与與]|[与與][会會]|[埃普涉波遍]及|及[格时時]|高跟"
)
"""Words that have one of these characters: 共和国, 和平, 参与, 埃及."""
# Between ideographs without a comma before it, two of them on either side: 昭和天皇 and 千と千尋 are names.
_JOINTS = re.compile(
    f"({_NOT_AND})|(?:(?<={_ITEM})|(?<={_LETTER})) ?(?:{_IDEOGRAPH_AND}) ?(?={_ITEM}|{_LETTER})"
    f"|(?<=、{_IDEOGRAPH})(?:{_IDEOGRAPH_AND})(?={_IDEOGRAPH})|、"
)
_COMMA = re.compile("[，،]")

_HANGUL = "[\uac00-\ud7a3]"
_KOREAN_JOINTS = re.compile(f"(?<={_HANGUL})(?:([와과]) +(?=[\uac00-\ud7a3A-Za-z\\d])| ?[,·ㆍ] ?(?={_HANGUL}))")
_KOREAN_WORD = re.compile(rf"(?:(?<!{_HANGUL})(?:결|학|안|성|통|전|일|공|문|경|인|간)|[문년인신])과$")
"""Words that end in 과: 결과 is "result", 정신과 "psychiatry"."""
_ARABIC_LETTER = "[\u0621-\u064a]"
# Words that begin with و, which is no "and" there: ministry, Washington, state, father.
_ARABIC_WORDS = (
    "ز[اي]ر|ك[اي]ل|سط|اشنطن|ادي|لاي|حد|حيد|لي[دا]|يلي|ارسو|هران|رق|قت|طن|الد|صل|ثائق|سائل|جه|جود|فا|ضع|عي|لد|لي|ات"
)
_ARABIC_JOINT = re.compile(f"(?<={_ARABIC_LETTER}|[،,]) و(?={_ARABIC_LETTER}{{3}})(?!{_ARABIC_WORDS})")


@lru_cache(maxsize=8192)
def with_plain_joints(text: str) -> str:
    """A text with every comma of a list as ", " and every word that joins its items, if it isn't in AND, as "and"."""
    text = _ARABIC_JOINT.sub(" and ", _KOREAN_JOINTS.sub(_korean_joint, text))
    text = _COMMA.sub(", ", _JOINTS.sub(lambda found: found[1] or " and ", text))
    words = set(_MAYBE_AND.findall(text))
    if not words or any(_OTHER_WORD[word].search(text) for word in words & _OTHER_WORD.keys()):
        return text
    joined = _MAYBE_AND.sub(" and ", text)
    items = [item for item in re.split(r",\s*| and ", joined) if item]
    return joined if len({item[0].isupper() for item in items}) == 1 else text


def has_attached_joint(text: str) -> bool:
    """Whether the items of a list are joined by letters of their words."""
    return any(joint.search(text) for joint in (_KOREAN_JOINTS, _ARABIC_JOINT))


def may_be_czech_list(text: str, question: str) -> bool:
    """Whether an "a" joins items because the question is Czech or Slovak."""
    return _CZECH_AND.search(text) is not None and _CZECH_QUESTION.search(question) is not None


def _korean_joint(found: re.Match[str]) -> str:
    """ " and " for a comma, or for a particle: 과 after a final consonant, 와 after a vowel; 사과 is an apple."""
    if found[1] is None:
        return " and "
    closed = (ord(found.string[found.start() - 1]) - 0xAC00) % 28 != 0
    joins = closed == (found[1] == "과") and not _KOREAN_WORD.search(found.string, 0, found.start() + 1)
    return " and " if joins else found.group()
