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

_MAYBE_AND = re.compile(r"(?<=[^\W\d_]) (?:en|i|ja) (?!(?:of|in|the)\b)(?=[^\W\d_])")
"""Not in "Henry i of England"."""

_ROMANCE = re.compile(r"\b(?:el|la|los|las|le|les|un|una|une|du|del|des|il|gli)\b", re.IGNORECASE)
"""Articles of languages in which "en" or "i" joins nothing."""

_IDEOGRAPH = "[\u30a0-\u30ff\u3400-\u9fff]"
_ITEM = f"{_IDEOGRAPH}{{2}}"
_IDEOGRAPH_AND = "以及|及び|および|和|与|與|及|跟|と|や"
# Without a comma before it, two characters on either side: 昭和天皇 and 千と千尋 are names.
_JOINTS = re.compile(
    f"(?<={_ITEM})(?:{_IDEOGRAPH_AND})(?={_ITEM})|(?<=、{_IDEOGRAPH})(?:{_IDEOGRAPH_AND})(?={_IDEOGRAPH})|、"
)
_COMMA = re.compile("[，،]")


@lru_cache(maxsize=8192)
def with_plain_joints(text: str) -> str:
    """A text with every comma of a list as ", " and every word that joins its items, if it isn't in AND, as "and"."""
    text = _COMMA.sub(", ", _JOINTS.sub(" and ", text))
    joined = _MAYBE_AND.sub(" and ", text)
    if joined == text or _ROMANCE.search(text):
        return text
    items = [item for item in re.split(r",\s*| and ", joined) if item]
    return joined if len({item[0].isupper() for item in items}) == 1 else text
