"""Judgments that stand in two files of a workspace: which of them counts nobody can know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import TableError, format_count, quote_short
from ragworth.data import Judgments
from ragworth.data.parts import duplicate_rows


class JudgmentSource(NamedTuple):
    """Judgments, and the key and file that they come from."""

    name: str
    table: Judgments


def merge_judgments(sources: Sequence[JudgmentSource]) -> Judgments:
    """All judgments in one table; what stands in two files is refused, with the names of both."""
    check_no_conflicts(sources)
    notes = tuple(note for each in sources for note in each.table.notes)
    return Judgments.of_parts([part for each in sources for part in each.table.parts], notes)


def check_no_conflicts(sources: Sequence[JudgmentSource]) -> None:
    """Refuse judgments that stand in two files. Each table alone was checked when it was made."""
    aspects = [set(each.table.distinct("aspect")) for each in sources]
    if sum(map(len, aspects)) == len(set().union(*aspects)):
        return  # no two tables have an aspect in common, or there are not two
    keys = pl.concat([part.select(Judgments.key) for each in sources for part in each.table.parts])
    twice = duplicate_rows(keys, Judgments.key)
    if len(twice):
        again = _keys_with_source(sources).join(keys[twice], on=Judgments.key, how="semi", maintain_order="left")
        by_key = again.group_by(Judgments.key, maintain_order=True).agg("file")
        one = by_key.row(0, named=True)
        here, there = one["file"][:2]
        raise TableError(
            f"{format_count(by_key.height, 'judgment')} twice, such as {one['aspect']} of the passage "
            f"{quote_short(one['passage'], 24)} for the query {quote_short(one['query'], 24)}: in {here} and in "
            f"{there}",
            expected="each judgment in one file",
            remedy=f"leave one of the two out, or the rows of {one['aspect']} in {there}; of a folder of results, "
            "judgments.parquet has the labels in it, and said/KIND.parquet has what the model said alone",
        )


def _keys_with_source(sources: Sequence[JudgmentSource]) -> pl.DataFrame:
    """The keys of all judgments, each with its file."""
    return pl.concat([table.frame.select(*Judgments.key, pl.lit(name).alias("file")) for name, table in sources])
