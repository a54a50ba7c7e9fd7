"""``ragworth study company``: a reader that believes the loudest voice, for whom passages don't add up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from benchmarks.simulated_reader import VOICE, Reader, collection

import ragworth
from ragworth.core.errors import InputError
from ragworth.judging.contribution.rows import context_rows
from ragworth.llm.contract import Request, Score, Trace
from ragworth.llm.scripted import ScriptedReply
from tests.studies.conftest import Opened


@dataclass
class LoudestVoice(Reader):
    """Scores an answer by the loudest voice that says it, less half of the loudest that says something else."""

    def __call__(self, request: Request) -> ScriptedReply:
        if not isinstance(request, Score):
            return super().__call__(request)
        voices = [(float(sure), said) for sure, said in VOICE.findall(request.prompt.messages[-1].content)]
        own, other = (
            max((sure for sure, said in voices if (said == request.continuation) is mine), default=0.0)
            for mine in (True, False)
        )
        words = tuple(request.continuation.split(" "))
        return Trace(words, ((-8 + 6 * own - 3 * other) / len(words),) * len(words))


@pytest.mark.slow
def test_what_is_lost_in_company_is_found(tmp_path: Path, opened: Opened) -> None:
    opened.reader = LoudestVoice(noise=0.0)
    found = ragworth.study("company", collection(tmp_path / "w", queries=24), keep=False, contexts=2, k=4)
    tables = {table.name: table.frame for table in found.findings.tables}
    single = dict(tables["single"].select("judgment", "correlation").iter_rows())
    # Relevant voices help and others do harm, so utility, which has that sign, goes with contributions most closely.
    assert single["utility"] > 0.8
    assert single["utility"] > single["1 − p_abstain"]
    assert found.findings.sentences[0].startswith("Of single judgments, ")
    # By hand, from the values of single passages that are kept with each context.
    rows = context_rows(found.cases[0].results.said["contribution"])
    by_query: dict[str, list[float]] = {}
    for row in rows.iter_rows(named=True):
        alone = sum(max(value, 0.0) for value in row["single"])
        if alone > 0:
            by_query.setdefault(row["query"], []).append(1 - (row["logprob"] - row["logprob_alone"]) / alone)
    overlap = sum(sum(each) / len(each) for each in by_query.values()) / len(by_query)
    means = dict(tables["independence"].select("what", "mean").iter_rows())
    assert means["overlap"] == pytest.approx(overlap)
    assert {"gain", "harm", "UDCG@4"} <= set(tables["prediction"]["metric"])


@pytest.mark.slow
def test_results_without_contributions_to_accepted_answers_are_refused(tmp_path: Path, opened: Opened) -> None:
    opened.reader = LoudestVoice(noise=0.0)
    folder = collection(tmp_path / "w", queries=3)
    ragworth.evaluate(folder)
    with pytest.raises(InputError, match="no contributions to accepted answers"):
        ragworth.study("company", folder / "results", keep=False)


@pytest.mark.slow
@pytest.mark.usefixtures("whole_report")
def test_the_report_shows_what_passages_did_and_says_that_a_judge_is_unfit(tmp_path: Path, opened: Opened) -> None:
    opened.reader = LoudestVoice(noise=0.0)
    folder = collection(tmp_path / "w", queries=3, toml="contribution = true\nsupport = true\n")
    results = ragworth.evaluate(folder).results
    assert results is not None
    frame = results.said["graded-contribution"]
    known = context_rows(frame).filter(pl.col("contributions").is_not_null())
    assert known.height
    text = (folder / "results" / "report.md").read_text(encoding="utf-8")
    assert "What each passage did for the answer" in text
    assert "in the median context" in text
    assert "is not known: unfit-model" in text
    first = known.row(0, named=True)
    best = max(zip(first["contributions"], first["passages"], strict=True))
    assert f"{best[1]} | {best[0]:.4f} |" in text
