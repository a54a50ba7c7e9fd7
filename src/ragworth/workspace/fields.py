"""Types of the values in a ``ragworth.toml``, for pydantic to check.

pydantic finds all problems at once. msgspec imports faster, but stops at the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field

TextValue = Annotated[str, Field(min_length=1)]
TextListValue = Annotated[
    tuple[TextValue, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]
"""One text, or a list of them."""
Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
PositiveAmount = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[int, Field(strict=True, ge=1)]
Several = Annotated[int, Field(strict=True, ge=2)]
SWITCH = BeforeValidator(lambda value: {True: {}, False: None}[value] if isinstance(value, bool) else value)
"""Instead of a table: true for an empty one, false for none."""
WITHOUT_FALSE = BeforeValidator(
    lambda value: {key: value[key] for key in value if value[key] is not False} if isinstance(value, dict) else value
)


class TomlTable:
    """A table of the file; it refuses keys that it doesn't know."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


def split(rest: str, *fields: str) -> BeforeValidator:
    """A table that has keys of its own, and others, in the mapping ``rest``, which are checked where they are used."""

    def parts(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        known = {key: value[key] for key in fields if key in value}
        return {**known, rest: {key: each for key, each in value.items() if key not in known}}

    return BeforeValidator(parts)


FLAT = ("metrics", "paths")
"""Tables whose keys are fields of the workspace, with aliases such as ``metrics.use``."""

LIFTED = {"judgments": ("files", "hops"), "grades": ("files",)}
"""Keys of other tables that are."""


def flatten(tables: dict[str, Any]) -> dict[str, Any]:
    """The file with the keys of `FLAT` and `LIFTED` at the top; one file a system."""
    flat: dict[str, Any] = {}
    for name, table in tables.items():
        if name in FLAT and isinstance(table, dict):
            flat |= {f"{name}.{key}": value for key, value in table.items()}
        elif name in LIFTED and isinstance(table, dict):
            flat[name] = {key: table[key] for key in table if key not in LIFTED[name]}
            flat |= {f"{name}.{key}": table[key] for key in LIFTED[name] if key in table}
        elif name == "systems" and isinstance(table, dict):
            flat[name] = {key: value for pair in table.items() for key, value in _expand_files(*pair)}
        else:
            flat[name] = table
    return flat


def _expand_files(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """``"*" = {run = ["a", "b"]}`` as ``"*"`` and ``"*2"``, with a file each."""
    files = value.get("run") if name == "*" and isinstance(value, dict) else None
    if not isinstance(files, list) or not files:
        yield name, value
        return
    for number, file in enumerate(files, 1):
        yield name if number == 1 else f"{name}{number}", {**value, "run": file}
