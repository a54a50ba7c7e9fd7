"""Required subsets, coverage and ranked coverage on CRUX: a log of 1,542 topics, and DUC 2004 with four runs."""

from __future__ import annotations

import ast
import gzip
import json
import math
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from ragworth import Contexts, Ratings, required, score, study
from ragworth.formats import load, read_contexts, read_ratings
from ragworth.label import judge_tables
from ragworth.stats.raters import fleiss_kappa, krippendorff_alpha

pytestmark = pytest.mark.real

ETA = 3

TOPIC = re.compile(
    r"^(?P<name>\S+-\d+)\n(?P<mask>\[[^\[\]]*\])\n\[[^\[\]]*\]\n(?P<ids>\['.*'\])\n(?P<ratings>\[\[.*\]\])\n(?P<best>\[[^\[\]]*\])$",
    re.MULTILINE,
)
"""A topic in the log: its name, which sub-questions are answerable, the ratings of a report (not used here),
the required passages, their ratings, and the best rating of each answerable sub-question."""


class Topic(NamedTuple):
    name: str
    answerable: list[bool]
    passages: list[str]
    ratings: list[list[int]]
    best: list[int]


@pytest.fixture(scope="module")
def topics(data: Path) -> list[Topic]:
    with gzip.open(data / "crux_case" / "case.log.gz", "rt") as stream:
        text = stream.read()
    return [
        Topic(
            found["name"],
            [word == "True" for word in found["mask"].strip("[]").split()],
            ast.literal_eval(found["ids"]),
            ast.literal_eval(found["ratings"]),
            [int(word) for word in found["best"].strip("[]").split()],
        )
        for found in TOPIC.finditer(text)
    ]


@pytest.fixture(scope="module")
def rated(topics: list[Topic]) -> Ratings:
    rows = [
        (topic.name, passage, str(question), value)
        for topic in topics
        for passage, row in zip(topic.passages, topic.ratings, strict=True)
        for question, value in enumerate(row)
    ]
    return Ratings(pl.DataFrame(rows, schema=["query", "passage", "subquestion", "value"], orient="row"))


@pytest.fixture(scope="module")
def subsets(rated: Ratings) -> dict[str, pl.DataFrame]:
    """The required passages of each topic, in the order chosen."""
    chosen = required(rated, eta=ETA).filter(pl.col("class") == "required").sort("query", "place", maintain_order=True)
    return {str(query): rows for (query,), rows in chosen.group_by("query", maintain_order=True)}


def test_the_log_is_read_whole(topics: list[Topic]) -> None:
    assert len(topics) == len({topic.name for topic in topics}) == 1542
    for topic in topics:
        assert {len(row) for row in topic.ratings} == {len(topic.answerable)}
        columns = np.array(topic.ratings).max(axis=0)[np.array(topic.answerable)]
        assert columns.tolist() == topic.best


def test_gains_never_increase(topics: list[Topic], subsets: dict[str, pl.DataFrame]) -> None:
    falling = 0
    for topic in topics:
        gains = subsets[topic.name]["gain"].to_list()
        assert min(gains) >= 1
        falling += gains == sorted(gains, reverse=True)
    assert falling == 1542


def test_required_passages_answer_what_the_mask_says(topics: list[Topic], subsets: dict[str, pl.DataFrame]) -> None:
    for topic in topics:
        rows = dict(zip(topic.passages, topic.ratings, strict=True))
        chosen = np.array([rows[passage] for passage in subsets[topic.name]["passage"]])
        assert (chosen >= ETA).any(axis=0).tolist() == topic.answerable
        # Each answerable sub-question is gained once.
        assert subsets[topic.name]["gain"].sum() == sum(topic.answerable)


def test_the_subset_of_the_log_is_ours(topics: list[Topic], subsets: dict[str, pl.DataFrame]) -> None:
    """Greedy choice from an already greedy choice takes all of it, in the same order."""
    assert all(subsets[topic.name]["passage"].to_list() == topic.passages for topic in topics)


def test_showing_the_subset_covers_everything(topics: list[Topic], rated: Ratings) -> None:
    """Cov is 1 for the whole subset; without its last passage it lacks exactly what that one added."""
    rows = [(t.name, rank, passage) for t in topics for rank, passage in enumerate(t.passages, 1)]
    contexts = Contexts(pl.DataFrame(rows, schema=["query", "rank", "passage"], orient="row"))
    result = score(contexts, None, ["Cov", "Cov@1"], ratings=rated).frame
    assert result.filter(pl.col("metric") == "Cov")["value"].unique().to_list() == [1.0]
    first = dict(result.filter(pl.col("metric") == "Cov@1").select("query", "value").rows())
    for topic in topics:
        expected = sum(value >= ETA for value in topic.ratings[0]) / sum(topic.answerable)
        assert first[topic.name] == pytest.approx(expected, abs=1e-12)


