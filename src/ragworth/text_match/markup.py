"""Remove from an answer what isn't part of what it says: Markdown, tags, LaTeX, JSON around it, and its reasoning.

"The capital is not **Paris**" denies Paris, ``{"answer": "Paris"}`` says Paris, and what stands in
``<think>…</think>`` was only considered.
"""

from __future__ import annotations

import json
import re

_REASONING = "think|thinking|thought|reasoning|scratchpad|analysis|reflection"
_REASONED = re.compile(rf"(?is)^.*</(?:{_REASONING})>")
"""All up to the end of the reasoning; the template of a prompt may have written its beginning."""
_UNFINISHED = re.compile(rf"(?i)<(?:{_REASONING})>")
_TAGGED = re.compile(r"(?is)<(answer|final_answer|response)>(.*?)(?:</\1>|$)")
_FENCE = re.compile(r"(?s)^```\w*\n(.*?)\n?```$")
_ANSWER_KEYS = ("final_answer", "finalanswer", "answer", "antwort", "respuesta", "risposta", "reponse", "response")

# "2*3*4" and "2**3**4" are no emphasis; "首都是**巴黎**。" is.
_STRONG = re.compile(r"(?<![*\d)])(\*{2,3})(?=[^\s*])([^*\n]*[^\s*]|[^\s*])\1(?!\*)")
_EMPHASIS = re.compile(r"(?<![*\w)])(\*)(?=[^\s*])([^*\n]*[^\s*]|[^\s*])\1(?![*\w])")
_STRUCK = re.compile(r"~~[^~\n]+~~")
_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")
_TAG = re.compile(r"(?i)</?(?:b|i|u|em|strong|p|span|div|code|mark|small|sub|ul|ol|li|h[1-6])(?:\s[^<>]*)?>|<br\s*/?>")
_STRUCK_TAG = re.compile(r"(?is)<(s|del|strike)>.{0,300}?</\1>")
_ENTITIES = {"&nbsp;": " ", "&amp;": "&", "&deg;": "°", "&euro;": "€", "&pound;": "£", "&quot;": '"', "&#39;": "'"}
_ENTITY = re.compile("|".join(map(re.escape, _ENTITIES)))

_MATHS = re.compile(r"(?<![\\$\w])\$(?=[^\s$])((?:\\.|[^$\\\n]){0,200}?)(?<=[^\s\\])\$(?![\d$])")
_DISPLAYED = re.compile(r"(?s)\\\((.{1,300}?)\\\)|\\\[(.{1,300}?)\\\]|\$\$(.{1,300}?)\$\$")
_LATEX = re.compile(r"[\\^_=]")
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_NAMED = re.compile(r"\\(?:boxed|fbox|text\w*|mathrm|mathbf|mathit|mathsf|operatorname)\s*\{([^{}]*)\}")
_DEGREE = re.compile(r"(?:(?<!\s)\s+)?\^\s*(?:\{\s*\\circ\s*\}|\\circ)")
_SYMBOLS = {"times": "×", "cdot": "·", "degree": "°", "approx": "≈", "pm": "±", "mu": "μ", "leq": "≤", "geq": "≥"}
_SYMBOL = re.compile(rf"\\({'|'.join(_SYMBOLS)})(?![A-Za-z])")
_SPACE = re.compile(r"\\[,;:! ]|(?<=\w)~(?=\w)")
_THOUSANDS = re.compile(r"(?<=\d)\{,\}(?=\d{3})")
_INDEX = re.compile(r"_(?:\{([^{}]*)\}|(\w))")


_RUNS = re.compile(r"\s{4,}|(\w)\1{39,}")
"""Blanks, or one letter or digit again and again: some models write thousands of them."""

MAX_TEXT = 10_000
"""Characters of an answer that are read. More would take longer than any answer is worth."""


