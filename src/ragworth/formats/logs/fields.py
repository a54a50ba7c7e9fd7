"""Find the fields of a row: where the user's mapping says, or else under the names of a format."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ragworth.core.errors import FormatError, format_names
from ragworth.formats.logs.names import (
    FIELDS,
    JOIN,
    PREDICTIONS,
    check_columns,
    mapping_hint,
    plain_name,
    quote_argument,
)
from ragworth.formats.logs.paths import Path, follow, parse_paths
from ragworth.formats.logs.values import is_given

Row = Mapping[str, Any]
Names = Mapping[str, tuple[str, ...]]
"""Paths of each field."""


class Layout(NamedTuple):
    """Where rows with the same keys have our fields: all paths that count, and the first of them."""

    paths: dict[str, list[Path]]
    columns: dict[str, str]
    unused: list[str]


class FieldFinder:
    """Finds the fields of rows. ``columns``, the user's mapping, comes before ``names``, those of a format."""

    def __init__(self, names: Names, columns: Mapping[str, str] | None = None) -> None:
        self.mapped = check_columns(columns)
        self.mapped_columns = {part for column in self.mapped.values() for part in column.split(JOIN)}
        mapped = {field: [_mapped_path(column)] for field, column in self.mapped.items()}
        self.names = {field: [path for name in paths for path in parse_paths(name)] for field, paths in names.items()}
        self.names |= mapped
        self.notes: list[str] = []
        """What readers of whole files noticed."""
        self.keys: dict[str, None] = {}
        """All keys of rows."""
        self.columns: dict[str, str] = {}
        """Where the fields are; of several places, the last."""
        self.unused: dict[str, Any] = {}
        """Columns that no field takes, with a value."""
        self.graded: set[str] = set()
        """Columns in which a format found grades by name."""
        self._places: dict[str, dict[str, None]] = {}
        """Where values of each field were."""
        self._layouts: dict[tuple[str, ...], Layout] = {}

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def read(self, row: Row) -> dict[str, Any]:
        """Return the values of the fields that a row has, and notice those of no field."""
        values: dict[str, Any] = {}
        layout = self.layout(row)
        for field, paths in layout.paths.items():
            for path in paths:
                if is_given(value := path.get(row)):
                    values[field] = value
                    self._places.setdefault(field, {})[path.place] = None
                    break
        for name in layout.unused:
            if name not in self.unused and row[name] not in (None, "", [], {}):
                self.unused[name] = row[name]
        return values

    def get(self, row: Row, field: str) -> Any:
        """Return the value of a field, or None."""
        for path in self.layout(row).paths.get(field, ()):
            if is_given(value := path.get(row)):
                self._places.setdefault(field, {})[path.place] = None
                return value
        return None

    def column(self, field: str) -> str:
        """Return the column that has a field; of several, the last in which there was a value."""
        return self.mapped.get(field) or next(reversed(self._places.get(field, {field: None})))

    def layout(self, row: Row) -> Layout:
        """Return where the fields are in rows with these keys."""
        mark = tuple(row)
        if mark not in self._layouts:
            self._layouts[mark] = self._find_layout(mark)
        return self._layouts[mark]

    def _find_layout(self, names: tuple[str, ...]) -> Layout:
        self.keys |= dict.fromkeys(names)
        used = self.mapped_columns - {self.mapped.get("query", "")}  # a text may be the id, too
        there = {plain_name(name): name for name in reversed(names) if name not in used}
        paths = {field: each if field in self.mapped else _present(each, there) for field, each in self.names.items()}
        answer = paths.get("answer")
        if answer and plain_name(answer[0].place) in PREDICTIONS and not paths.get("accepted", True):
            paths["accepted"] = self._accepted_beside(answer[0].place, there.get("answer"))
        paths = {field: each for field, each in paths.items() if each}
        columns = {field: each[0].place for field, each in paths.items()}
        self.columns |= columns
        places = self.mapped_columns | {path.place for each in paths.values() for path in each}
        used = places | {place.partition(".")[0] for place in places}
        return Layout(paths, columns, [name for name in names if name not in used])

    def _accepted_beside(self, prediction: str, key: str | None) -> list[Path]:
        """Return the path of an ``answer`` beside a prediction: it is the accepted one."""
        if key is None:
            return []
        change = f"to change that: --map {quote_argument(f'answer={key}')}"
        self.note(f"{key!r} is read as the accepted answer, because {prediction!r} is the system's; {change}")
        return [Path(key)]

    def check_mapped(self, source: str) -> None:
        """Raise an error if a mapped column was in no row."""
        for field, column in self.mapped.items():
            if column not in self.keys and field not in self._places:
                near = difflib.get_close_matches(column, list(self.keys), n=1, cutoff=0.5)
                raise FormatError(
                    f"no {column!r}, which was given for {field!r}; there are {format_names(list(self.keys))}",
                    file=source,
                    remedy=mapping_hint(({field: near[0] if near else "COLUMN"}, "")),
                )

    def place_notes(self) -> list[str]:
        """Return a note for each field that isn't in the same place in all rows."""
        several = {field: places for field, places in self._places.items() if len(places) > 1 and field in FIELDS}
        return [
            f"the field {field!r} is read from several columns: {format_names([repr(place) for place in places])}"
            for field, places in several.items()
        ]


def _mapped_path(column: str) -> Path:
    """Return the path of a mapped column; several columns can be joined to one name."""
    parts = column.split(JOIN)

    def join(row: Row) -> str | None:
        values = [str(value) for part in parts if (value := follow(row, part)) is not None]
        return JOIN.join(values) or None

    return Path(column) if len(parts) == 1 else Path("", join)


def _present(paths: list[Path], there: Mapping[str, str]) -> list[Path]:
    """Return the paths that rows with these keys may have, up to the first that is a key."""
    present: list[Path] = []
    for path in paths:
        first, dot, rest = path.place.partition(".")
        key, outer = there.get(plain_name(path.place)), there.get(plain_name(first))
        if key is not None or not path.place:
            present.append(Path(key or "", path.convert))
        elif dot and outer is not None:
            present.append(Path(f"{outer}.{rest}", path.convert))
        if key is not None and path.convert is None:
            break
    return present
