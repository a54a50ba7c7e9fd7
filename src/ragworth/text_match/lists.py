"""Find the items of a list in an answer, whatever language joins them: "red, green and blue", "甲、乙和丙".

Some words that join items are other words elsewhere: Dutch "en" is "in" in French and Spanish, Polish "i" is "in" in
Swedish. They join items only if all of these begin with a capital letter, or none does: "Jan en Piet", but not
"invierno en Madrid".
"""

from __future__ import annotations

import re
from functools import lru_cache

AND = "and|und|sowie|et|y|e|ed|og|och|oraz|és|și|şi|ve|и|і|й|та|και|및|그리고"
"""Words that join the last item of a list."""

_MAYBE_AND = re.compile(r"(?<=[^\W\d_]) (en|i|ja) (?=[^\W\d_])")

_ARTICLES = r"\b(?:el|la|los|las|le|les|un|una|une|du|del|des|il|gli)\b"
_ELSEWHERE = {
    "en": rf"[ñçœàáâãèêîíòóôùúû]|\b[dl]['’]|{_ARTICLES}"
    r"|en (?:France|Europe|Espagne|Italie|Allemagne|Angleterre|Provence|Francia|Italia|Alemania|Inglaterra)\b",
    "i": rf"[åäöæø]|{_ARTICLES}|\btutti\b|\b(?:the|if|what|how|when|all|can|should)\b| i (?:of|in|Norge|Danmark)\b"
    r"|\b(?:war|part|chapter|volume|book|act|phase|type|class|stage|section|article) i\b",
}
"""Signs that a word which may join items is another one: French or Spanish "en"; Swedish, Italian or English "i"."""
_OTHER_WORD = {word: re.compile(signs, re.IGNORECASE) for word, signs in _ELSEWHERE.items()}

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


@lru_cache(maxsize=8192)
def with_plain_joints(text: str) -> str:
    """A text with every comma of a list as ", " and every word that joins its items, if it isn't in AND, as "and"."""
    text = _COMMA.sub(", ", _JOINTS.sub(lambda found: found[1] or " and ", text))
    words = set(_MAYBE_AND.findall(text))
    if not words or any(_OTHER_WORD[word].search(text) for word in words & _OTHER_WORD.keys()):
        return text
    joined = _MAYBE_AND.sub(" and ", text)
    items = [item for item in re.split(r",\s*| and ", joined) if item]
    return joined if len({item[0].isupper() for item in items}) == 1 else text
