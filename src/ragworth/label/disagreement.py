"""On which items judges disagree: from files of judgments, or from the graders of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import polars as pl

from ragworth.label import judge_tables
from ragworth.label.sources import LabelSource
from ragworth.label.tasks.contract import LabelItem


def judge_disagreement(items: Sequence[LabelItem], judgments: Sequence[pl.DataFrame]) -> dict[str, float]:
    """By item id, the mean difference of every two judges' values, as a share of the values' range.

    ``judgments`` are tables as `ragworth.label.judge_tables` reads them. Words without an order differ by 0 or 1. Items
    with fewer than two judges are left out.
    """
    tables = {str(at): frame for at, frame in enumerate(judgments) if frame.height}
    if not tables:
        return {}
    by_key: dict[tuple[str, str], float] = {}
    for table in judge_tables.combine_judges(tables).values():
        for (_,), part in table.group_by("aspect", maintain_order=True):
            for key, value in _aspect_disagreement(part).items():
                by_key[key] = max(value, by_key.get(key, 0.0))
    named = {item.id: next((key for key in _keys(item.meta) if key in by_key), None) for item in items}
    return {name: by_key[key] for name, key in named.items() if key is not None}


def _aspect_disagreement(part: pl.DataFrame) -> dict[tuple[str, str], float]:
    judged = judge_tables.JudgedItems(part)
    every = judged.values[judged.known]
    width = float(every.max() - every.min()) if len(every) else 0.0
    rows = part.drop_nulls("value").group_by("query", "item", maintain_order=True).agg("value")
    found = {}
    for query, item, values in rows.iter_rows():
        if len(values) > 1:
            gaps = [
                abs(a - b) / width if judged.ordered and width else float(a != b) for a, b in combinations(values, 2)
            ]
            found[query, item] = sum(gaps) / len(gaps)
    return found


def _keys(meta: Mapping[str, str]) -> list[tuple[str, str]]:
    """How tables of judgments name an item, with and without the number of its repeat."""
    query = meta.get("query", "")
    names = [name for name in judge_tables.ITEM_COLUMNS if name in meta]
    forms = [names, [name for name in names if name != "repeat"]]
    return [(query, " · ".join(meta[name] for name in form) or query) for form in forms]


def read_disagreement(
    items: Sequence[LabelItem], files: Sequence[str | Path], source: LabelSource | None = None
) -> dict[str, float]:
    """`judge_disagreement` of files of judgments; without files, of the graders and judgments of a source."""
    if files:
        return judge_disagreement(items, [judge_tables.read(Path(file)) for file in files])
    if source is None:
        return {}
    frames = [table.frame for table in source.judgments]
    outcomes = source.outcomes.frame if source.outcomes is not None else None
    found = judge_tables.judges_of_tables(outcomes, pl.concat(frames) if frames else None, None, (), "labels")
    several = found.filter(pl.col("judge").n_unique().over("aspect") > 1)
    return judge_disagreement(items, [several])
