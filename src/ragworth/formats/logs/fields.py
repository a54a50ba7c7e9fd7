"""Find the fields of a row: where the user's mapping says, or else under the names of a format."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ragworth.core.errors import FormatError, Hint, format_names
from ragworth.formats.grades import direction_of_name
from ragworth.formats.logs.names import FIELDS, GRADE_FIELDS, PREDICTIONS, SYNONYMS, plain_name
from ragworth.formats.logs.paths import Path, follow, parse_paths

Names = Mapping[str, tuple[str, ...]]

JOIN = " + "
"""Between the names of columns whose values together are one name."""


def check_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return a mapping with our names of the fields. A misspelt field is an error."""
    mapped: dict[str, str] = {}
    for given, column in (columns or {}).items():
        field = SYNONYMS.get(given, given)
        near = difflib.get_close_matches(given, [*FIELDS, *SYNONYMS], n=1, cutoff=0.8)
        if field not in FIELDS and near:
            raise FormatError(
                f"unknown field {given!r} in the mapping of columns",
                expected=", ".join(FIELDS) + ", or the name of a grade",
                remedy=f"did you mean {near[0]}={column}?",
            )
        if field not in {**FIELDS, **GRADE_FIELDS} and not direction_of_name(field):
            raise FormatError(
                f"nothing says which way the grade {field!r} is better",
                remedy=mapping_hint(({f"higher_{field}": column}, f", or lower_{field} if lower is better")),
            )
        if mapped.setdefault(field, column) != column:
            raise FormatError(f"the field {field!r} is mapped to {mapped[field]!r} and to {column!r}")
    return mapped


def mapping_hint(*choices: tuple[Mapping[str, str], str]) -> Hint:
    """Return the advice to map columns, with the line to paste for each place. Words follow each of the choices."""
    command = workspace = python = ""
    for mapping, words in choices:
        shown = {field: json.dumps(column, ensure_ascii=False) for field, column in mapping.items()}
        command += " ".join(f"--map {quote_argument(f'{field}={column}')}" for field, column in mapping.items()) + words
        workspace += ", ".join(f"{field} = {column}" for field, column in shown.items()) + words
        python += f"columns={json.dumps(mapping, ensure_ascii=False)}{words}"
    return Hint(command, f"write under [columns]: {workspace}", python, option="columns")


def quote_argument(text: str) -> str:
    """Return an argument as a shell reads it."""
    return text if re.fullmatch(r"[\w=.\-/:]+", text) else f"'{text}'"


class FieldPlaces(NamedTuple):
    """Where the fields are in rows with the same keys: the paths that they may have, and the first of these."""

    paths: dict[str, list[Path]]
    keys: dict[str, str]


class FieldFinder:
    """Finds the fields of rows. ``columns``, the user's mapping, comes before ``names``, those of a format."""

    def __init__(self, names: Names, columns: Mapping[str, str] | None = None) -> None:
        self.names = {field: [path for name in paths for path in parse_paths(name)] for field, paths in names.items()}
        self.columns = check_columns(columns)
        self.grades: dict[str, str] = {name: key for name, key in self.columns.items() if name not in FIELDS}
        """Columns of grades, by the name of the grade."""
        self.notes: list[str] = []
        """What readers of whole files noticed."""
        self.found: set[str] = set()
        """Mapped columns that some row has."""
        self.graded: set[str] = set()
        """Columns in which a format found grades by name."""
        self.seen: dict[str, None] = {}
        self._layouts: dict[tuple[str, ...], FieldPlaces] = {}
        self._row: tuple[Mapping[str, Any], FieldPlaces] | None = None

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def keys(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return where each field is in rows with these keys."""
        return self._layout(row).keys

    def known_keys(self) -> Iterable[dict[str, str]]:
        """Yield where the fields are, for each set of keys that rows had."""
        return (layout.keys for layout in self._layouts.values())

    def used(self, row: Mapping[str, Any]) -> set[str]:
        """Return the keys of a row in which fields or grades are."""
        mapped = [part for key in (*self.columns.values(), *self.grades.values()) for part in (key, *key.split(JOIN))]
        named = [path for paths in self._layout(row).paths.values() for path in paths]
        inside = {each for key in mapped for each in (key, key.partition(".")[0])}
        return self.graded | inside | {each for path in named for each in (path.place, path.first)}

    def get(self, row: Mapping[str, Any], field: str) -> Any:
        """Return the value of a field, or None. Names with dots lead into objects."""
        key = self.columns.get(field) or self.grades.get(field)
        if key is None:
            value = None
            for path in self._layout(row).paths.get(field, ()):
                if (value := path.get(row)) is not None:
                    break
        else:
            value = row[key] if key in row else _mapped_value(row, key)
            if value is not None or key in row:
                self.found.add(key)
        return None if isinstance(value, float) and math.isnan(value) else value

    def _layout(self, row: Mapping[str, Any]) -> FieldPlaces:
        if self._row is not None and self._row[0] is row:
            return self._row[1]
        mark = tuple(row)
        if mark not in self._layouts:
            self.seen |= dict.fromkeys(mark)
            plain = {plain_name(key): key for key in reversed(mark)}
            taken = {column for field, column in self.columns.items() if field != "query"}  # a text may be the id, too
            there = {name: key for name, key in plain.items() if key not in taken}
            found = {field: _present(paths, there) for field, paths in self.names.items() if field not in self.columns}
            answer = found.get("answer")
            if answer and plain_name(answer[0].place) in PREDICTIONS and not found.get("accepted", True):
                found["accepted"] = self._accepted_beside(answer[0].place, there.get("answer"))
            keys = {field: paths[0].place for field, paths in found.items() if paths} | self.columns
            self._layouts[mark] = FieldPlaces({field: paths for field, paths in found.items() if paths}, keys)
        self._row = row, self._layouts[mark]
        return self._row[1]

    def _accepted_beside(self, prediction: str, key: str | None) -> list[Path]:
        """The path of an ``answer`` beside a prediction: it is the accepted one."""
        if key is None:
            return []
        change = f"to change that: --map {quote_argument(f'answer={key}')}"
        self.note(f"{key!r} is read as the accepted answer, because {prediction!r} is the system's; {change}")
        return [Path(key)]

    def check_mapped(self, source: str) -> None:
        """Raise an error if a mapped column was in no row."""
        missing = [(field, key) for field, key in self.columns.items() if key not in self.found]
        if missing:
            field, key = missing[0]
            near = difflib.get_close_matches(key, list(self.seen), n=1, cutoff=0.5)
            raise FormatError(
                f"no {key!r}, which was given for {field!r}; there are {format_names(list(self.seen))}",
                file=source,
                remedy=mapping_hint(({field: near[0] if near else "COLUMN"}, "")),
            )


def _present(paths: list[Path], there: Mapping[str, str]) -> list[Path]:
    """The paths that rows with these keys may have, up to the first that is a key: the others are never looked at."""
    found: list[Path] = []
    for path in paths:
        first, dot, rest = path.place.partition(".")
        key, outer = there.get(plain_name(path.place)), there.get(plain_name(first))
        if key is not None or not path.place:
            found.append(Path(key or "", path.converter))
        elif dot and outer is not None:
            found.append(Path(f"{outer}.{rest}", path.converter))
        if key is not None and not path.converter:
            break
    return found


def _mapped_value(row: Mapping[str, Any], key: str) -> Any:
    """The value at a path, or those of several columns as one name."""
    if JOIN not in key:
        return follow(row, key)
    values = [str(value) for part in key.split(JOIN) if (value := follow(row, part)) is not None]
    return JOIN.join(values) or None
