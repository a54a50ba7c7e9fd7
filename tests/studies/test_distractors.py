"""``ragworth study distractors``: hard distractors cost what was planted, and every number is what it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.simulated_reader import Reader, collection

import ragworth
from ragworth.core.errors import InputError
from tests.studies.conftest import Opened
from tests.studies.planted import contexts, expected, given, grades, sureness, undrawn, wilcoxon

LIMITS: dict[str, Any] = {"k": 3, "weak": 0.3, "hard": 0.6}


def test_hard_distractors_cost_what_was_planted(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Reader(noise=0.0)
    found = ragworth.study("distractors", collection(tmp_path / "w", queries=60), keep=False, **LIMITS)
    case, sure = found.cases[0], sureness(found.cases[0])
    assert grades(case) == expected(case)
    shown = contexts(case)
    right: dict[str, list[float]] = {"weak": [], "hard": []}
    for (system, query), passages in shown.items():
        gold = [at for at, each in enumerate(passages) if "gold" in each]
        assert len(passages) == 3 and len(gold) == 1
        assert passages[gold[0]] == shown["hard", query][gold[0]]  # the same passage, at the same position
        others = [sure(each) for each in passages if "gold" not in each]
        assert max(others) < 0.3 if system == "weak" else min(others) > 0.6
        right[system].append(float(sure(passages[gold[0]]) > max([*others, 0.3])))
    weak, hard = (sum(each) / len(each) for each in right.values())
    rows = found.findings.tables[0].frame.to_dicts()
    assert [row["correct"] for row in rows] == pytest.approx([weak, hard]) and weak - hard > 0.3
    assert [row["correct"] + row["abstained"] + row["wrong"] for row in rows] == pytest.approx([1, 1])
    gap = found.findings.tables[1].frame.row(0, named=True)
    differences = np.array(right["weak"]) - np.array(right["hard"])
    assert gap["difference"] == pytest.approx(weak - hard) and gap["p"] == pytest.approx(wilcoxon(differences))
    assert gap["low"] <= gap["difference"] <= gap["high"] and gap["queries"] == len(differences)
    assert found.findings.sentences[0].startswith(f"Hard distractors cost {100 * (weak - hard):.1f} points of accuracy")
    metrics = {row["metric"]: row["difference"] for row in found.findings.tables[2].frame.to_dicts()}
    assert metrics["nDCG(ideal=retrieved)@3"] == metrics["P@3"] == metrics["RR@3"] == 0 and metrics["UDCG@3"] > 0


def test_the_published_design_reads_the_models_own_p(tmp_path: Path, opened: Opened) -> None:
    opened.declining = 2.402
    place = collection(tmp_path / "w", queries=40)
    # Divided by 2.402, log-odds of 0.9 (the surest distractor) are those of 0.71: none is hard.
    with pytest.raises(InputError, match="fewer than 1 hard distractor"):
        ragworth.study("distractors", place, keep=False, k=2)
    found = ragworth.study("distractors", place, protocol="paper", keep=False, k=2)
    judgments = found.cases[0].results.judgments
    assert judgments is not None
    assert all(source.endswith("raw p") for source in judgments.of("abstention")["source"])
    assert any(note.startswith("p_abstain is the raw p of") for note in found.findings.notes)


def test_queries_without_enough_of_one_kind_are_counted(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=40, far=0)
    labels = (
        (place / "qrels.txt")
        .read_text()
        .replace("q001-gold0 1", "q001-gold0 0")
        .replace("q001-gold1 1", "q001-gold1 0")
    )
    (place / "qrels.txt").write_text(labels.replace("q001-gold2 1", "q001-gold2 0"), encoding="utf-8")
    settings: dict[str, Any] = {"k": 5, "weak": 0.3, "hard": 0.6}
    found = ragworth.study("distractors", place, keep=False, **settings)
    left = {row["reason"]: row["queries"] for row in found.findings.left_out.to_dicts()}
    texts = pl.read_ndjson(place / "passages.jsonl")
    lacking = {"hard": 0, "weak": 0, "both": 0}
    for number in range(40):
        mine = texts.filter(pl.col("id").str.starts_with(f"q{number:03d}-near"))["text"]
        sure = [float(each.split("sure=")[1].split()[0]) for each in mine]
        few = [
            kind for kind, n in (("weak", sum(s < 0.3 for s in sure)), ("hard", sum(s > 0.6 for s in sure))) if n < 4
        ]
        if number != 1 and few:
            lacking[few[0] if len(few) == 1 else "both"] += 1
    assert left.pop("no relevant passage") == 1
    assert left == {
        name: count
        for name, count in (
            ("fewer than 4 weak distractors", lacking["weak"]),
            ("fewer than 4 hard distractors", lacking["hard"]),
            ("fewer than 4 distractors of either kind", lacking["both"]),
        )
        if count
    }
    assert lacking["weak"] and lacking["hard"]
    assert found.findings.tables[0].frame["queries"].to_list() == [39 - sum(lacking.values())] * 2


def test_what_cannot_be_is_refused(tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    undrawn(monkeypatch)
    place = collection(tmp_path / "w", queries=6)
    with pytest.raises(InputError, match="expected: weak ≤ hard"):
        ragworth.study("distractors", place, weak=0.9, hard=0.1)
    with pytest.raises(InputError, match=r"hard is 1\.5"):
        ragworth.study("distractors", place, hard=1.5)
    with pytest.raises(InputError, match="can't hold 9 distractors"):
        ragworth.study("distractors", place, k=10, depth=10)
    with pytest.raises(InputError, match=r"no query is left to study \(fewer than 4 hard distractors: 6\)"):
        ragworth.study("distractors", place, hard=0.99, keep=False)
    asked = opened.calls
    done = ragworth.study("alignment", place)
    assert done.folder is not None and opened.calls > asked
    with pytest.raises(InputError, match="another study made these contexts"):
        ragworth.study("distractors", done.folder / "cases" / "01")
    given(tmp_path / "given")
    with pytest.raises(InputError, match="results of an evaluation"):
        ragworth.study("distractors", tmp_path / "given")


def test_a_limit_counts_queries_with_enough_distractors(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=30)
    whole, some = (ragworth.study("distractors", place, keep=False, k=3, limit=n).cases[0] for n in (None, 6))
    names = [sorted(set(case.results.contexts.frame["query"])) for case in (whole, some)]
    assert len(names[0]) > 6 and names[1] == names[0][:6]