RUNS = ["bm25", "bm25=lancer=agg_sum=nq_2", "lsr", "qwen3-embed-8b"]
EXPECTED = {
    "bm25": (0.6346, 0.4964),
    "bm25=lancer=agg_sum=nq_2": (0.8049, 0.7084),
    "lsr": (0.6666, 0.5873),
    "qwen3-embed-8b": (0.6937, 0.6060),
}
"""Coverage@10 and α-nDCG@10, computed by hand in the tests below as well."""

Matrix = dict[str, list[list[int]]]


@pytest.fixture(scope="module")
def runs(data: Path) -> Contexts:
    folder = data / "crux_duc04"
    head = "-crux-mds-duc04"
    files = [name.replace("bm25", f"bm25{head}", 1) if name.startswith("bm25") else f"{name}{head}" for name in RUNS]
    return Contexts.concat(
        [read_contexts(folder / f"{file}.run.gz", system=name) for file, name in zip(files, RUNS, strict=True)]
    )


@pytest.fixture(scope="module")
def matrices(data: Path) -> Matrix:
    with gzip.open(data / "crux_duc04" / "ratings.oracle.bm25.json.gz", "rt") as stream:
        found: Matrix = json.load(stream)
    return found


@pytest.fixture(scope="module")
def duc(runs: Contexts, matrices: Matrix) -> Ratings:
    """Row i of a matrix is the passage at rank i of the BM25 run; see the test of that."""
    bm25 = runs.frame.filter(pl.col("system") == "bm25").select("query", "rank", "passage").rows()
    rows = [
        (query, passage, str(question), value)
        for query, rank, passage in bm25
        for question, value in enumerate(matrices[query][rank - 1])
    ]
    return Ratings(pl.DataFrame(rows, schema=["query", "passage", "subquestion", "value"], orient="row"))


def test_runs_and_matrices_fit(runs: Contexts, matrices: Matrix) -> None:
    assert runs.frame.group_by("system", "query").len()["len"].unique().to_list() == [100]
    assert runs.frame["query"].n_unique() == len(matrices) == 50
    assert {(len(matrix), len(row)) for matrix in matrices.values() for row in matrix} == {(100, 15)}


def test_rows_are_in_the_order_of_bm25(runs: Contexts, matrices: Matrix) -> None:
    """The matrices carry no ids, but a passage cut from the topic's own documents (its id begins with the
    topic's) should answer something far more often than one of another topic. That separates the two kinds
    sharply under the order of the BM25 run, as the file's name says, and under no other."""
    contrast: dict[str, float] = {}
    for system in RUNS:
        own: list[bool] = []
        foreign: list[bool] = []
        for query, rank, passage in (
            runs.frame.filter(pl.col("system") == system).select("query", "rank", "passage").rows()
        ):
            answers = max(matrices[query][rank - 1]) >= ETA
            (own if passage.startswith(f"{query}:") else foreign).append(answers)
        contrast[system] = sum(own) / len(own) - sum(foreign) / len(foreign)
    assert contrast["bm25"] > 0.7
    assert max(value for system, value in contrast.items() if system != "bm25") < 0.5


def alpha_dcg(rows: list[list[int]], k: int) -> float:
    """α-DCG with α = 0.5 of passages given by their ratings, in the order shown."""
    seen: dict[int, int] = {}
    total = 0.0
    for rank, row in enumerate(rows[:k], 1):
        answered = [question for question, value in enumerate(row) if value >= ETA]
        total += sum(0.5 ** seen.get(question, 0) for question in answered) / math.log2(rank + 1)
        for question in answered:
            seen[question] = seen.get(question, 0) + 1
    return total


def greedy(rows: list[tuple[str, list[int]]], k: int) -> list[list[int]]:
    """The ideal order: each time the passage that gains most, of equal ones the largest id."""
    left = sorted(rows, reverse=True)
    order: list[list[int]] = []
    while left and len(order) < k:
        gains = [alpha_dcg([*order, row], len(order) + 1) for _, row in left]
        # Rounded, so that the same gain summed in another order is still the same.
        best = max(range(len(left)), key=lambda i: (round(gains[i], 9), -i))
        order.append(left.pop(best)[1])
    return order


