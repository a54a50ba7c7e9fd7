"""Pools of several systems, and how many relevant passages there may be."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ragworth import Contexts, Judgments, formats
from ragworth.build.pooling import estimate_relevant, merge_judgments, pool_contexts, unjudged_items
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
