"""Relevance that the reader judged itself: there, distraction can't be measured.

A passage is a distractor if it is irrelevant and the model answers from it all the same. If the same model says which
passages are irrelevant, it calls those irrelevant that it wouldn't answer from, so it never seems to be distracted: the
result would be 0 whatever the passages are. A judge that was shown the accepted answers doesn't go by its own opinion.
"""

from __future__ import annotations

import polars as pl

from ragworth.core.errors import format_count, format_list
from ragworth.data import OK, Judgments, Outcomes

UNLABELLED_SOURCES = r" · |^containment "
"""Sources of relevance by a model and its prompt, or by a match with accepted answers."""

READER_JUDGED = "reader-judged"
"""Status of what can't be measured because the reader judged relevance itself."""

READER_REASON = "can't be measured, because the model that reads the passages also judged their relevance"

ANSWERS_SHOWN = "accepted answers shown"
"""Part of the source of a judgment whose judge saw the accepted answers."""

_MODEL = r"^(.+?) · "
"""The model in the source of a judgment that ragworth made."""

_NAMED_P = r"((?:calibrated|raw) p\b.*)$"
"""The p of a model that has two, in the source of a judgment that ragworth made."""


def reader_judged(judgments: Judgments | None) -> pl.DataFrame:
    """query, passage: passages whose relevance was judged by the model whose abstention they have."""
    keys = ["query", "passage"]
    none = pl.DataFrame(schema=dict.fromkeys(keys, pl.String))
    if judgments is None:
        return none
    relevance, readers = _judges(judgments, "relevance"), _judges(judgments, "abstention")
    shared = set(relevance["model"]) & set(readers["model"])
    if not shared:
        return none
    mine = _of_models(judgments, "relevance", relevance, shared)
    return mine.join(_of_models(judgments, "abstention", readers, shared), on=[*keys, "model"], how="semi").select(keys)


def abstention_notes(values: Judgments | Outcomes | None) -> list[str]:
    """Say which p of passages or contexts is read, if the reader has a calibrated one besides its own."""
    if values is None:
        return []
    judged = values.having("aspect", ["abstention"]).frame.filter(pl.col("status") == OK)
    unit = "passage" if isinstance(values, Judgments) else "context"
    named = judged["source"].str.extract(_NAMED_P).drop_nulls().value_counts()
    words = [f"the {name} of {format_count(count, unit)}" for name, count in named.sort("source").iter_rows()]
    return [f"p_abstain is {format_list(words)}"] if words else []


def _judges(judgments: Judgments, aspect: str) -> pl.DataFrame:
    """source, model: the models that judged an aspect, leaving out judges that saw the accepted answers."""
    parts = [part.select("source").unique() for part in judgments.having("aspect", [aspect]).parts]
    sources = pl.concat(parts).unique(maintain_order=True)
    own = sources.filter(~pl.col("source").str.contains(ANSWERS_SHOWN, literal=True))
    return own.with_columns(model=pl.col("source").str.extract(_MODEL)).drop_nulls("model")


def _of_models(judgments: Judgments, aspect: str, judges: pl.DataFrame, models: set[str]) -> pl.DataFrame:
    rows = judgments.having("aspect", [aspect]).frame.select("query", "passage", "source")
    return rows.join(judges.filter(pl.col("model").is_in(list(models))), on="source", maintain_order="left")
