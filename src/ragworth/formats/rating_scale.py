"""The scale of ratings in files: whole numbers from 0 to 5."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from ragworth.errors import FormatError, format_count
from ragworth.formats.files import PathOrStr

LOWEST, HIGHEST = 0, 5
EXPECTED = f"a whole number from {LOWEST} to {HIGHEST}"


def off_scale(value: float) -> bool:
    """Whether a number is no rating."""
    return not (LOWEST <= value <= HIGHEST and float(value).is_integer())


def check_ratings(values: pl.Series, path: PathOrStr, line_of: Callable[[int], int | None]) -> None:
    """Reject ratings that are off the scale; ``line_of`` gives the line of a row of the file."""
    numbers = values.cast(pl.Float64)
    wrong = (~numbers.is_between(LOWEST, HIGHEST) | (numbers != numbers.round())).fill_null(False).arg_true()
    if not len(wrong):
        return
    raise FormatError(
        f"the rating is {numbers[int(wrong[0])]:g}",
        file=str(path),
        line=line_of(int(wrong[0])),
        more=(f"{format_count(len(wrong), 'rating')} off the scale in all",) if len(wrong) > 1 else (),
        expected=EXPECTED,
        remedy="map them to that scale; where a rating is missing, drop the row or give the reason in 'status'",
    )
