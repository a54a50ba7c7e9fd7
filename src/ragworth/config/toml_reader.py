"""Takes a TOML file apart: values of the right kind, and what is wrong with the others, each with its line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ragworth.errors import format_list


class TomlProblem(NamedTuple):
    """One thing that is wrong, and where."""

    line: int | None
    text: str


class TomlReader:
    """Takes a file apart and remembers what is wrong with it."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.wrong: list[TomlProblem] = []

    def say(self, text: str, *path: str) -> None:
        self.wrong.append(TomlProblem(self.line(*path), text))

    def line(self, *path: str) -> int | None:
        """The line on which a key stands, as far as it can be told; that of its table where it cannot."""
        table, found = "", None
        for number, line in enumerate(self.lines, 1):
            if head := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
                table = head[1].replace('"', "").replace(" ", "")
                if table == ".".join(path):
                    return number
                if path and table == path[0]:
                    found = found or number
            elif key := re.match(r"""\s*["']?([\w.-]+)["']?\s*=""", line):
                whole = f"{table}.{key[1]}" if table else key[1]
                if whole == ".".join(path):
                    return number
                if ".".join(path).startswith(f"{whole}."):
                    found = number
        return found

    def keys(self, table: Mapping[str, Any], known: tuple[str, ...], *path: str) -> None:
        """Refuse keys that mean nothing here."""
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1, 0.6)
                hint = f"; did you mean {near[0]!r}?" if near else f"; known are {format_list(list(known), 20)}"
                place = f"[{'.'.join(path)}] has" if path else "there is"
                self.say(f"{place} no {key!r}{hint}", *path, key)

    def take(self, table: Mapping[str, Any], key: str, kind: type | tuple[type, ...], words: str, *path: str) -> Any:
        """A value of the right kind, or None."""
        value = table.get(key)
        if value is None:
            return None
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            self.say(f"{'.'.join([*path, key])} is {format_toml_value(value)}, not {words}", *path, key)
            return None
        return value

    def text(self, table: Mapping[str, Any], key: str, *path: str) -> str | None:
        value: str | None = self.take(table, key, str, "a text", *path)
        if value == "":
            self.say(f"{'.'.join([*path, key])} is empty", *path, key)
            return None
        return value

    def texts(self, table: Mapping[str, Any], key: str, *path: str) -> tuple[str, ...]:
        """One text, or a list of them."""
        value = self.take(table, key, (str, list), "a text or a list of texts", *path)
        some = [value] if isinstance(value, str) else value or []
        if not all(isinstance(each, str) and each for each in some):
            self.say(f"{'.'.join([*path, key])} has something that is no text", *path, key)
            return ()
        return tuple(some)

    def number(self, table: Mapping[str, Any], key: str, low: int, *path: str) -> int | None:
        value: int | None = self.take(table, key, int, "a whole number", *path)
        if value is not None and value < low:
            self.say(f"{'.'.join([*path, key])} is {value}; it may be {low} or more", *path, key)
            return None
        return value

    def table(self, whole: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = self.take(whole, key, dict, "a table")
        return value or {}


def format_toml_value(value: Any) -> str:
    """A value as it is written, not too long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
