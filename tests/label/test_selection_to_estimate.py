"""From the selection of items to an estimate, with a planted truth: selected, labelled, exported, estimated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ragworth.data import Contexts, Judgments, Outcomes
from ragworth.formats import outcomes as outcome_files
from ragworth.label.dataset import LabelledData
from ragworth.label.exports import export_labels
from ragworth.label.labels import Label, Labels
from ragworth.label.selection import Selection, select_items
from ragworth.label.tasks import LabelItem, load_task
from ragworth.two_judges import EstimationResult, estimate, estimate_outcomes

TRIALS = 50
QUERIES, SAMPLED, DISPUTED = 240, 60, 120
SYSTEMS = ("bm25", "dense")
TRUTH = 0.35 * 0.3 + 0.65 * 0.9
"""The share of correct answers of the second system in the long run."""


def planted(seed: int) -> pl.DataFrame:
    """Answers: what people would say, and two graders. On hard ones they disagree, and the first is too generous."""
    rng = np.random.default_rng(seed)
    rows = []
    for system, share in zip(SYSTEMS, (0.6, 0.9), strict=True):
        hard = rng.random(QUERIES) < 0.35
        truth = rng.random(QUERIES) < np.where(hard, 0.3, share)
        cheap = np.where(hard, rng.random(QUERIES) < 0.8, np.where(rng.random(QUERIES) < 0.06, ~truth, truth))
        other = np.where(hard, ~cheap, cheap)
        rows += [(system, f"q{at}", bool(truth[at]), bool(cheap[at]), bool(other[at])) for at in range(QUERIES)]
    return pl.DataFrame(rows, schema=["system", "query", "truth", "cheap", "other"], orient="row")


def label_answers(facts: pl.DataFrame, seed: int, folder: Path) -> list[LabelItem]:
    """Select answers, label them with the truth, and export the labels."""
    task = load_task("answer-grade")
    rows = list(facts.iter_rows(named=True))
    items = [
        task.make_item(
            {"system": row["system"], "query": row["query"], "repeat": "1"}, {"question": "?", "answer": "!"}
        )
        for row in rows
    ]
    truth = {item.id: row["truth"] for item, row in zip(items, rows, strict=True)}
    differ = {item.id: float(row["cheap"] != row["other"]) for item, row in zip(items, rows, strict=True)}
    drawn = select_items(task, items, Selection(SAMPLED, DISPUTED, seed=seed), differ)
    labels = [Label("anna", item.id, {"grade": "correct" if truth[item.id] else "wrong"}) for item in drawn]
    export_labels(LabelledData.of(task, drawn, Labels(labels)), "tables", folder)
    return drawn


def run_trial(seed: int, folder: Path) -> tuple[dict[str, float], dict[str, EstimationResult], float]:
    facts = planted(seed)
    drawn = label_answers(facts, seed, folder)
    cheap = Outcomes(facts.select("system", "query", aspect=pl.lit("correct"), value=pl.col("cheap").cast(pl.Float64)))
    sample, corrections = (outcome_files.read(folder / f"{name}-outcomes.csv") for name in ("estimate", "corrections"))
    found = {
        "corrected": estimate_outcomes(cheap, sample, ["correct"], corrections=corrections, resamples=100),
        "sample": estimate_outcomes(cheap, sample, ["correct"], resamples=100),
    }
    truth = {
        system: float(facts.filter(system=system)["truth"].mean())  # type: ignore[arg-type]
        for system in SYSTEMS
    }
    said = {(row["system"], row["query"]): row["truth"] for row in facts.iter_rows(named=True)}
    mine = [said[item.meta["system"], item.meta["query"]] for item in drawn if item.meta["system"] == SYSTEMS[1]]
    return truth, found, sum(mine) / len(mine)


@pytest.mark.slow
def test_estimates_are_unbiased_and_disputed_labels_shorten_them(tmp_path: Path) -> None:
    """Truth, estimates and intervals of many draws; a difference is against this population's own mean."""
    errors: dict[str, list[float]] = {"corrected": [], "sample": [], "difference": [], "all labels": []}
    lengths: dict[str, list[float]] = {"corrected": [], "sample": []}
    covered = 0
    for seed in range(1000, 1000 + TRIALS):
        truth, found, plain = run_trial(seed, tmp_path)
        for name, result in found.items():
            row = result.frame.filter(system=SYSTEMS[1]).row(0, named=True)
            errors[name].append(row["estimate"] - truth[SYSTEMS[1]])
            lengths[name].append(row["high"] - row["low"])
        row = found["corrected"].frame.filter(system=SYSTEMS[1]).row(0, named=True)
        covered += row["low"] <= TRUTH <= row["high"]
        gap = found["corrected"].differences["difference"][0]
        errors["difference"].append(gap - (truth[SYSTEMS[1]] - truth[SYSTEMS[0]]))
        errors["all labels"].append(plain - truth[SYSTEMS[1]])
    z = {name: abs(np.mean(each)) / (np.std(each, ddof=1) / TRIALS**0.5) for name, each in errors.items()}
    assert max(z["corrected"], z["sample"], z["difference"]) < 3.5
    assert z["all labels"] > 10
    assert np.mean(lengths["corrected"]) < 0.9 * np.mean(lengths["sample"])
    assert np.std(errors["corrected"]) < np.std(errors["sample"])
    assert covered >= 0.85 * TRIALS


def test_corrections_of_passages_make_the_cheap_judge_the_expensive_one() -> None:
    """The cheap judge is wrong about one passage of each query. All of these are corrected, so nothing is uncertain."""
    queries = [f"q{at}" for at in range(40)]
    shown = Contexts(
        {
            "system": ["s"] * 80,
            "query": [q for q in queries for _ in "ab"],
            "rank": [1, 2] * 40,
            "passage": ["a", "b"] * 40,
        }
    )
    truth = {(q, p): float(at % (3 if p == "a" else 5) < 2) for at, q in enumerate(queries) for p in "ab"}
    cheap = {key: 1.0 if key[1] == "b" else value for key, value in truth.items()}

    def table(values: dict[tuple[str, str], float]) -> Judgments:
        ids = list(values)
        columns = {"query": [q for q, _ in ids], "passage": [p for _, p in ids], "value": list(values.values())}
        return Judgments(pl.DataFrame(columns).with_columns(aspect=pl.lit("relevance")))

    sample = table({key: value for key, value in truth.items() if key[0] in queries[::2]})
    corrections = table({key: value for key, value in truth.items() if key[1] == "b"})
    found = estimate(shown, table(cheap), sample, ["P@2"], corrections=corrections, resamples=100)
    (row,) = found.frame.iter_rows(named=True)
    assert row["estimate"] == pytest.approx(sum(truth.values()) / len(truth))
    assert row["weight"] == pytest.approx(1) and row["correlation"] == pytest.approx(1)
    plain = estimate(shown, table(cheap), sample, ["P@2"], resamples=100).frame.row(0, named=True)
    assert plain["cheap"] > row["cheap"] + 0.2
    assert "40 values of the cheap judge corrected by labels of disputed items" in found.notes
