"""Parse the written form of a pipeline.

::

    pipeline = cut { ">>" cut }
    cut      = step { "%" number }
    step     = name [ "(" [ value { "," value } ] ")" ]  |  "(" pipeline ")"
    value    = [ name "=" ] ( number | text | word )  |  pipeline

A text is in double or single quotes; a word is true, false, or a text of letters, digits, ``_``, ``.``, ``+`` and
``-``. Only steps that combine pipelines take a pipeline as a value. Errors point at their position.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import fields
from typing import Any, NamedTuple, NoReturn

from ragworth.errors import InputError, format_list, quote_short
from ragworth.retrieval.contract import Step
from ragworth.retrieval.pipeline import Pipeline
from ragworth.tasks.options import options_of

TOKEN_PATTERN = re.compile(
    r"""\s*(?:
        (?P<sign>>>|[%(),=])
      | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<word>[\w.+-]+)
      | (?P<odd>\S)
    )""",
    re.X,
)
NUMBER = re.compile(r"[+-]?(\d+|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)", re.A)
ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
ESCAPES = {'"': '"', "'": "'", "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
BOOLEANS = {"true": True, "false": False, "True": True, "False": False}
EXCERPT_WIDTH = 36
"""How much of a pipeline to show on either side of a position."""

EXAMPLE_FORM = "a form like bm25(k1=0.9) >> reversed % 10"


class ParsedToken(NamedTuple):
    """A token: its kind, its text, and where it begins."""

    kind: str
    text: str
    at: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else quote_short(self.text, 24)


def parse(text: str) -> Pipeline:
    """Parse a pipeline from its written form."""
    parser = PipelineParser(text)
    pipeline = parser.pipeline()
    if parser.next.kind != "end":
        parser.fail(f"{parser.next} where a step ends", expected=">> and another step, % and a number, or the end")
    return pipeline


class PipelineParser:
    """Parses one text from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.signs = [
            ParsedToken(str(match.lastgroup), match[str(match.lastgroup)], match.start(str(match.lastgroup)))
            for match in TOKEN_PATTERN.finditer(text)
        ]
        self.signs.append(ParsedToken("end", "", len(text.rstrip())))
        self.at = 0
        self.depth = 0

    @property
    def next(self) -> ParsedToken:
        return self.signs[self.at]

    def take(self, text: str) -> bool:
        """Consume this sign if it comes next, and return whether it did."""
        found = self.next.kind == "sign" and self.next.text == text
        self.at += found
        return found

    def read(self) -> ParsedToken:
        self.at += 1
        return self.signs[self.at - 1]

    def pipeline(self) -> Pipeline:
        pipeline = self.cut()
        while True:
            place = self.next
            if not self.take(">>"):
                return pipeline
            pipeline = self.pointed(place, lambda before, after: before >> after, pipeline, self.cut())

    def cut(self) -> Pipeline:
        pipeline = self.step()
        while self.take("%"):
            number = self.read()
            if not re.fullmatch(r"[0-9]{1,9}", number.text):
                self.fail(f"{number} after %", number, expected="a whole number, such as % 10")
            pipeline = self.pointed(number, lambda before, k: before % k, pipeline, int(number.text))
        return pipeline

    def step(self) -> Pipeline:
        place = self.next
        if self.take("("):
            pipeline = self.nested(place)
            if not self.take(")"):
                self.fail(f"{self.next} where a parenthesis should end", expected=")")
            return pipeline
        name = self.next
        if name.kind != "word":
            self.fail(f"{name} where a step should stand", expected=EXAMPLE_FORM)
        self.read()
        kind = self.pointed(name, _step_class, name.text)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if self.take("("):
            self.values(kind, positional, named)
        return Pipeline((self.pointed(name, kind, *positional, **named),))

    def nested(self, place: ParsedToken) -> Pipeline:
        """Parse a pipeline in parentheses, with limited nesting."""
        self.depth += 1
        if self.depth > 50:
            self.fail("too many parentheses", place)
        pipeline = self.pipeline()
        self.depth -= 1
        return pipeline

    def part(self) -> Pipeline:
        """Parse a pipeline among the values of a step; it must be able to run."""
        place = self.next
        pipeline = self.nested(place)
        self.pointed(place, pipeline.complete)
        return pipeline

    def values(self, kind: type[Step], positional: list[Any], named: dict[str, Any]) -> None:
        """Parse the values in the parentheses of a step."""
        by_place = [each.name for each in fields(kind) if not each.kw_only]
        while not self.take(")"):
            if self.next.kind == "end":
                self.fail(f"{self.next} where a parenthesis should end", expected="name=value, or )")
            place = self.next
            if kind.takes_pipelines and self.signs[self.at + 1].text != "=":
                if named:
                    self.fail(f"{place} after a named setting", place, expected="name=value")
                positional.append(self.part())
                self.separated()
                continue
            self.read()
            if self.take("="):
                self.known(kind, place, [*by_place[: len(positional)], *named])
                named[place.text] = self.value(self.read())
            elif named:
                self.fail(f"{place} after a named setting", place, expected="name=value")
            elif len(positional) == len(by_place):
                names = format_list([each.name for each in options_of(kind)], 12)
                form = f"name=value, of {names}" if names else "no settings"
                self.fail(f"{place} is one value too many for {kind.kind}", place, expected=form)
            else:
                positional.append(self.value(place))
            self.separated()

    def separated(self) -> None:
        """Require a comma or the end of the values."""
        if not self.take(",") and self.next.text != ")":
            self.fail(f"{self.next} after a value", expected=", or )")

    def known(self, kind: type[Step], name: ParsedToken, taken: list[str]) -> None:
        """Reject a setting that the step doesn't have, or that is already set."""
        names = [each.name for each in options_of(kind)]
        if name.text not in names or name.kind != "word":
            near = difflib.get_close_matches(name.text, names, n=2, cutoff=0.5)
            self.fail(
                f"{kind.kind} has no setting {name}",
                name,
                expected=format_list(names, 12) or "no settings",
                remedy=f"did you mean {' or '.join(near)}?" if near else "",
            )
        if name.text in taken:
            self.fail(f"the setting {name} occurs twice", name, expected="each setting once")

    def value(self, sign: ParsedToken) -> Any:
        """Parse a number, a text, true or false."""
        if sign.kind == "text":
            try:
                return ESCAPE.sub(_unescape, sign.text[1:-1])
            except (KeyError, ValueError, OverflowError):
                self.fail(f"{sign} has an invalid escape", sign, expected=r"\\ for a backslash")
        if sign.kind != "word":
            self.fail(f"{sign} where a value should stand", sign, expected="a number, a text in quotes, true or false")
        if NUMBER.fullmatch(sign.text):
            # A number with so many digits is invalid; as a float it is rejected with the right message.
            return int(sign.text) if re.fullmatch(r"[+-]?[0-9]{1,18}", sign.text) else float(sign.text)
        return BOOLEANS.get(sign.text, sign.text)

    def pointed(self, place: ParsedToken, make: Any, *given: Any, **named: Any) -> Any:
        """Call ``make``, pointing at the position of any error."""
        try:
            return make(*given, **named)
        except InputError as error:
            self.fail(error.found, place, expected=error.expected, remedy=error.remedy, more=error.more, cause=error)

    def fail(
        self,
        problem: str,
        place: ParsedToken | None = None,
        *,
        expected: str = "",
        remedy: str = "",
        more: tuple[str, ...] = (),
        cause: InputError | None = None,
    ) -> NoReturn:
        at = (place or self.next).at
        low, high = max(0, at - EXCERPT_WIDTH), at + EXCERPT_WIDTH
        window = "".join(sign if sign.isprintable() else "·" for sign in self.text[low:high])
        left, right = "…" if low else "", "…" if high < len(self.text) else ""
        raise InputError(
            f"can't parse the pipeline at character {at + 1}: {problem}",
            more=(*more, f"{left}{window}{right}", f"{' ' * (len(left) + at - low)}^"),
            expected=expected,
            remedy=remedy,
        ) from cause


def _unescape(escape: re.Match[str]) -> str:
    """The character that an escape stands for."""
    code = escape[1] or escape[2] or escape[3]
    return chr(int(code, 16)) if code else ESCAPES[escape[4]]


def _step_class(name: str) -> type[Step]:
    from ragworth.retrieval import STEPS

    return STEPS.get(name)
