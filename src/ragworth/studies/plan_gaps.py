"""What a plan cannot know: whether the model is still to be asked about some passages."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from ragworth.studies.bench import Bench


def has_unasked(bench: Bench, aspect: str, pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether nothing is said yet of some of these (query, passage).

    What files say and what the model was asked before is known, also where no value came of it.
    """
    tables = [*(table.frame for table in bench.material.given), *bench.judgments]
    said = {
        pair
        for table in tables
        for pair in table.filter(pl.col("aspect") == aspect).select("query", "passage").iter_rows()
    }
    return any(pair not in said for pair in pairs)
