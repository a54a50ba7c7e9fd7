"""``ragworth estimate``, as somebody at a terminal meets it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import ragworth
from ragworth.cli import main
from ragworth.two_judges import estimate

EXAMPLE = Path(__file__).parents[2] / "examples" / "scoring"
QRELS = str(EXAMPLE / "qrels.txt")
RUNS = [str(EXAMPLE / "runs" / f"{name}.run") for name in ("bm25", "dense", "rerank")]
ABSTENTION = str(EXAMPLE / "abstention.csv")


@pytest.fixture
def dear(tmp_path: Path) -> Path:
    """A better judge, for whom the model declines more often, of every second query."""
    cheap = ragworth.read_judgments(ABSTENTION).frame
    queries = cheap["query"].unique(maintain_order=True).to_list()[::2]
    some = cheap.filter(pl.col("query").is_in(queries))
    path = tmp_path / "dear.parquet"
    some.with_columns(value=0.1 + 0.8 * pl.col("value")).write_parquet(path)
    return path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["estimate", *arguments])


def test_on_the_terminal_it_equals_the_library(dear: Path) -> None:
    result = call("-q", QRELS, "-j", ABSTENTION, "--expensive", str(dear), "-m", "UDCG@5", *RUNS)
    assert result.exit_code == 0, result.stderr
    contexts = ragworth.Contexts.concat([ragworth.read_contexts(run) for run in RUNS])
    judgments = [ragworth.read_judgments(path) for path in (ABSTENTION, str(dear), QRELS)]
    found = estimate(contexts, judgments[0], judgments[1], "UDCG@5", others=judgments[2])
    means, differences = result.stdout.split("Differences, query by query")
    for row in found.frame.iter_rows(named=True):
        line = next(line for line in means.splitlines() if row["system"] in line.split())
        assert line.split()[2] == f"{row['estimate']:.4f}"
        assert f"[{row['low']:.4f}, {row['high']:.4f}]" in line
        assert f"20 of 40 {row['effective']:>10} {row['judged']:>7} {row['saved']:>6}".split() == line.split()[-6:]
    assert "dense − bm25" in differences and f"{found.differences['difference'][0]:+.4f}" in differences
    assert "cheap alone, biased" in means


def test_labels_may_be_what_is_judged_twice(tmp_path: Path) -> None:
    labels = ragworth.read_judgments(QRELS).frame
    queries = labels["query"].unique(maintain_order=True).to_list()[1::2]
    labels.filter(pl.col("query").is_in(queries)).write_parquet(tmp_path / "human.parquet")
    given = ["-q", QRELS, "-j", ABSTENTION, "--expensive", str(tmp_path / "human.parquet"), RUNS[0]]
    result = call(*given, "-m", "nDCG@5", "-m", "UDCG@5", "-f", "json")
    assert result.exit_code == 0, result.stderr
    for row in json.loads(result.stdout):  # one run: no differences
        assert row["weight"] == pytest.approx(1) and row["estimate"] == pytest.approx(row["cheap"])


def test_files_that_cannot_be_used_are_told_together(dear: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("query,passage,abstention\nq01,p,often\n")
    result = call("-q", str(tmp_path / "none.txt"), "-j", ABSTENTION, "--expensive", str(tmp_path / "bad.csv"), *RUNS)
    assert result.exit_code == 2
    assert "2 problems" in result.stderr
    assert "none.txt" in result.stderr and "bad.csv" in result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("query,passage,aspect,value\n", "dear.csv: no rows"),
        ("query,passage,abstention\nQ1,p1,0.5\n", "the cheap judge saw none of the queries"),
        ("query,passage,downstream\nq01,p1,0.5\n", "of downstream, the cheap ones of abstention, relevance"),
        ("query,passage,abstention\nq01,p1,0.5\nq01,p1,0.6\n", "second row for"),
        ("query,passage,abstention\nq01,\x1b[31mp,0.5\nq01,\x1b[31mp,0.6\n", "second row for"),
    ],
)
def test_hostile_files(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "dear.csv").write_text(content)
    result = call("-q", QRELS, "-j", ABSTENTION, "--expensive", str(tmp_path / "dear.csv"), "-m", "UDCG@5", *RUNS)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "\x1b" not in result.stderr


def test_what_cannot_be_is_refused(dear: Path) -> None:
    given = ["-q", QRELS, "-j", ABSTENTION, "--expensive", str(dear)]
    result = call(*given, *RUNS)  # nDCG@10, since no metric is named
    assert result.exit_code == 2 and "nDCG@10 does not read what is judged twice" in result.stderr
    assert call(*given, "-m", "UDCG@5", "--incomplete", *RUNS).exit_code == 2
    assert call(*given, "-m", "UDCG@5", "--level", "3", *RUNS).exit_code == 2
    result = call(*given, "-m", "UDCG@5")
    assert result.exit_code == 2 and "no run was given" in result.stderr
    assert call("-q", QRELS, "-j", ABSTENTION, "-m", "UDCG@5", *RUNS).exit_code == 2
