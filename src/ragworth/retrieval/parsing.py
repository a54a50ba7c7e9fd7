"""Parse the written form of a pipeline, such as ``bm25(k1=0.9) >> reversed % 10``.

It is a Python expression of names, calls, ``>>`` and ``%``: a step is a name, with its settings in parentheses. A value
is a number, a text in quotes, ``true``, ``false``, or a text of one word. Only steps that combine pipelines take a
pipeline as a value. Errors point at their position.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from dataclasses import fields
from typing import Any, NoReturn

from ragworth.core.errors import InputError, format_list, quote_short
from ragworth.judging.contract import options_of
from ragworth.retrieval.contract import Step
from ragworth.retrieval.pipeline import MAX_STEPS, Pipeline

BOOLEANS = {"true": True, "false": False}
LARGE = 10**18
"""Whole numbers from here on are floats, which are rejected with the right message."""
EXCERPT_WIDTH = 36
"""How much of a pipeline to show on either side of a position."""
EXAMPLE_FORM = "a form like bm25(k1=0.9) >> reversed % 10"


def parse(text: str) -> Pipeline:
    """Parse a pipeline from its written form."""
    return PipelineParser(text).parse()


class PipelineParser:
    """Turns the syntax tree of one text into a pipeline."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.indent = len(text) - len(text.lstrip())
        self.line = "".join(" " if sign.isspace() else sign for sign in text.strip())

    def parse(self) -> Pipeline:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of an invalid escape
                tree = ast.parse(self.line, mode="eval")
            return self.pipeline(tree.body)
        except SyntaxError as error:
            self.fail(error.msg, error.offset - 1 if error.offset else len(self.line), expected=EXAMPLE_FORM)
        except ValueError as error:  # characters that no Python text has
            self.fail(str(error), 0, expected=EXAMPLE_FORM)
        except (RecursionError, MemoryError):
            self.fail(f"it has more than {MAX_STEPS} steps, or too many parentheses", 0)

    def pipeline(self, node: ast.expr) -> Pipeline:
        """Join the operands of ``>>`` and ``%``, from left to right."""
        behind: list[tuple[ast.operator, ast.expr]] = []
        while isinstance(node, ast.BinOp):
            behind.append((node.op, node.right))
            node = node.left
        pipeline = self.step(node)
        for operator, right in reversed(behind):
            if isinstance(operator, ast.RShift):
                pipeline = self.pointed(right, pipeline.__rshift__, self.pipeline(right))
            elif isinstance(operator, ast.Mod):
                pipeline = self.pointed(right, pipeline.__mod__, self.count(right))
            else:
                self.fail(f"another sign than >> and % before {self.quoted(right)}", right, expected=EXAMPLE_FORM)
        return pipeline

    def count(self, node: ast.expr) -> int:
        """The number after a ``%``."""
        value = node.value if isinstance(node, ast.Constant) else None
        if type(value) is not int or value >= LARGE:
            self.fail(f"{self.quoted(node)} after %", node, expected="a whole number, such as % 10")
        return value

    def step(self, node: ast.expr) -> Pipeline:
        name = node.func if isinstance(node, ast.Call) else node
        if not isinstance(name, ast.Name):
            self.fail(f"{self.quoted(node)} where a step should stand", node, expected=EXAMPLE_FORM)
        kind = self.pointed(name, _step_class, name.id)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if isinstance(node, ast.Call):
            by_place = [each.name for each in fields(kind) if not each.kw_only]
            for argument in node.args:
                positional.append(self.positional(kind, argument, len(positional) < len(by_place)))
            for keyword in node.keywords:
                setting = self.known(kind, keyword, [*by_place[: len(positional)], *named])
                named[setting] = self.value(keyword.value)
        return Pipeline((self.pointed(name, kind, *positional, **named),))

    def positional(self, kind: type[Step], node: ast.expr, has_place: bool) -> Any:
        """A value without a name: a pipeline, which must be able to run, or a setting."""
        if kind.takes_pipelines:
            return self.pointed(node, self.pipeline(node).complete)
        if not has_place:
            names = format_list([each.name for each in options_of(kind)], 12)
            form = f"name=value, of {names}" if names else "no settings"
            self.fail(f"{self.quoted(node)} is one value too many for {kind.kind}", node, expected=form)
        return self.value(node)

    def known(self, kind: type[Step], keyword: ast.keyword, taken: list[str]) -> str:
        """The name of a setting that the step has and that isn't set yet."""
        names = [each.name for each in options_of(kind)]
        if keyword.arg not in names:
            near = difflib.get_close_matches(keyword.arg or "", names, n=2, cutoff=0.5)
            self.fail(
                f"{kind.kind} has no setting {quote_short(keyword.arg or '**', 24)}",
                keyword,
                expected=format_list(names, 12) or "no settings",
                remedy=f"did you mean {' or '.join(near)}?" if near else "",
            )
        if keyword.arg in taken:
            self.fail(f"the setting {keyword.arg!r} occurs twice", keyword, expected="each setting once")
        return keyword.arg

    def value(self, node: ast.expr) -> Any:
        """A number, a text, true or false."""
        if isinstance(node, ast.Name):
            return BOOLEANS.get(node.id, node.id)
        is_signed = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd)
        inner = node.operand if isinstance(node, ast.UnaryOp) and is_signed else node
        value: Any = inner.value if isinstance(inner, ast.Constant) else None
        if type(value) in (int, float):
            number = float(str(value)) if value >= LARGE else value
            return -number if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else number
        if is_signed or type(value) not in (str, bool):
            expected = "a number, a text in quotes, true, false or one word"
            self.fail(f"{self.quoted(node)} where a value should stand", node, expected=expected)
        return value

    def quoted(self, node: ast.expr) -> str:
        return quote_short(ast.get_source_segment(self.line, node) or "", 24)

    def pointed(self, place: ast.expr, make: Any, *given: Any, **named: Any) -> Any:
        """Call ``make``, pointing at the position of any error."""
        try:
            return make(*given, **named)
        except InputError as error:
            self.fail(error.found, place, expected=error.expected, remedy=error.remedy, more=error.more, cause=error)

    def fail(
        self,
        problem: str,
        place: ast.expr | ast.keyword | int,
        *,
        expected: str = "",
        remedy: str = "",
        more: tuple[str, ...] = (),
        cause: InputError | None = None,
    ) -> NoReturn:
        if not isinstance(place, int):
            place = len(self.line.encode()[: place.col_offset].decode())
        at = self.indent + place
        low, high = max(0, at - EXCERPT_WIDTH), at + EXCERPT_WIDTH
        window = "".join(sign if sign.isprintable() else "·" for sign in self.text[low:high])
        left, right = "…" if low else "", "…" if high < len(self.text) else ""
        raise InputError(
            f"can't parse the pipeline at character {at + 1}: {problem}",
            more=(*more, f"{left}{window}{right}", f"{' ' * (len(left) + at - low)}^"),
            expected=expected,
            remedy=remedy,
        ) from cause


def _step_class(name: str) -> type[Step]:
    from ragworth.retrieval import STEPS

    return STEPS.get(name)
