"""Relevance labels of three public collections, read as they were published."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from ragworth import Judgments, score
from ragworth.formats import read_judgments, write

pytestmark = pytest.mark.real


class Published(NamedTuple):
    """A qrels file and what is known about it."""

    path: str
    queries: int
    labels: int
    grades: dict[float, int]
    first: tuple[str, str, float]


QRELS = {
    "vaswani": Published("vaswani/qrels.gz", 93, 2083, {1.0: 2083}, ("1", "1239", 1.0)),
    "noveleval": Published("noveleval/qrels.txt.gz", 21, 420, {0.0: 290, 1.0: 40, 2.0: 90}, ("0", "0-0", 0.0)),
    "cast19": Published(
        "cast19/2019qrels.txt.gz",
        173,
        29350,
        {0.0: 21230, 1.0: 2889, 2.0: 2157, 3.0: 1456, 4.0: 1618},
        ("31_1", "CAR_116d829c4c800c2fc70f11692fec5e8c7e975250", 0.0),
    ),
}


@pytest.mark.parametrize("name", QRELS)
def test_counts(name: str, data: Path) -> None:
    published = QRELS[name]
    judgments = read_judgments(data / published.path)
    assert judgments.frame["query"].n_unique() == published.queries
    assert len(judgments) == published.labels
    assert dict(judgments.frame["value"].value_counts().rows()) == published.grades
    assert judgments.frame.select("query", "passage", "value").row(0) == published.first
    assert judgments.frame["aspect"].unique().to_list() == ["relevance"]
    assert judgments.notes == ()


@pytest.mark.parametrize("name", QRELS)
def test_line_by_line(name: str, data: Path) -> None:
    """Every line split by hand is a row, in the order of the file."""
    with gzip.open(data / QRELS[name].path, "rt", encoding="utf-8") as stream:
        fields = [line.split() for line in stream if line.strip()]
    expected = [(query, passage, float(value)) for query, _, passage, value in fields]
    assert read_judgments(data / QRELS[name].path).frame.select("query", "passage", "value").rows() == expected


@pytest.mark.parametrize("name", QRELS)
@pytest.mark.parametrize("ending", ["qrels", "qrels.zst", "parquet", "csv"])
def test_written_and_read_again(name: str, ending: str, data: Path, tmp_path: Path) -> None:
    judgments = read_judgments(data / QRELS[name].path)
    write(judgments, tmp_path / f"copy.{ending}")
    again = read_judgments(tmp_path / f"copy.{ending}")
    assert again.frame.drop("source").equals(judgments.frame.drop("source"))


@pytest.mark.parametrize("name", QRELS)
def test_the_best_run_scores_one(name: str, data: Path) -> None:
    """A run that ranks by the labels themselves is ideal, wherever something is relevant."""
    judgments = read_judgments(data / QRELS[name].path)
    run = judgments.frame.select("query", "passage", pl.col("value").alias("score"))
    relevant = set(judgments.frame.filter(pl.col("value") > 0)["query"])
    scores = score(run, judgments, ["nDCG@10", "nDCG", "AP", "Rprec"]).frame
    assert scores.filter(pl.col("query").is_in(relevant))["value"].to_list() == pytest.approx(
        [1.0] * (4 * len(relevant)), abs=1e-12
    )
    hopeless = scores.filter(~pl.col("query").is_in(relevant))["value"].unique().to_list()
    assert hopeless in ([], [0.0])


def test_labels_as_a_data_frame(data: Path) -> None:
    """The same labels through pandas, with ids as whole numbers: text in the end."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(
        data / "vaswani" / "qrels.gz", sep=r"\s+", names=["qid", "iteration", "docno", "label"], compression="gzip"
    )
    assert frame["qid"].dtype.kind == "i"
    judgments = Judgments(frame)
    expected = read_judgments(data / "vaswani" / "qrels.gz")
    assert judgments.frame.drop("source").equals(expected.frame.drop("source"))
