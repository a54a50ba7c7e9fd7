"""A project's items and labels, and what they say in ragworth's tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from ragworth.core.errors import format_count
from ragworth.data import OK
from ragworth.label.judge_tables import NO_SCORE
from ragworth.label.labels import ADJUDICATED, Labels
from ragworth.label.tasks.contract import LabelItem, LabelTask, TableName
from ragworth.two_judges.strata import CORRECTION_STRATA, SAMPLE_STRATA

NO_MAJORITY = "no-majority"
"""Status of an item whose labels have no majority, and that nobody adjudicated."""
FACTS = ("judge", "value", "label", "stratum", "probability", "seen_suggestion")


@dataclass(frozen=True)
class LabelledData:
    """Items of one task with their labels.

    Gold items and repeats never reach the tables.
    """

    task: LabelTask
    items: Mapping[str, LabelItem]
    labels: Labels

    @classmethod
    def of(cls, task: LabelTask, items: Iterable[LabelItem], labels: Labels, *, imported: bool = False) -> LabelledData:
        """Items and labels, each checked against the task; ``imported`` as in `Labels.check`."""
        by_id = {item.id: item for item in items}
        labels.check(task, by_id, imported=imported)
        return cls(task, by_id, labels)

    @cached_property
    def tables(self) -> dict[TableName, pl.DataFrame]:
        """Every label as a row: the thing's ids, aspect, judge, value, label, stratum, probability, seen_suggestion."""
        rows: dict[TableName, list[dict[str, Any]]] = {}
        for label in self.labels.answers:
            item = self.items[label.item]
            if item.is_control or label.value is None:
                continue
            for row in self.task.rows(item, label.value):
                facts = (label.annotator, row.value, row.label, item.stratum, item.probability, label.seen_suggestion)
                made = {**row.keys, "aspect": row.aspect, **dict(zip(FACTS, facts, strict=True))}
                rows.setdefault(row.table, []).append(made)
        types = {"value": pl.Float64, "label": pl.String, "probability": pl.Float64}
        return {
            name: pl.DataFrame(mine, infer_schema_length=None, schema_overrides=types) for name, mine in rows.items()
        }

    @cached_property
    def has_random_share(self) -> bool:
        return any(item.stratum in SAMPLE_STRATA and item.probability is not None for item in self.items.values())

    @cached_property
    def chosen_by_hand(self) -> int:
        """Labelled items that weren't drawn at all, in a project with a random share; estimates can't use them."""
        drawn = {*SAMPLE_STRATA, *CORRECTION_STRATA}
        return sum(self.items[name].stratum not in drawn for name in self.labelled) if self.has_random_share else 0

    @cached_property
    def labelled(self) -> set[str]:
        """The items with an answer, without those that check annotators."""
        return {label.item for label in self.labels.answers if not self.items[label.item].is_control}

    @cached_property
    def unlabelled(self) -> int:
        """Items that nobody has labelled, those that were skipped included."""
        return sum(not item.is_control for item in self.items.values()) - len(self.labelled)

    @cached_property
    def unfinished_random(self) -> int:
        """Items drawn at random that have no label; they may differ from the rest, such as difficult ones."""
        drawn = [item.id for item in self.items.values() if item.stratum in SAMPLE_STRATA]
        return sum(name not in self.labelled for name in drawn)

    @cached_property
    def unfinished_disputed(self) -> int:
        """Items drawn for disagreement that nobody has labelled or skipped.

        Until there are none, usable queries of the random share would have more corrections than others.
        """
        seen = {label.item for label in self.labels}
        return sum(item.stratum in CORRECTION_STRATA and item.id not in seen for item in self.items.values())

    def consensus(self, *, strata: Collection[str] | None = None) -> dict[TableName, pl.DataFrame]:
        """One row for each thing: the adjudicated label, or the majority's.

        The majority's is the value of more than half of the labels, otherwise none (status ``no-majority``); a word
        without a score has no value either (``no-score``). ``source`` says how many people it is from. ``strata``: only
        items of these; tables without any are left out.
        """
        parts = {
            name: frame if strata is None else frame.filter(pl.col("stratum").is_in(list(strata)))
            for name, frame in self.tables.items()
        }
        return {name: _agree(part) for name, part in parts.items() if part.height}


def key_columns(frame: pl.DataFrame) -> list[str]:
    """The columns that name the judged thing."""
    return [name for name in frame.columns if name not in FACTS]


def _agree(mine: pl.DataFrame) -> pl.DataFrame:
    keys = key_columns(mine)
    groups: dict[tuple[Any, ...], list[tuple[str, Any, Any]]] = {}
    strata: dict[tuple[Any, ...], str] = {}
    facts = mine.select("judge", "value", "label", "stratum").iter_rows()
    for key, (judge, value, label, stratum) in zip(mine.select(keys).iter_rows(), facts, strict=True):
        groups.setdefault(key, []).append((judge, value, label))
        strata[key] = stratum
    rows = [(*key, *_agreed_facts(labels), strata[key]) for key, labels in groups.items()]
    columns = {"value": pl.Float64, **dict.fromkeys(("label", "status", "source", "stratum"), pl.String)}
    schema: dict[str, Any] = {**{name: mine.schema[name] for name in keys}, **columns}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _agreed_facts(labels: list[tuple[str, Any, Any]]) -> tuple[float | None, str | None, str, str]:
    """Value, label, status and source of a thing: from the adjudicated label, or from all."""
    settled = [(value, label) for judge, value, label in labels if judge == ADJUDICATED]
    people = len({judge for judge, _, _ in labels})
    source = ADJUDICATED if settled else f"{format_count(people, 'person', 'people')}, majority"
    return (*_majority(settled or [(value, label) for _, value, label in labels]), source)


def _majority(pairs: list[tuple[Any, Any]]) -> tuple[float | None, str | None, str]:
    """The value and label of more than half of some labels, and the status."""
    (value, label), count = Counter(pairs).most_common(1)[0]
    if 2 * count <= len(pairs):
        return None, None, NO_MAJORITY
    return value, label, NO_SCORE if value is None else OK
