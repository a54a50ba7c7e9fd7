"""The evaluation of examples/demo, which several pages show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import ragworth
from figures.running import Run
from figures.tables import Table, tables

SHOWS = {
    "oracle": "only passages that answer",
    "bm25": "what BM25 finds",
    "reordered": "the same passages, the best ones last",
    "random": "anything",
    "adversary": "only passages that look right and are not",
}


class Evaluated:
    """A workspace that was evaluated: what the command says, its results, and its report."""

    def __init__(self, folder: Path, said: str) -> None:
        self.folder = folder
        facts: Mapping[str, Any] = json.loads(said)
        self.systems: dict[str, Mapping[str, Any]] = {each["system"]: each for each in facts["systems"]}
        self.stages: dict[str, Mapping[str, Any]] = {each["name"]: each for each in facts["stages"]}
        self.report = (folder / "results" / "report.md").read_text(encoding="utf-8")

    @cached_property
    def results(self) -> ragworth.Results:
        return ragworth.Results.read(self.folder / "results")

    def mean(self, system: str, metric: str, *, interval: bool = False) -> str:
        found = self.systems[system]["metrics"][metric]
        ends = f" [{found['low']:.3f}, {found['high']:.3f}]" if interval else ""
        return f"{found['mean']:.3f}{ends}"

    def diagnosis(self, finding: str, system: str) -> Count:
        """How many queries of a system have a finding, of how many."""
        n, _, of = self.section("Diagnosis").cell(system, finding).partition(" of ")
        return Count(int(n), int(of))

    def section(self, title: str) -> Table:
        """The first table below a heading of the report."""
        return tables(self.report.partition(f"# {title}\n")[2])[0]

    def graded(self, system: str) -> dict[str, int]:
        """How many answers of a system are correct, abstained, wrong."""
        assert self.results.outcomes is not None
        values = self.results.outcomes.frame.filter(system=system, aspect="grade")["value"].drop_nulls().to_list()
        return {name: values.count(value) for name, value in (("correct", 1), ("abstained", 0), ("wrong", -1))}

    def share(self, system: str, grade: str) -> str:
        counts = self.graded(system)
        return f"{100 * counts[grade] / max(1, sum(counts.values())):.0f} %"

    def predicts(self, metric: str, seed: int = 0) -> tuple[float, float, float]:
        """ρ of a metric with the grade over all contexts, and the ends of its interval, as in the report."""
        from ragworth.report.page.prediction import outcome_predictions

        found = outcome_predictions(self.results, [metric], seed).filter(outcome="grade")
        ((rho, low, high),) = found.select("rho", "low", "high").rows()
        return rho, low, high


class Count(NamedTuple):
    n: int
    of: int


def evaluated(run: Run, folder: Path, options: str = "") -> Evaluated:
    """Evaluate a workspace, or take its results as they are if it was evaluated before in this run."""
    return Evaluated(folder, run.output(f"ragworth evaluate {folder} --json --quiet {options}"))


def demo(run: Run, options: str = "") -> Evaluated:
    """The demo, in a copy, with the limit of its own file."""
    folder = run.copy("examples/demo", "demo-all" if "--all" in options else "demo")
    return evaluated(run, folder, run.pick(options, "--limit 12"))


def abstained_by_kind(found: Evaluated, kinds: Path) -> dict[str, tuple[int, str]]:
    """By kind of passage: how many were judged, and the mean of 1 − p_abstain."""
    labels = pl.read_csv(kinds, separator="\t")
    judged = ragworth.utilities(found.results.judgments).join(labels, on=["query", "passage"])
    by_kind = judged.group_by("kind").agg(pl.len(), (1 - pl.col("abstention")).mean().alias("value"))
    return {kind: (n, f"{value:.2f}") for kind, n, value in by_kind.select("kind", "len", "value").iter_rows()}
