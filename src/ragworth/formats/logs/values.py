"""Convert the values of a RAG log: objects of libraries, answers, lists in cells, grades, ids."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

from ragworth.core.errors import quote_short
from ragworth.core.nested_text import parse_json
from ragworth.formats.grades import Grade
from ragworth.formats.values import WrongLineError, as_id, as_number, as_text

LIST_OF_TEXTS = re.compile(r"""[\[{]\s*(?:["'{\[]|\(?[A-Z]\w*\()""")
"""Beginnings of lists: of texts, of objects, and of Python's ``Document(…)``, which can't be read."""


def as_row(item: Any) -> Mapping[str, Any] | None:
    """Return the fields of a dict or an object of another library, or None."""
    if isinstance(item, dict):
        return item
    if item is None or isinstance(item, str | bytes | int | float | list | tuple):
        return None
    if isinstance(item, Mapping):
        return item
    if hasattr(item, "page_content"):
        return {"id": getattr(item, "id", None), "page_content": item.page_content}
    if hasattr(item, "get_content") and hasattr(item, "node_id"):
        node = getattr(item, "node", item)
        return {"id": node.node_id, "text": node.get_content(), "score": getattr(item, "score", None)}
    for method in ("model_dump", "to_dict", "dict"):
        if callable(getattr(type(item), method, None)):
            fields = getattr(item, method)()
            return fields if isinstance(fields, Mapping) else None
    return vars(item) if hasattr(item, "__dict__") else None


def plain_value(value: Any) -> Any:
    """Return NumPy's arrays and numbers, also inside each other, as lists and numbers."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return [plain_value(each) for each in value] if isinstance(value, list) else value


def is_given(value: Any) -> bool:
    """Return whether a value isn't missing."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def as_answer(value: Any, what: str = "answer") -> str | None:
    """Return an answer as text; a number is written out, and true or false is yes or no."""
    if isinstance(value, str):
        return as_text(value, what)
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if not is_given(value):
        return None
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, date | time | Decimal):  # of Parquet; a moment without a time is a day
        return str(value).removesuffix(" 00:00:00")
    if isinstance(value, int | float):
        number = as_number(value, what)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else str(value)
    return as_text(value, what)


def as_texts(value: Any, what: str = "answer", *, cells: bool = False) -> list[str]:
    """Return a text, or a list of texts, as a list. In ``cells`` of tables, a list may be written as text."""
    value = parse_cell(value, what) if cells else value
    if isinstance(value, list | tuple):
        return [text for each in value if (text := as_answer(each, what)) is not None]
    if value is not None and not isinstance(value, str | int | float | date | time | Decimal):
        raise WrongLineError(f"the {what}s are {quote_short(value, 24)}, not a list of texts")
    text = as_answer(value, what)
    return [text] if text else []


def parse_if_json(value: Any) -> Any:
    """Parse objects, lists and quoted texts that are written as text; other values stay as they are."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"'):
        try:
            return parse_json(value)
        except ValueError:
            return value
    return value


def parse_cell(value: Any, what: str) -> Any:
    """Parse a list or object in a cell: JSON, or the way Python or NumPy write it. Other texts stay as they are."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if (text[:1], text[-1:]) not in (("[", "]"), ("{", "}")):
        return value
    try:
        return parse_json(text)
    except ValueError:
        pass
    try:
        return _parse_python(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
        if LIST_OF_TEXTS.match(text):
            raise WrongLineError(f"the {what}s start like a list, but can't be read: {quote_short(text, 40)}") from None
        return value


def _parse_python(text: str) -> Any:
    """Parse a literal of Python. NumPy writes no commas between texts, which Python would join."""
    value = ast.literal_eval(text)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        return [ast.literal_eval(token.string) for token in tokens if token.type == tokenize.STRING]
    return value


def as_grades(value: Any, what: str) -> list[Grade]:
    """Return a grade, or those of several judges."""
    return [as_grade(each, what) for each in (value if isinstance(value, list | tuple) else [value])]


def as_grade(value: Any, what: str) -> Grade:
    """Return a grade: a number, true or false, or a word."""
    if isinstance(value, Decimal):
        value = float(value)
    if not is_given(value):
        return None
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return value
        return value if math.isnan(number) else as_number(number, what)
    return value if isinstance(value, bool) else as_number(value, what)


def as_repeat(value: Any) -> int:
    """Return the number of a repeat; the first is 0."""
    number = 0.0 if value is None else as_number(as_grade(value, "repeat"), "repeat")
    if not number.is_integer() or number < 0:
        raise WrongLineError(f"the repeat is {quote_short(value, 24)}, not a whole number")
    return int(number)


def as_name(value: Any, what: str, *, cells: bool = False) -> str | None:
    """Return an id, or None. In ``cells``, blanks around it don't count, and whole numbers may be floats."""
    if cells and isinstance(value, str):
        value = value.strip() or None
    if cells and isinstance(value, float) and value.is_integer():
        value = int(value)
    return None if value is None else as_id(value, what)
