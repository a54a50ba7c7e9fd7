"""The scales of ratings and labels in files: whole numbers from 0 to 5, and numbers up to 100."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from ragworth.core.errors import FormatError, format_count
from ragworth.data import Judgments
from ragworth.formats.files import PathOrStr

LOWEST, HIGHEST = 0, 5
EXPECTED = f"a whole number from {LOWEST} to {HIGHEST}"

HIGHEST_LABEL = 100

LineOf = Callable[[int], int | None]
"""The line of a row of a file."""


def off_scale(value: float) -> bool:
    """Whether a number is no rating."""
    return not (LOWEST <= value <= HIGHEST and float(value).is_integer())


def check_ratings(values: pl.Series, path: PathOrStr, line_of: LineOf) -> None:
    """Reject ratings that are off the scale."""
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


def check_labels(judgments: Judgments, path: PathOrStr, line_of: LineOf) -> Judgments:
    """Reject labels of relevance above 100."""
    labels = judgments.frame.select(pl.when(pl.col("aspect") == "relevance").then("value")).to_series()
    highest = labels.max()
    if isinstance(highest, float) and highest > HIGHEST_LABEL:
        raise FormatError(
            f"the label is {highest:,.15g}",
            file=str(path),
            line=line_of(labels.arg_max() or 0),
            expected=f"a label up to {HIGHEST_LABEL}",
            remedy="correct it; divide labels on a larger scale, because nDCG takes them as gains",
        )
    return judgments
