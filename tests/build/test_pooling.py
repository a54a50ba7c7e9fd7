"""Pools of several systems, and how many relevant passages there may be."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ragworth import Contexts, Judgments, formats
from ragworth.build import pooling
from ragworth.build.pooling import estimate_relevant, merge_judgments, pool_contexts, scale_notes, unjudged_items
from ragworth.cli import main
from ragworth.stats.capture_recapture import chao2, chapman
from tests.conftest import Save


def contexts(**shown: str) -> Contexts:
    """One query; each system's passages as letters."""
    rows = [(system, "q", rank, name) for system, names in shown.items() for rank, name in enumerate(names, 1)]
    return Contexts(pl.DataFrame(rows, schema=["system", "query", "rank", "passage"], orient="row"))


def judged(relevant: str, other: str = "") -> Judgments:
    rows = [("q", name, 1.0) for name in relevant] + [("q", name, 0.0) for name in other]
    return Judgments(pl.DataFrame(rows, schema=["query", "passage", "value"], orient="row"))


def test_each_passage_is_pooled_once_with_its_best_rank() -> None:
    pool = pool_contexts(contexts(one="abcd", two="bcex"), 3)
    assert pool.frame.rows() == [("q", "a", 1, 1), ("q", "b", 2, 1), ("q", "c", 2, 2), ("q", "e", 1, 3)]


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_a_few_rows_at_a_time_give_the_same_pool(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [
        (system, f"q{query}", rank, f"p{(3 * rank + query * skip) % 8}")
        for system, skip in (("one", 1), ("two", 2), ("three", 5))
        for query in (range(6) if system != "two" else reversed(range(6)))
        for rank in range(1, 4)
    ]
    table = Contexts(pl.DataFrame(shown, schema=["system", "query", "rank", "passage"], orient="row"))
    whole = pool_contexts(table, 2)
    labels = Judgments(whole.frame.select("query", "passage", (pl.col("rank") % 2).cast(pl.Float64).alias("value")))
    counts = estimate_relevant(whole, table, labels)
    monkeypatch.setattr(pooling, "ROWS", rows)
    pool = pool_contexts(table, 2)
    assert pool.frame.equals(whole.frame)
    assert estimate_relevant(pool, table, labels).equals(counts)
    pairs = {(query, passage) for _, query, rank, passage in shown if rank <= 2}
    assert set(pool.frame.select("query", "passage").rows()) == pairs
    assert pool.frame["systems"].sum() == 3 * 6 * 2
    assert counts.select("query", "pooled", "judged").rows() == [
        (f"q{n}", size, size) for n in range(6) for size in [sum(query == f"q{n}" for query, _ in pairs)]
    ]


def test_binary_and_graded_labels_in_one_file_are_noted() -> None:
    graded = Judgments(pl.DataFrame({"query": ["q"], "passage": ["a"], "value": [3.0]}))
    assert "--graded" in scale_notes(graded, 1)[0] and "leave out --graded" in scale_notes(judged("a"), 3)[0]
    assert not scale_notes(graded, 3) and not scale_notes(judged("a"), 1) and not scale_notes(None, 3)
    level = CliRunner().invoke(main, ["build", "pool", "a.run", "-o", "out", "--level", "2"])
    assert level.exit_code == 2 and "add --graded" in level.output


def test_only_what_has_no_label_is_judged() -> None:
    pool = pool_contexts(contexts(one="ab", two="bc"), 2)
    failed = Judgments({"query": ["q"], "passage": ["c"], "value": [None], "status": ["refused"]})
    assert [item.passage for item in unjudged_items(pool, judged("b"))] == ["a", "c"]
    assert [item.passage for item in unjudged_items(pool, failed)] == ["a", "b", "c"]
    assert len(unjudged_items(pool, None)) == 3


def test_given_labels_stay_and_failed_ones_are_no_labels() -> None:
    new = Judgments(
        {"query": ["q"] * 3, "passage": ["a", "b", "c"], "value": [0.0, 1.0, None], "status": ["ok", "ok", "refused"]}
    )
    merged = merge_judgments(judged("a"), new).frame
    assert merged.select("passage", "value").rows() == [("a", 1.0), ("b", 1.0)]


def test_chapman_by_hand() -> None:
    """n₁ = 9, n₂ = 7, m = 3: 10 · 8 / 4 − 1 = 19, and 13 were caught."""
    found = chapman(9, 7, 3)
    assert found.value == pytest.approx(19) and found.n == 13
    assert found.low is not None and found.high is not None and 13 < found.low < 19 < found.high


def test_chao_by_hand() -> None:
    """f₁ = 4, f₂ = 1, m = 3: 6 + (2/3) · 4 · 3 / (2 · 2) = 8."""
    assert chao2([1, 1, 1, 1, 2, 3], 3).value == pytest.approx(8)


def test_catches_that_are_the_same_have_no_interval() -> None:
    assert chapman(7, 7, 6).low == 8  # that all were caught stays possible
    found = chapman(4, 4, 4)
    assert (found.value, found.low) == (4.0, None) and "missed" in found.reason
    assert chao2([3, 3], 3).value == 2.0


def test_chapman_covers_the_truth_of_independent_catches() -> None:
    import random

    chance, covered = random.Random(3), 0
    for _ in range(200):
        one, two = ({n for n in range(60) if chance.random() < p} for p in (0.5, 0.4))
        found = chapman(len(one), len(two), len(one & two))
        covered += found.low is not None and found.high is not None and found.low <= 60 <= found.high
    assert covered >= 180


def test_relevant_passages_are_estimated_once_all_are_judged() -> None:
    shown = contexts(one="abc", two="cde")
    pool = pool_contexts(shown, 3)
    whole = estimate_relevant(pool, shown, judged("abcd", "e")).row(0, named=True)
    # n₁ = 3 (a, b, c), n₂ = 2 (c, d), m = 1: 4 · 3 / 2 − 1 = 5
    assert (whole["found"], whole["method"]) == (4, "Chapman") and whole["N_p"] == pytest.approx(5)
    part = estimate_relevant(pool, shown, judged("ab")).row(0, named=True)
    assert part["N_p"] is None and "unjudged" in part["note"]
    alone = contexts(one="abc")
    single = estimate_relevant(pool_contexts(alone, 3), alone, judged("abc")).row(0, named=True)
    assert single["N_p"] is None and "one system" in single["note"]


@pytest.fixture
def desk(save: Save, tmp_path: Path) -> Path:
    save("one.run", "q Q0 a 1 2 one\nq Q0 b 2 1 one\n")
    save("two.run", "q Q0 b 1 2 two\nq Q0 c 2 1 two\n")
    save("queries.jsonl", json.dumps({"_id": "q", "text": "Who built the mill?"}))
    texts = {"a": "Ann built the mill.", "b": "Bob sold it.", "c": "Cod is fish."}
    save("passages.jsonl", "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in texts.items()))
    save("qrels.txt", "q 0 b 0\n")
    save("script.json", json.dumps({"*": {"YES": 0.7, "NO": 0.2, "3": 0.6, "1": 0.3}}))
    return tmp_path


def run(desk: Path, *more: str) -> str:
    names = [str(desk / name) for name in ("one.run", "two.run")]
    texts = [
        "--queries",
        str(desk / "queries.jsonl"),
        "-p",
        str(desk / "passages.jsonl"),
        "-q",
        str(desk / "qrels.txt"),
    ]
    asked = ["-M", f"scripted:{desk / 'script.json'}", "-s", str(desk / "s.sqlite"), "-o", str(desk / "out")]
    done = CliRunner().invoke(main, ["build", "pool", *names, *texts, *asked, *more])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_judges_the_unjudged_and_writes_labels(desk: Path) -> None:
    assert "3 pooled passages of 2 systems, 2 to judge" in run(desk, "--dry-run")
    assert not (desk / "out").exists()
    run(desk, "--quiet")
    labels = formats.read_judgments(f"trec:{desk / 'out' / 'qrels.txt'}").frame
    assert dict(labels.select("passage", "value").rows()) == {"b": 0.0, "a": 1.0, "c": 1.0}
    rows = pl.read_parquet(desk / "out" / "judgments.parquet")
    assert rows["p"].to_list() == pytest.approx([0.7 / 0.9] * 2)
    assert pl.read_csv(desk / "out" / "relevant.csv")["found"].to_list() == [2]


def test_grades_have_an_expected_value(desk: Path) -> None:
    run(desk, "--quiet", "--graded", "--system", "bm25=bm25 % 2")
    rows = pl.read_parquet(desk / "out" / "judgments.parquet")
    assert set(rows["value"]) == {3.0}
    assert rows["expected"][0] == pytest.approx((3 * 0.6 + 0.3) / 0.9)


def test_ids_with_white_space_are_written_as_a_table(desk: Path, save: Save) -> None:
    save("one.run", '{"query": "q", "contexts": [{"id": "my doc", "text": "Ann built the mill."}]}')
    path = (desk / "one.run").rename(desk / "one.jsonl")
    asked = ["-M", f"scripted:{desk / 'script.json'}", "-s", str(desk / "s.sqlite"), "-o", str(desk / "out"), "--quiet"]
    texts = ["--queries", str(desk / "queries.jsonl"), "-p", str(desk / "passages.jsonl")]
    done = CliRunner().invoke(main, ["build", "pool", str(path), *texts, *asked])
    assert done.exit_code == 0, done.output
    assert formats.read_judgments(desk / "out" / "qrels.parquet").frame["passage"].to_list() == ["my doc"]
    assert not (desk / "out" / "qrels.txt").exists()
