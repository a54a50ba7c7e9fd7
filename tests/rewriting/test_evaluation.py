"""Evaluation of rewriters: arms, properties of rewrites, and tests over conversations."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ragworth.conversations import Message, Turn, turns_of
from ragworth.errors import InputError
from ragworth.rewriting.evaluation.arms import Arm, arm_from_file, arm_from_rewrites, baseline_arms
from ragworth.rewriting.evaluation.measures import is_unchanged, leaks_answer
from ragworth.rewriting.evaluation.page import rewriting_document, sentences, write_evaluation
from ragworth.rewriting.evaluation.run import ArmComparison
from ragworth.stats.estimate import Resampling
from tests.rewriting.conversation_samples import conversations

PLAN = Resampling(resamples=500)


def follow_ups() -> list[Turn]:
    return [turn for turn in turns_of(conversations()) if turn.history]


def test_all_arms_are_measured_on_the_same_turns(tmp_path: Path) -> None:
    turns, collection = follow_ups(), conversations()
    attack = Arm("<script>alert(1)</script>", {turn.query: "xyzzy" for turn in turns})
    arms = [*baseline_arms(turns, collection), attack]
    found = ArmComparison(turns, collection, arms, plan=PLAN).evaluate()
    assert [arm.name for arm in arms][:5] == ["last", "all", "first+last", "human", "history-terms"]
    means = {(row["arm"], row["measure"]): row for row in found.means.iter_rows(named=True)}
    assert means["human", "R@10"]["value"] == pytest.approx(1.0)  # each human rewrite names its topic
    assert means["last", "unchanged"]["value"] == pytest.approx(1.0)
    assert means["human", "unchanged"]["value"] == pytest.approx(0.0)
    assert means["human", "words"]["value"] == pytest.approx(4.0)  # Who built the lighthouse?
    # Retrieving nothing is a score of 0, not a missing one.
    assert means[attack.name, "RR"]["value"] == pytest.approx(0.0)
    assert means[attack.name, "RR"]["n"] == len(turns)
    shares = found.means.filter(pl.col("measure") != "words")
    assert (shares["high"].drop_nulls() <= 1).all()
    assert set(found.differences["against"]) == {"last"}
    assert (found.differences["p_holm"] >= found.differences["p"]).all()
    write_evaluation(found, tmp_path / "results")
    for name in ("report.html", "report.md"):
        assert "<script>alert(1)" not in (tmp_path / "results" / name).read_text()
    assert rewriting_document(found).sections
    assert len(sentences(found)) == len(arms) - 1


def test_a_rewrite_leaks_if_it_has_an_answer_that_nobody_said() -> None:
    turn = Turn("q", "c", 2, "Who built it?", (Message("assistant", "Ada designed it in 1801."),))
    assert leaks_answer("Did Grace Hopper build it?", turn, ["Grace Hopper"])
    assert not leaks_answer("Did Ada build it?", turn, ["Ada"])  # the history has it
    assert not leaks_answer("Who built it?", turn, ["Grace Hopper"])
    assert leaks_answer("Who built it?", turn, ["yes", " "]) is None
    assert is_unchanged("who built  it?", turn)
    assert not is_unchanged("Who built the tower?", turn)


def test_missing_rewrites_fall_back_with_a_count_and_files_must_be_complete() -> None:
    turns = follow_ups()[:2]
    rows = {"query": [turn.query for turn in turns], "status": ["ok", "refused"], "text": ["Who?", None]}
    arm = arm_from_rewrites("model", turns, pl.DataFrame(rows))
    assert arm.texts == {"c1-2": "Who?", "c2-2": "Who built it?"}
    assert arm.fallbacks == {"refused": 1}
    with pytest.raises(InputError, match=r"no rewrite of 1 turn \('c2-2'\)"):
        arm_from_file("mine", turns, pl.DataFrame({"query": ["c1-2"], "text": ["Who?"]}), "mine.jsonl")


def test_an_arm_without_any_rewrite_is_not_called_equal_to_the_last_turn() -> None:
    turns, collection = follow_ups(), conversations()
    empty = [{"query": turn.query, "status": "empty-rewrite", "text": None} for turn in turns]
    schema = dict.fromkeys(("query", "status", "text"), pl.String)
    silent = arm_from_rewrites("silent", turns, pl.DataFrame(empty, schema=schema))
    found = ArmComparison(turns, collection, [*baseline_arms(turns, collection), silent], plan=PLAN).evaluate()
    assert found.failed == ("silent",)
    (said,) = [sentence for sentence in sentences(found) if sentence.startswith("silent")]
    assert said.startswith("silent can't be compared with last: silent gave no rewrite at all")


def test_unknown_arms_and_equal_names_are_refused() -> None:
    turns, collection = follow_ups(), conversations()
    arms = baseline_arms(turns, collection)
    with pytest.raises(InputError, match="no arm nobody"):
        ArmComparison(turns, collection, arms, against=("nobody",))
    with pytest.raises(InputError, match="several arms are called last"):
        ArmComparison(turns, collection, [*arms, arms[0]])
