"""What checks found, in tables and sentences."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from ragworth.build.checks import CHECKS
from ragworth.build.checks.run import CheckResult
from ragworth.build.drafts import Drafts
from ragworth.core.errors import format_count, quote_short
from ragworth.stats.range_intervals import wilson_interval


class Share(NamedTuple):
    """A share between two bounds, with the ends of their 95 % intervals by Wilson."""

    least: float
    most: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.least:.3f}" if self.least == self.most else f"{self.least:.3f} to {self.most:.3f}"

    @property
    def interval(self) -> str:
        return f"[{self.low:.3f}, {self.high:.3f}]"


class CheckSummary(NamedTuple):
    """How many questions pass and fail a check."""

    check: str
    passed: int
    failed: int
    unknown: int
    not_applicable: int
    flag: bool

    @property
    def share(self) -> Share | None:
        """The share that fails, of all that the check applies to; None if it decides nothing.

        Questions that it can't decide may all pass or all fail. Leaving them out would mislead: where only failures can
        be recognised, it would say that every question fails.
        """
        number = self.passed + self.failed + self.unknown
        if not self.passed + self.failed:
            return None
        most = self.failed + self.unknown
        low, high = wilson_interval(self.failed, number, 0.95)[0], wilson_interval(most, number, 0.95)[1]
        return Share(self.failed / number, most / number, low, high)


def summarise_checks(result: CheckResult, flags: Collection[str] = ()) -> list[CheckSummary]:
    """A summary of each check. ``flags``: those that only flag here, besides those that always do."""
    counts = {(c, v): n for c, v, n in result.frame.group_by("check", "verdict").len().iter_rows()}
    names = result.frame["check"].unique(maintain_order=True).to_list()
    return [
        CheckSummary(
            name,
            counts.get((name, "pass"), 0),
            counts.get((name, "fail"), 0),
            counts.get((name, "unknown"), 0),
            counts.get((name, "n/a"), 0),
            CHECKS.get(name).flag or name in flags,
        )
        for name in names
    ]


def summary_table(summaries: Sequence[CheckSummary]) -> pl.DataFrame:
    """The summaries for display."""
    rows = [
        {
            "check": each.check + (" (flag)" if each.flag else ""),
            "pass": each.passed,
            "fail": each.failed,
            "unknown": each.unknown,
            "n/a": each.not_applicable,
            "share failing": "–" if each.share is None else str(each.share),
            "95 % interval": "–" if each.share is None else each.share.interval,
        }
        for each in summaries
    ]
    return pl.DataFrame(rows)


def examples_table(result: CheckResult, most: int = 2) -> pl.DataFrame:
    """A few failures of each check, with the question and the reason."""
    texts = {question.id: question.text for question in result.questions.questions}
    failed = result.frame.filter(pl.col("verdict") == "fail").group_by("check", maintain_order=True).head(most)
    rows = [
        {"check": check, "question": quote_short(texts[id], 70), "reason": quote_short(reason, 90)}
        for id, check, reason in failed.select("question", "check", "reason").iter_rows()
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(("check", "question", "reason"), pl.String))


def apply_checks(
    drafts: Drafts, result: CheckResult, flags: Collection[str] = (), *, drop_unknown: bool = False
) -> CheckResult:
    """Give every draft that fails a check a status, by the first such check. Flags drop nothing.

    ``flags``: checks to treat as flags besides those that are. ``drop_unknown``: also drop what a check can't tell.
    A question that is declared unanswerable is dropped in any case unless a reader confirmed it: a wrong declaration
    would count good answers as failures. Returns the findings, in which a question that repeats only dropped ones is no
    duplicate.
    """
    repeating = "duplicate"
    for id, name, verdict, reason in result.frame.select("question", "check", "verdict", "reason").iter_rows():
        if CHECKS.get(name).flag or name in flags or name == repeating:
            continue
        if verdict == "fail":
            drafts.drop(id, name, reason)
        elif verdict == "unknown" and (drop_unknown or name == "unanswerable"):
            drafts.drop(id, f"{name}-unknown", reason)
    excused: list[str] = []
    for id, earlier in result.repeats.items():  # in order, so whether the earlier ones are kept is settled
        kept = next((drafts[each] for each in earlier if drafts[each].kept), None)
        if kept is None:
            excused.append(id)
        else:
            drafts.drop(id, repeating, f"near-duplicate of {kept.id}: {quote_short(kept.fields['question'], 80)}")
    return replace(result, frame=_excuse(result.frame, repeating, excused))


def _excuse(frame: pl.DataFrame, check: str, ids: Sequence[str]) -> pl.DataFrame:
    """The findings with a pass for these questions, and with the question that they are like in the reason."""
    mine = (pl.col("check") == check) & pl.col("question").is_in(list(ids))
    note = pl.col("reason") + ", which was dropped"
    return frame.with_columns(
        pl.when(mine).then(pl.lit("pass")).otherwise("verdict").alias("verdict"),
        pl.when(mine).then(note).otherwise("reason").alias("reason"),
    )


def unknown_note(drafts: Drafts, result: CheckResult) -> str:
    """How many kept questions a check couldn't tell anything about; empty if there are none."""
    kept = {draft.id for draft in drafts.kept}
    open_ones = result.frame.filter((pl.col("verdict") == "unknown") & pl.col("question").is_in(list(kept)))
    if not open_ones.height:
        return ""
    counts = open_ones.group_by("check", maintain_order=True).len().iter_rows()
    words = ", ".join(f"{check} {number:,}" for check, number in counts)
    number = format_count(open_ones["question"].n_unique(), "kept question")
    return f"{number} with a check that says nothing (unknown): {words}"


def check_facts(summaries: Sequence[CheckSummary]) -> list[dict[str, Any]]:
    """The summaries for a collection card."""
    return [
        {
            "check": each.check,
            "pass": each.passed,
            "fail": each.failed,
            "unknown": each.unknown,
            "n/a": each.not_applicable,
            "flag": "yes" if each.flag else "no",
        }
        for each in summaries
    ]
