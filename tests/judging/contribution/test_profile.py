"""Mean contributions by position."""

from __future__ import annotations

import polars as pl
import pytest

from ragworth.judging.contribution.rows import DETAIL_COLUMNS, position_profile
from ragworth.stats.estimate import Resampling

PLAN = Resampling(0.95, 400, 0)


def frame_of(values: dict[str, list[float]]) -> pl.DataFrame:
    """Contexts of one passage: the contributions to several answers, by query."""
    texts = dict.fromkeys(("system", "query", "source", "status", "reason"), pl.String)
    rows = [
        {"system": "s", "query": query, "repeat": at, "source": "m", "status": "ok"}
        | {"passages": ["p"], "contributions": [value], "by_sentence": [[value]], "errors": [0.0], "removed": [value]}
        for query, each in values.items()
        for at, value in enumerate(each)
    ]
    return pl.DataFrame(rows, schema={**texts, "repeat": pl.Int64, **DETAIL_COLUMNS}, orient="row")


def test_turns_of_a_conversation_and_answers_to_a_query_are_drawn_together() -> None:
    values = {f"q{at:02d}": [at * 0.3 % 1] for at in range(12)}
    (alone,) = position_profile(frame_of(values), PLAN).rows(named=True)
    turns = {f"{query}-{turn}": each for query, each in values.items() for turn in range(3)}
    conversations = {name: name.partition("-")[0] for name in turns}
    (clustered,) = position_profile(frame_of(turns), PLAN, conversations).rows(named=True)
    (naive,) = position_profile(frame_of(turns), PLAN).rows(named=True)
    (repeated,) = position_profile(frame_of({query: each * 3 for query, each in values.items()}), PLAN).rows(named=True)
    for found in (clustered, repeated):
        assert found["n"] == 36
        assert [found[name] for name in ("contribution", "low", "high")] == pytest.approx(
            [alone[name] for name in ("contribution", "low", "high")]
        )
    assert naive["high"] - naive["low"] < alone["high"] - alone["low"]
