"""Hops of an agent: what each search added, in its order and in any order, and when it could have stopped."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ragworth.calls.job import Job
from ragworth.core.errors import FormatError
from ragworth.judging import ANNOTATORS
from ragworth.judging.contract import run_task
from ragworth.judging.contribution.hops import HopTable, hop_contexts, hop_rows, hops_needed, hops_of, read_hops
from ragworth.judging.contribution.kinds import ContributionAnnotator, HopContribution
from ragworth.judging.judge import JudgingResult
from ragworth.judging.runner import annotation_items, build_judge
from tests.judging.contribution.readers import Value, reader, world

ROWS = [("q1", 1, "p0", "who built it"), ("q1", 1, "p1", "who built it"), ("q1", 2, "p1", "her name"),
        ("q1", 2, "p2", "her name"), ("q1", 3, "p3", "when")]  # fmt: skip
FRAME = pl.DataFrame(ROWS, schema=["query", "hop", "passage", "search"], orient="row")


def split(value: Value, hops: HopTable) -> JudgingResult:
    with Job(reader(value, 4), None) as job:
        plain = build_judge(ANNOTATORS, "contribution", job.card, world(4), None, {"answer": "accepted"})
        assert isinstance(plain, ContributionAnnotator)
        annotator = HopContribution.of(plain, hops)
        return run_task(annotator, annotation_items(annotator, hop_contexts(hops), world(4)), job)


def test_a_passage_belongs_to_the_hop_that_found_it_first() -> None:
    (hops,) = hops_of(FRAME).values()
    assert [(hop.name, hop.search, hop.passages) for hop in hops] == [
        ("hop 1", "who built it", ("p0", "p1")),
        ("hop 2", "her name", ("p2",)),
        ("hop 3", "when", ("p3",)),
    ]


def test_hops_of_several_turns_come_turn_by_turn() -> None:
    rows = [("q1", 2, 1, "p2"), ("q1", 1, 2, "p1"), ("q1", 1, 1, "p0")]
    frame = pl.DataFrame(rows, schema=["query", "turn", "hop", "passage"], orient="row")
    (hops,) = hops_of(frame).values()
    assert [(hop.name, *hop.passages) for hop in hops] == [
        ("turn 1, hop 1", "p0"),
        ("turn 1, hop 2", "p1"),
        ("turn 2, hop 1", "p2"),
    ]


def chained(numbers: frozenset[int]) -> float:
    """The second hop only helps after the first, and the third adds nothing."""
    return -20 + 3.0 * (0 in numbers) + 6.0 * ({0, 2} <= numbers)


def test_hops_have_what_they_added_and_what_they_contribute() -> None:
    found = split(chained, hops_of(FRAME))
    rows = hop_rows(found.frame)
    assert rows["added"].to_list() == pytest.approx([3.0, 6.0, 0.0])
    assert rows["contribution"].to_list() == pytest.approx([6.0, 3.0, 0.0])  # the 6 of both are shared
    assert rows["search"].to_list() == ["who built it", "her name", "when"]
    got = dict(found.frame.select("aspect", "value").iter_rows())
    assert got["hops-needed"] == 2
    assert got["gain"] == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("growing", "needed"),
    [((-9.0, -9.0), 0), ((-9.0, -2.0, -2.0), 1), ((-9.0, -1.0, -3.0), 1), ((-9.0, -8.0, -1.0), 2)],
)
def test_hops_needed(growing: tuple[float, ...], needed: int) -> None:
    assert hops_needed(growing, 0.1) == needed


def test_contexts_without_hops_have_a_status() -> None:
    hops = hops_of(FRAME)
    with Job(reader(chained, 4), None) as job:
        plain = build_judge(ANNOTATORS, "contribution", job.card, world(4), None, {"answer": "accepted"})
        assert isinstance(plain, ContributionAnnotator)
        items = annotation_items(plain, hop_contexts(hops), world(4))
        found = run_task(HopContribution.of(plain, {}), items, job)
    assert set(found.frame["status"]) == {"no-hops"}


def test_files_are_read_and_wrong_ones_refused_with_the_row(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "hops.csv")
    FRAME.write_ndjson(tmp_path / "hops.jsonl")
    assert read_hops(tmp_path / "hops.csv") == read_hops(tmp_path / "hops.jsonl") == hops_of(FRAME)
    FRAME.with_columns(hop=pl.lit("first")).write_csv(tmp_path / "wrong.csv")
    with pytest.raises(FormatError, match="row 1: the hop is 'first'"):
        read_hops(tmp_path / "wrong.csv")
    with pytest.raises(FormatError, match="row 2: the hop is None"):
        hops_of(FRAME.with_columns(hop=pl.when(pl.int_range(pl.len()) != 1).then("hop")))
    with pytest.raises(FormatError, match="no column 'hop'"):
        hops_of(FRAME.drop("hop"))


def test_the_command_splits_among_passages_and_hops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragworth.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ragworth.cli.annotate.open_named_model", lambda spec, settings: reader(chained, 4))
    texts = world(4)
    texts.queries.rename({"query": "id"}).write_ndjson("queries.jsonl")
    texts.passages.select("passage", "text").rename({"passage": "id"}).write_ndjson("passages.jsonl")
    Path("answers.jsonl").write_text('{"query_id": "q1", "answers": ["Ann Lee built the mill."]}\n', encoding="utf-8")
    FRAME.write_csv("hops.csv")
    files = ["--queries", "queries.jsonl", "-p", "passages.jsonl", "-a", "answers.jsonl", "--answer", "accepted"]
    command = ["annotate", "contribution", "--hops", "hops.csv", *files, "--each", "each.csv", "-o", "out.parquet"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "hops-needed" in done.output
    assert pl.read_csv("each.csv")["added"].to_list() == pytest.approx([3.0, 6.0, 0.0])
    plan = CliRunner().invoke(main, [*command, "--dry-run", "-s", "other.sqlite"])
    assert plan.exit_code == 0, plan.output