def unwrapped(text: str) -> str | None:
    """What a text answers, without reasoning, tags of the answer and JSON around it; None if it has only reasoning.

    The rest of a text of more than `MAX_TEXT` characters is left out.
    """
    said = _REASONED.sub("", text).strip()
    if not said or _UNFINISHED.match(said):
        return None
    tagged = [found[2].strip() for found in _TAGGED.finditer(said) if found[2].strip()]
    said = tagged[-1] if tagged else said
    return _RUNS.sub(_shortened, _json_answer(said) or said)[:MAX_TEXT]


def _shortened(run: re.Match[str]) -> str:
    return run[1] * 40 if run[1] else "\n\n" if "\n" in run.group() else "  "


def _json_answer(text: str) -> str:
    """The answer in a JSON object that is the whole text; empty if there is none."""
    bare = text.strip()
    fenced = _FENCE.match(bare)
    bare = fenced[1].strip() if fenced else bare
    if not (bare.startswith("{") and bare.endswith("}")):
        return ""
    try:
        fields = json.loads(bare)
    except (ValueError, RecursionError):
        return ""
    named = {str(key).casefold().replace(" ", "_"): value for key, value in fields.items()}
    key = next((key for key in _ANSWER_KEYS if key in named), None)
    try:
        return _as_text(named[key]) if key is not None else ""
    except RecursionError:
        return ""


def _as_text(value: object) -> str:
    if isinstance(value, str | list) and not value:
        return "null"
    if isinstance(value, list):
        return ", ".join(map(_as_text, value))
    return value.strip() if isinstance(value, str) else "" if isinstance(value, dict) else json.dumps(value)


def names_markup(answer: str) -> bool:
    """Whether an answer is itself a tag or an entity of HTML: "the <i> tag"."""
    rest = _ENTITY.sub("", _TAG.sub("", answer))
    return rest != answer and not re.sub(r"(?i)\b(?:the|a|an|tags?|elements?|entity|and|or)\b|\W+", "", rest)


def without_markup(text: str) -> str:
    """A text without emphasis, code marks, tags and LaTeX; what is struck through is left out."""
    if "\\" in text or "$" in text:
        text = _plain_maths(text)
    if "<" in text:
        text = _TAG.sub(_blank_for_blocks, _STRUCK_TAG.sub("", text))
    if "&" in text:
        text = _ENTITY.sub(lambda found: _ENTITIES[found.group()], text)
    for marks in (_STRONG, _EMPHASIS, _CODE):
        text = marks.sub(r"\2", text)
    return (_STRUCK.sub("", text) if "~~" in text else text).strip()


def _blank_for_blocks(found: re.Match[str]) -> str:
    """A line break for a tag that ends a line; tags within a word leave nothing: H<sub>2</sub>O."""
    name = found.group().strip("</> ").split()[0].lower()
    return "\n" if name in ("br", "p", "div", "li", "ul", "ol") or name[0] == "h" else ""


def _plain_maths(text: str) -> str:
    text = _DISPLAYED.sub(lambda found: f" {_plain_formula(found[1] or found[2] or found[3])} ", text)
    text = _MATHS.sub(lambda found: _plain_formula(found[1]) if _LATEX.search(found[1]) else found.group(), text)
    return _plain_formula(text, indices=False) if "\\" in text else text


def _plain_formula(formula: str, *, indices: bool = True) -> str:
    """A formula as plain text: 2/3 for \\frac{2}{3}, H2O for H_2O, 100 °C for 100\\,^{\\circ}\\mathrm{C}."""
    formula = _SPACE.sub(" ", _THOUSANDS.sub(",", formula))
    formula = _SYMBOL.sub(lambda found: _SYMBOLS[found[1]], _DEGREE.sub(" °", formula))
    for _ in range(3):  # one in the other: \boxed{\frac{2}{3}}
        formula = _NAMED.sub(r"\1", _FRACTION.sub(r"\1/\2", formula))
    if indices:
        formula = _INDEX.sub(lambda found: found[1] or found[2], formula)
    return re.sub(r"\\([%$&#_])", r"\1", formula)
