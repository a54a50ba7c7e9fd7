"""Judgments that stand in two files of a workspace: which of them counts nobody can know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ragworth.errors import TableError, counted, quoted
from ragworth.tables import Judgments


class Source(NamedTuple):
    """Judgments, and the key and file that they come from."""

    name: str
    table: Judgments


def together(sources: Sequence[Source]) -> Judgments:
    """All judgments in one table; what stands in two files is refused, with the names of both."""
    named = [table.frame.select(*Judgments.key, pl.lit(name).alias("file")) for name, table in sources]
    rows = pl.concat(named) if named else pl.DataFrame(schema=[*Judgments.key, "file"])
    again = rows.filter(pl.struct(Judgments.key).is_duplicated())
    if again.height:
        by_key = again.group_by(Judgments.key, maintain_order=True).agg("file")
        one = by_key.row(0, named=True)
        here, there = one["file"][:2]
        raise TableError(
            f"{counted(by_key.height, 'judgment')} twice, such as {one['aspect']} of the passage "
            f"{quoted(one['passage'], 24)} for the query {quoted(one['query'], 24)}: in {here} and in {there}",
            expected="each judgment in one file",
            remedy=f"leave one of the two out, or the rows of {one['aspect']} in {there}; of a folder of results, "
            "judgments.parquet has the labels in it, and said/KIND.parquet has what the model said alone",
        )
    return Judgments.concat([each.table for each in sources])
