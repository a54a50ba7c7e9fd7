"""Baselines of BERTScore: the scores of unrelated texts, used for rescaling."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ragworth.errors import FormatError, InputError

COLUMNS = ["LAYER", "P", "R", "F"]


class Baseline(NamedTuple):
    """Precision, recall and F1 of unrelated texts."""

    precision: float
    recall: float
    f1: float


def read_baseline(given: float | Sequence[float] | str | Path, layer: int) -> Baseline:
    """Read a baseline from a number, three numbers, or a layer's line in a file of the package ``bert-score``."""
    if isinstance(given, (str, Path)):
        return _read(Path(given).expanduser(), layer)
    numbers = [given] * 3 if isinstance(given, (int, float)) else list(given)
    return _check_baseline(numbers, "")


def _check_baseline(numbers: Sequence[float], file: str) -> Baseline:
    # At 1 nothing is left to rescale; NaN compares with nothing.
    if len(numbers) != 3 or not all(-1 <= number < 1 for number in numbers):
        raise InputError(
            f"the baseline is {', '.join(str(number) for number in numbers)}",
            expected="a number below 1, or three: of precision, recall and F1",
            file=file,
        )
    return Baseline(*(float(number) for number in numbers))


def _read(path: Path, layer: int) -> Baseline:
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.reader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"it cannot be read: {error}", file=str(path), expected="a file of baselines") from error
    if not rows or [name.strip() for name in rows[0]] != COLUMNS:
        raise FormatError("these are not baselines", file=str(path), line=1, expected=f"the line {','.join(COLUMNS)}")
    for number, row in enumerate(rows[1:], 2):
        try:
            place, *values = (float(cell) for cell in row)
        except ValueError as error:
            raise FormatError(
                f"not four numbers: {','.join(row)[:60]}", file=str(path), line=number, expected=",".join(COLUMNS)
            ) from error
        if place == layer:
            return _check_baseline(values, str(path))
    raise FormatError(f"it has no layer {layer}", file=str(path), remedy="use this encoder's file, or pass numbers")
