"""Settings of annotators and graders: fields of a dataclass that say what they mean and what they may be.

The command line makes its options from them, so that a kind of judgment is one file.
"""

from __future__ import annotations

from dataclasses import Field, field, fields
from typing import Any, TypeVar

from ragworth.errors import InputError, listed

T = TypeVar("T")


def setting(
    default: T, help: str, *, choices: tuple[str, ...] = (), low: float | None = None, high: float | None = None
) -> T:
    """A field with a meaning, and with what its value may be. A name that ends in ``_`` loses it on the way out."""
    about = {"help": help, "choices": choices, "low": low, "high": high}
    made: Any = field(default=default, kw_only=True, metadata=about)
    return made  # type: ignore[no-any-return]


def settings_of(kind: type) -> list[Field[Any]]:
    """The settings of a class."""
    return [each for each in fields(kind) if "help" in each.metadata]


def check_settings(thing: Any, kind: str) -> None:
    """Refuse values that cannot be, all at once."""
    wrong = []
    for each in settings_of(type(thing)):
        value, about = getattr(thing, each.name), each.metadata
        if about["choices"] and value not in about["choices"]:
            wrong.append(f"{each.name} is {value!r}; it may be {listed(list(about['choices']), 12)}")
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        if (about["low"] is not None or about["high"] is not None) and value is not None:
            low, high = about["low"], about["high"]
            inside = numeric and (low is None or value >= low) and (high is None or value <= high)
            if not inside:
                bounds = f"from {low:g} to {high:g}" if None not in (low, high) else f"{low:g} or more"
                wrong.append(f"{each.name} is {value!r}; it may be {bounds}")
    if wrong:
        raise InputError(f"{kind}: {wrong[0]}", more=tuple(wrong[1:]))


def given(kind: type, settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Settings by name; unknown names are an error."""
    known = [each.name for each in settings_of(kind)]
    strange = [each for each in settings if each not in known]
    if strange:
        raise InputError(f"{name} has no setting {listed(strange)}", expected=listed(known, 20) or "no settings")
    return settings
