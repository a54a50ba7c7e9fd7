"""Several answers to a query: the report has what was found about each of them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ragworth import evaluate
from tests.evaluation.samples import Models, lines, rests_on_first, statuses, workspace

TOML = """
k = 2
[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
answers = "accepted.jsonl"
qrels = "qrels.txt"
[systems]
first = {run = "first.run"}
[answers]
file = "answers.csv"
[grades]
deterministic = true
contribution = true
"""


@pytest.mark.slow
@pytest.mark.usefixtures("whole_report")
def test_contributions_to_every_answer_reach_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = Models(rests_on_first)
    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", models)
    folder = workspace(tmp_path / "data", TOML)
    (folder / "answers.jsonl").rename(folder / "accepted.jsonl")
    rows = [("first", "q1", 0, "Ann did"), ("first", "q1", 1, "Bob did"), ("first", "q1", 2, "Ann Lee")]
    table = pl.DataFrame(rows, schema=["system", "query", "repeat", "text"], orient="row")
    table.write_csv(folder / "answers.csv")
    lines(folder / "queries.jsonl", [{"_id": "q1", "text": "Who built the mill?"}])
    found = evaluate(folder)
    assert found.results is not None and found.report is not None
    single = found.results.said_of_answers("graded-contribution")
    assert single is not None
    assert single.drop_nulls("contributions")["repeat"].to_list() == [0, 1, 2]
    text = found.report.read_text(encoding="utf-8")
    for number, words in enumerate(("Ann did", "Bob did", "Ann Lee")):
        assert words in text
        assert f"first · answer {number + 1}" in text
    assert "in the median answer, 1 passage carries 90 % of the answer (3 of 3 answers)" in text
    assert "answer 2: rank 1, &#39;p1&#39;, makes the wrong answer likelier by 8.0 nats" in text
    assert models.taken()
    again = evaluate(folder)
    assert statuses(again.stages)["grade.contribution"] == "kept"
    assert again.results is not None and again.results.said_of_answers("graded-contribution").equals(single)  # type: ignore[union-attr]