def test_coverage_and_ranked_coverage(runs: Contexts, duc: Ratings, matrices: Matrix) -> None:
    result = score(runs, None, ["Cov@10", "alpha_nDCG@10"], ratings=duc)
    assert result.frame["status"].unique().to_list() == ["ok"]
    ours = {(s, q, m): value for s, q, m, value, _ in result.frame.rows()}
    rated: dict[str, dict[str, list[int]]] = {}
    for query, rank, passage in runs.frame.filter(pl.col("system") == "bm25").select("query", "rank", "passage").rows():
        rated.setdefault(query, {})[passage] = matrices[query][rank - 1]
    ideal = {query: alpha_dcg(greedy(list(rows.items()), 10), 10) for query, rows in rated.items()}
    for system in RUNS:
        for (query,), shown in runs.frame.filter((pl.col("system") == system) & (pl.col("rank") <= 10)).group_by(
            "query", maintain_order=True
        ):
            rows = [rated[str(query)].get(passage, [0] * 15) for passage in shown["passage"]]
            can = (np.array(list(rated[str(query)].values())) >= ETA).any(axis=0)
            covered = (np.array(rows) >= ETA).any(axis=0) & can
            assert ours[system, str(query), "Cov@10"] == pytest.approx(covered.sum() / can.sum(), abs=1e-12)
            expected = alpha_dcg(rows, 10) / ideal[str(query)]
            assert ours[system, str(query), "alpha_nDCG@10"] == pytest.approx(expected, abs=1e-9)


def test_means_of_the_four_runs(runs: Contexts, duc: Ratings) -> None:
    frame = score(runs, None, ["Cov@10", "alpha_nDCG@10"], ratings=duc).frame
    table = frame.group_by("system", "metric").agg(pl.col("value").mean())
    means = {(system, metric): value for system, metric, value in table.rows()}
    found = {system: (round(means[system, "Cov@10"], 4), round(means[system, "alpha_nDCG@10"], 4)) for system in RUNS}
    assert found == EXPECTED


def test_bm25_retrieved_all_that_was_rated(runs: Contexts, duc: Ratings) -> None:
    """Ratings are of its hundred passages, so it covers everything; the others miss what it did not find."""
    frame = score(runs, None, ["Cov@100"], ratings=duc).frame
    whole = frame.group_by("system").agg(pl.col("value").min())
    lowest = dict(whole.rows())
    assert lowest["bm25"] == lowest["bm25=lancer=agg_sum=nq_2"] == 1.0
    assert lowest["lsr"] < 1.0


def test_the_released_files_are_read(data: Path, rated: Ratings, duc: Ratings, runs: Contexts) -> None:
    """As read by hand above."""
    columns = ["query", "passage", "subquestion", "value"]
    log = read_ratings(f"crux:{data / 'crux_case' / 'case.log.gz'}")
    assert log.frame.select(columns).equals(rated.frame.select(columns))
    loaded = load(f"crux:{data / 'crux_duc04'}")
    assert loaded.collection.ratings is not None and loaded.contexts is not None
    assert loaded.collection.ratings.frame.select(columns).sort(columns).equals(duc.frame.select(columns).sort(columns))
    assert len(loaded.contexts) == len(runs)
    assert loaded.collection.queries.height == 50
    assert loaded.collection.subquestions.height == 750


def test_agreement_of_the_annotators(data: Path) -> None:
    exports = [judge_tables.read(data / "crux_labels" / f"annotator{n}_qlabels.jsonl.gz") for n in (1, 2, 3)]
    every = pl.concat(exports)
    wide = every.pivot("judge", index=["query", "item"], values="value").drop_nulls()
    assert wide.columns[2:] == ["annotator1", "annotator2", "annotator3"]
    assert wide.height == 435
    labels = wide[:, 2:].to_numpy()
    assert fleiss_kappa(labels).value == pytest.approx(0.5157, abs=5e-5)
    assert krippendorff_alpha(labels).value == pytest.approx(0.5161, abs=5e-5)


@pytest.mark.parametrize("whole", [True, False])
def test_exports_are_judges_of_a_study(data: Path, whole: bool) -> None:
    """The folder of all exports, or files of one kind: Fleiss' κ of section 4.3 is 0.52."""
    folder = data / "crux_labels"
    files = [folder / f"annotator{n}_qlabels.jsonl.gz" for n in (1, 2, 3)]
    found = study("judges", folder if whole else files, keep=False, resamples=100, protocol="crux").findings
    assert "435 items of 30 queries" in found.lead and "435 of them judged by all" in found.sentences[0]
    assert "Krippendorff α, ordinal 0.52" in found.sentences[0]
    table = next(table.frame for table in found.tables if table.name == "together")
    kappa = table.filter(pl.col("measure") == "Fleiss κ").row(0, named=True)
    assert kappa["value"] == pytest.approx(0.5157, abs=5e-5) and kappa["by all"] == kappa["items"] == 435
    assert ("rating" in table["aspect"].to_list()) == whole
