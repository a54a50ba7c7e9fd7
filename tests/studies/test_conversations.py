"""Studies of turns: whole conversations are drawn, and tables say how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks.simulated_reader import Reader, collection

import ragworth
from ragworth.report.study import Findings
from ragworth.studies import STUDIES
from ragworth.studies.contract import Case
from tests.studies.conftest import Opened
from tests.studies.test_company import LoudestVoice
from tests.studies.test_noise import Listener

TURNS = 3
"""Of each conversation."""

SETTINGS: dict[str, dict[str, Any]] = {
    "alignment": {"sampling": "plain", "contexts": 5},
    "ideal": {},
    "distractors": {"k": 2, "hard": 0.6},
    "position": {},
    "context-size": {"sizes": "1,3", "contexts": 4},
    "win-rate": {},
    "company": {"contexts": 2, "k": 3},
    "noise": {},
    "top-k": {"sizes": "1,3", "least": 10},
}


def with_conversations(case: Case, turns: int) -> Case:
    """The same case, with each ``turns`` of its queries as one conversation."""
    texts = case.results.collection
    named = enumerate(texts.queries["query"])
    rows: list[tuple[object, ...]] = [(query, f"c{at // turns}", at % turns + 1, [], None) for at, query in named]
    frame = pl.DataFrame(rows, schema=texts.turns.schema, orient="row")
    return replace(case, results=replace(case.results, collection=replace(texts, turns=frame)))


def intervals(found: Findings) -> Iterator[tuple[str, dict[str, Any]]]:
    for table in found.tables:
        if "low" in table.frame.columns and "conversations" in table.frame.columns:
            yield from ((table.name, row) for row in table.frame.iter_rows(named=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETTINGS)
def test_a_study_of_turns_draws_whole_conversations(kind: str, tmp_path: Path, opened: Opened) -> None:
    opened.reader = {"noise": Listener(), "company": LoudestVoice(noise=0.0)}.get(kind, Reader())
    settings = {"resamples": 200, **SETTINGS[kind]}
    run = ragworth.study(kind, collection(tmp_path / "w", queries=24), keep=False, **settings)
    (case,), study = run.cases, STUDIES.get(kind)(**settings)
    alone, turns, few = (study.find([with_conversations(case, number)]) for number in (1, TURNS, 12))
    assert all(a.frame.equals(b.frame) for a, b in zip(alone.tables, run.findings.tables, strict=True))
    assert not any("draw whole conversations" in note for note in alone.notes)
    assert any("24 turns of 8 conversations" in note for note in turns.notes)
    rows = list(intervals(turns))
    assert rows
    assert all(row["conversations"] is None or row["conversations"] <= 8 for _, row in rows)
    assert any(row["conversations"] == 8 for _, row in rows)
    several = [row for _, row in intervals(few) if (row.get("queries") or row.get("n")) != row["conversations"]]
    assert several and all(row["low"] is None for row in several if row["conversations"] is not None)
    assert any("fewer than 5" in note for note in few.notes)
