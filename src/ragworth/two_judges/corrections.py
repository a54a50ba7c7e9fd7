"""Labels of the expensive judge in place of the cheap judge's, outside the sample too.

If it is decided independently of the sample which labels these are, the corrected cheap judge is just another cheap
judge: the same everywhere, and closer to the expensive one. So estimates stay unbiased, and get shorter intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import format_count
from ragworth.data import OK


class Corrected(NamedTuple):
    """Cheap values with corrections, and what is to be said of them."""

    frame: pl.DataFrame
    note: str


def correct_cheap(cheap: pl.DataFrame, corrections: pl.DataFrame, keys: Sequence[str]) -> Corrected:
    """Put corrections that have a value in the place of the cheap values with the same keys."""
    better = corrections.filter(pl.col("status") == OK).select(*keys, better="value")
    joined = cheap.join(better, on=list(keys), how="left", maintain_order="left")
    known = pl.col("better").is_not_null()
    frame = joined.with_columns(
        value=pl.coalesce("better", "value"), status=pl.when(known).then(pl.lit(OK)).otherwise("status")
    ).drop("better")
    used = int(joined["better"].is_not_null().sum())
    note = f"{format_count(used, 'value')} of the cheap judge corrected by labels of disputed items"
    if unused := better.height - used:
        note += f"; {format_count(unused, 'correction')} of what the cheap judge didn't judge"
    return Corrected(frame.select(cheap.columns), note)
