"""Arms: ways to get a search text for each turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ragworth.collection import Collection
from ragworth.conversations import Turn
from ragworth.errors import InputError, format_count, format_list, quote_short
from ragworth.generation.rewriter import NO_HISTORY
from ragworth.generation.turn_baselines import BASELINES
from ragworth.retrieval.history_terms import add_history_terms
from ragworth.tables import OK

LAST, HUMAN, TERMS = "last", "human", "history-terms"


class Arm(NamedTuple):
    """Search texts of all turns.

    ``fallbacks`` counts turns that are searched as they are because there is no rewrite, by reason.
    """

    name: str
    texts: Mapping[str, str]
    fallbacks: Mapping[str, int] = {}


def baseline_arms(turns: Sequence[Turn], collection: Collection) -> list[Arm]:
    """The arms by rule, and the human rewrites if there are any for turns with a history."""
    arms = []
    for name, rule in BASELINES.items():
        texts = {turn.query: rule(turn) for turn in turns}
        lacking = sum(text is None for text in texts.values())
        if name == HUMAN and all(turn.rewrite is None for turn in turns if turn.history):
            continue
        filled = {turn.query: texts[turn.query] or turn.question for turn in turns}
        arms.append(Arm(name, filled, {"no human rewrite": lacking} if lacking else {}))
    terms = add_history_terms(turns, collection.passages["text"])
    arms.append(Arm(TERMS, {turn.query: text for turn, text in zip(turns, terms, strict=True)}))
    return arms


def arm_from_rewrites(name: str, turns: Sequence[Turn], frame: pl.DataFrame) -> Arm:
    """An arm from the rows that `ragworth.generation.rewriter` made; without a rewrite, the turn as it is."""
    found = {row["query"]: row for row in frame.iter_rows(named=True)}
    texts, fallbacks = {}, Counter[str]()
    for turn in turns:
        row = found[turn.query]
        texts[turn.query] = row["text"] if row["status"] == OK else turn.question
        if row["status"] not in (OK, NO_HISTORY):
            fallbacks[row["status"]] += 1
    return Arm(name, texts, dict(fallbacks))


def arm_from_file(name: str, turns: Sequence[Turn], frame: pl.DataFrame, file: str) -> Arm:
    """An arm from a file of rewrites (query, text); a turn with a history that has none is an error."""
    given = dict(frame.select("query", "text").iter_rows())
    missing = [turn.query for turn in turns if turn.history and not given.get(turn.query, "").strip()]
    if missing:
        few = format_list([quote_short(query, 24) for query in missing], 10)
        raise InputError(
            f"no rewrite of {format_count(len(missing), 'turn')} ({few})",
            file=file,
            expected="a rewrite of each turn that has a history",
        )
    return Arm(name, {turn.query: given.get(turn.query, "").strip() or turn.question for turn in turns})
