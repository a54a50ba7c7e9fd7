"""Convert the values of a RAG log: objects, answers, lists in cells, grades, ids."""

from __future__ import annotations

import ast
import dataclasses
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


def as_row(item: Any) -> Mapping[str, Any] | None:
    """The fields of a dict or an object of another library, or None."""
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
            made = getattr(item, method)()
            return made if isinstance(made, Mapping) else None
    if dataclasses.is_dataclass(item):
        return {each.name: getattr(item, each.name) for each in dataclasses.fields(item)}
    return vars(item) if hasattr(item, "__dict__") else None


def as_answer(value: Any, what: str = "answer") -> str | None:
    """An answer as text; a number is written out, and true or false is yes or no."""
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if value is None or (isinstance(value, float) and math.isnan(value)):
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
    """A text, or a list of texts.

    In cells of tables, a list may be written as JSON or as Python writes it.
    """
    value = parse_cell(value, what) if cells else plain_value(value)
    if value is None or isinstance(value, str | int | float | date | time | Decimal):
        text = as_answer(value, what)
        return [text] if text else []
    if not isinstance(value, list | tuple):
        raise WrongLineError(f"the {what}s are {quote_short(value, 24)}, not a list of texts")
    return [text for each in value if (text := as_answer(each, what)) is not None]


def plain_value(value: Any) -> Any:
    """NumPy's arrays and numbers as lists and numbers."""
    return value.tolist() if hasattr(value, "tolist") else value


def parse_cell(value: Any, what: str) -> Any:
    """Parse a list in a cell: JSON, or the way Python or NumPy write it. Other texts stay as they are."""
    value = plain_value(value)
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not (text.startswith("[") and text.endswith("]")) and not (text.startswith("{") and text.endswith("}")):
        return value
    try:
        return parse_json(text)
    except ValueError:
        pass
    try:
        parsed = ast.literal_eval(text)
        spaced = _spaced_strings(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
        objects = what == "passage" and re.match(r"\[\s*\(?[A-Z]\w*\(", text)
        if objects or re.match(r"""[\[{]\s*["'{\[]""", text):
            raise WrongLineError(f"the {what}s start like a list, but can't be read: {quote_short(text, 40)}") from None
        return value
    return spaced or parsed


def _spaced_strings(text: str) -> list[str]:
    """The strings of a list without commas, as NumPy writes it. Python would join them."""
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string.strip()]
    inner = tokens[1:-1]
    if len(inner) > 1 and all(token.type == tokenize.STRING for token in inner):
        return [str(ast.literal_eval(token.string)) for token in inner]
    return []


def is_given(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def as_grades(value: Any, what: str) -> Grade | list[Grade]:
    """A grade, or those of several judges in a list."""
    value = plain_value(value)
    return [as_grade(each, what) for each in value] if isinstance(value, list | tuple) else as_grade(value, what)


def as_grade(value: Any, what: str) -> Grade:
    """A grade: a number, true or false, or a word."""
    value = plain_value(value)
    if isinstance(value, Decimal):
        value = float(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return value
        return value if math.isnan(number) else as_number(number, what)
    return as_number(value, what)


def as_repeat(value: Any) -> int:
    number = 0.0 if value is None else as_number(as_grade(value, "repeat"), "repeat")
    if not number.is_integer() or number < 0:
        raise WrongLineError(f"the repeat is {quote_short(value, 24)}, not a whole number")
    return int(number)


def as_name(value: Any, what: str, *, cells: bool = False) -> str | None:
    """An id, or None. Whole numbers that pandas turned into floats are ids, too."""
    value = plain_value(value)
    if value is None or (cells and value == ""):
        return None
    if cells and isinstance(value, float) and value.is_integer():
        value = int(value)
    return as_id(value, what)
