"""Remove from an answer what isn't part of what it says: Markdown, tags, LaTeX, JSON around it, citations, reasoning.

"The capital is not **Paris**" denies Paris, ``{"answer": "Paris"}`` says Paris, and what stands in
``<think>…</think>`` was only considered.
"""

from __future__ import annotations

import json
import re

from ragworth.text_match.sentences import CITATION

MAX_TEXT = 10_000
"""Characters of an answer that are read. More would take longer than any answer is worth."""

_REASONING = "think|thinking|thought|reasoning|scratchpad|analysis|reflection"
_REASONED = re.compile(rf"(?is)^.*</(?:{_REASONING})>")
"""All up to the end of the reasoning; the template of a prompt may have written its beginning."""
_UNFINISHED = re.compile(rf"(?i)<(?:{_REASONING})>")
_TAGGED = re.compile(r"(?is)<(answer|final_answer|response)>(.*?)(?:</\1>|$)")
_FENCE = re.compile(r"(?s)^```\w*\n(.*?)\n?```$")
_ANSWER_KEYS = ("final_answer", "answer", "response")
_RUNS = re.compile(r"\s{4,}|(\w)\1{39,}")
"""Blanks, or one letter or digit again and again: some models write thousands of them."""

# "2*3*4" and "2**3**4" are no emphasis; "首都是**巴黎**。" is.
_STRONG = re.compile(r"(?<![*\d)])(\*{2,3})(?=[^\s*])([^*\n]*[^\s*]|[^\s*])\1(?!\*)")
_EMPHASIS = re.compile(r"(?<![*\w)])(\*)(?=[^\s*])([^*\n]*[^\s*]|[^\s*])\1(?![*\w])")
_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")
_STRUCK = re.compile(r"~~[^~\n]+~~|(?is:<(s|del|strike)>.{0,300}?</\1>)")
_BREAK = re.compile(r"(?i)</?(?:p|div|ul|ol|li|h[1-6]|br)(?:\s[^<>]*)?/?>")
_TAG = re.compile(r"(?i)</?(?:b|i|u|em|strong|span|code|mark|small|sub)(?:\s[^<>]*)?>")
_NAMED = re.compile(r"\\(?:boxed|text\w*|math\w*)\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_MATHS = re.compile(
    r"\\[()\[\]]|\$\$|(?<![\\$\w])\$(?=[^\s$][^$\n]{0,200}[\\^_=][^$\n]{0,200}\$)|(?<=[\w})])\$(?![\w$])"
)

_SOURCE = (
    r"[(【]\s*(?:\d{1,4}[†:]|(?:sources?|see|passages?|documents?|docs?|refs?|references?|pages?|pp?)\b)"
    r"[^()【】\n]{0,80}[)】]"
)
"""A source in brackets, ``(source: doc 3)`` or ``【3†source】``."""
_MARKS = re.compile(rf"(?:(?<!\s)\s+)?(?:{CITATION}|\[\^\d{{1,4}}\]|{_SOURCE})", re.IGNORECASE)
_FOOTNOTE = re.compile(r"(?<=[^\W\d_]{3})(?:\d{1,2}|[¹²³⁴-⁹]{1,2})(?!\w)")
"""The number of a footnote behind a word: "It was Paris1."."""
_ITEM = re.compile(r"^[ \t]*(\d{1,2})[.)][ \t]+", re.MULTILINE)


def unwrapped(text: str) -> str | None:
    """Return what a text answers, without reasoning, tags and JSON around it; None if it has only reasoning.

    The rest of a text of more than `MAX_TEXT` characters is left out.
    """
    said = _REASONED.sub("", text).strip()
    if not said or _UNFINISHED.match(said):
        return None
    tagged = [match[2].strip() for match in _TAGGED.finditer(said) if match[2].strip()]
    said = tagged[-1] if tagged else said
    return _RUNS.sub(_shortened, _json_answer(said) or said)[:MAX_TEXT]


def _shortened(run: re.Match[str]) -> str:
    return run[1] * 40 if run[1] else "\n\n" if "\n" in run.group() else "  "


def _json_answer(text: str) -> str:
    """The answer in a JSON object that is the whole text; empty if there is none."""
    fenced = _FENCE.match(text)
    bare = fenced[1].strip() if fenced else text
    if not (bare.startswith("{") and bare.endswith("}")):
        return ""
    try:
        fields = {key.casefold().replace(" ", "_"): value for key, value in json.loads(bare).items()}
    except (ValueError, RecursionError):
        return ""
    value = next((fields[key] for key in _ANSWER_KEYS if key in fields), "")
    values = value if isinstance(value, list) else [value]
    return ", ".join(each if isinstance(each, str) else json.dumps(each) for each in values).strip()


def without_markup(text: str) -> str:
    """Remove emphasis, code marks, tags and LaTeX; what is struck through is left out."""
    if "\\" in text:
        for _ in range(3):  # one in the other: \boxed{\frac{2}{3}}
            text = _NAMED.sub(r"\1", _FRACTION.sub(r"\1/\2", text))
        text = re.sub(r"\\([%$&#_])", r"\1", _MATHS.sub("", text))
    if "<" in text or "~" in text:
        text = _TAG.sub("", _BREAK.sub("\n", _STRUCK.sub("", text)))
    for marks in (_STRONG, _EMPHASIS, _CODE):
        text = marks.sub(r"\2", text)
    return text.replace("&nbsp;", " ").replace("&amp;", "&").strip()


def without_marks(text: str, *, footnotes: bool = False) -> str:
    """Remove numbers that are no part of what a text says: citations, sources in brackets, numbers of a list.

    ``footnotes`` removes those behind words as well, also from a name such as "Windows10".
    """
    said = _MARKS.sub("", text)
    said = _FOOTNOTE.sub("", said) if footnotes else said
    items = [int(number) for number in _ITEM.findall(said)]
    if len(items) > 1 and items == list(range(1, len(items) + 1)):
        said = _ITEM.sub("", said)
    return said.strip()
