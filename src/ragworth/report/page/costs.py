"""The cost of an evaluation by its manifest, and the estimates of a better judge of some queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from ragworth.core.errors import format_count, format_list
from ragworth.report.page.overview import Overview
from ragworth.report.wording import signed
from ragworth.results import ESTIMATE_TABLES, Results
from ragworth.two_judges import estimate_warnings

NUMBERS = ("calls", "stored", "prompt_tokens", "new_tokens", "cost", "seconds", "estimated")


class TotalCost(NamedTuple):
    """Sums over the stages; None where no stage says anything."""

    calls: float | None
    stored: float | None
    prompt_tokens: float | None
    new_tokens: float | None
    cost: float | None
    seconds: float | None
    estimated: float | None = None
    """Calls whose tokens are estimated, because the endpoint doesn't report them."""

    def words(self) -> str:
        """The same as a person says it."""
        asked = any((self.calls, self.stored, self.prompt_tokens, self.new_tokens, self.estimated))
        parts = [*self._work(), self._money()] if asked or self.cost else ["no model was asked"]
        if self.seconds is not None:
            parts.append(f"{duration_words(self.seconds)}")
        return ", ".join(parts) + "."

    def _work(self) -> list[str]:
        parts = []
        if self.calls is not None:
            again = f" ({self.stored:,.0f} more answers came from the cache)" if self.stored else ""
            parts.append(f"{self.calls:,.0f} calls of the model{again}")
        if self.prompt_tokens is not None:
            parts.append(f"{self.prompt_tokens:,.0f} tokens read")
        if self.new_tokens is not None:
            parts.append(f"{self.new_tokens:,.0f} written")
        if self.estimated and parts:
            parts[-1] += f" (estimated for {self.estimated:,.0f} of the calls: the endpoint did not report them)"
        return parts

    def _money(self) -> str:
        if self.cost is None:
            return "cost unknown (no price set)"
        estimated = " (estimated)" if self.estimated else ""
        return f"{self.cost:,.4g} in the currency of the price given{estimated}" if self.cost else "free"


def duration_words(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def manifest_stages(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The stages of a manifest; what isn't an object is left out."""
    stages = manifest.get("stages")
    return [dict(each) for each in stages if isinstance(each, Mapping)] if isinstance(stages, list) else []


def total_cost(manifest: Mapping[str, Any]) -> TotalCost | None:
    """All stages together; None where nothing was recorded."""
    made = manifest_stages(manifest)
    sums = {
        name: [
            float(stage[name]) for stage in made if isinstance(stage.get(name), int | float) and stage[name] is not True
        ]
        for name in NUMBERS
    }
    if not any(sums.values()):
        return None
    return TotalCost(*(sum(sums[name]) if sums[name] else None for name in NUMBERS))


def stage_table(manifest: Mapping[str, Any]) -> pl.DataFrame | None:
    """Stages, a row each, with the columns that any of them has."""
    made = manifest_stages(manifest)
    known = [name for name in ("name", "status", *NUMBERS) if any(stage.get(name) is not None for stage in made)]
    names = [name for name in known if name != "estimated" or any(stage.get(name) for stage in made)]
    if not made or not names:
        return None
    rows = [[_stage_words(name, stage) for name in names] for stage in made]
    titles = {"name": "stage", "prompt_tokens": "tokens read", "new_tokens": "tokens written", "stored": "in the store"}
    titles["estimated"] = "calls with estimated tokens"
    return pl.DataFrame(rows, schema={titles.get(name, name): pl.String for name in names}, orient="row")


def _stage_words(name: str, stage: Mapping[str, Any]) -> str | None:
    value = stage.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name == "cost":
            return f"{value:,.4g}{' (estimated)' if stage.get('estimated') else ''}"
        return f"{value:,.1f}" if name == "seconds" else f"{value:,.0f}"
    return None if value is None else str(value)


Row = Mapping[str, Any]


@dataclass(frozen=True)
class TwoJudgesSummary:
    """What is said of it."""

    sentences: list[str]
    rows: Sequence[Row]
    """Estimates, the main metric first, systems as in the leaderboard."""
    differences: pl.DataFrame
    notes: list[str]


def summarise_two_judges(results: Results, view: Overview) -> TwoJudgesSummary | None:
    """The estimates in words and rows; None where all judgments are by one judge."""
    frame, differences = (results.estimates.get(name) for name in ESTIMATE_TABLES)
    if frame is None or differences is None:
        return None
    metrics = [metric for metric in view.metrics if metric in frame["metric"]]
    places = {each.system: place for place, each in enumerate(view.standings)}
    mine = [row for row in frame.iter_rows(named=True) if row["metric"] in metrics]
    rows = sorted(mine, key=lambda row: (metrics.index(row["metric"]), places.get(row["system"], len(places))))
    if not rows:
        return None
    main = [row for row in rows if row["metric"] == metrics[0]]
    return TwoJudgesSummary(
        [_spent_sentence(main), *_bias_sentences(rows), *_judge_sentences(results)],
        rows,
        differences.filter(pl.col("metric").is_in(metrics)),
        estimate_warnings(pl.DataFrame(rows, schema=frame.schema)),
    )


def _spent_sentence(rows: Sequence[Row]) -> str:
    """How many expensive judgments were made, how many they stand for, and how many that saved."""
    metric, asked, n = rows[0]["metric"], rows[0]["asked"], max(row["n"] for row in rows)
    total = max(row["total"] for row in rows)
    judgments = "expensive judgment was" if asked == 1 else "expensive judgments were"
    made = f"{asked:,} {judgments} made, for {n:,} of {format_count(total, 'query', 'queries')}."
    known = [row for row in rows if row["effective"] is not None]
    if not known:
        return f"{made} That is too little for an interval by {metric}."
    stand = sorted((round(asked * row["effective"] / row["n"]), row["system"]) for row in known)
    (least, first), (most, last) = stand[0], stand[-1]
    if most <= asked:
        return f"{made} They saved none: by {metric} the sample alone would have been as sure."
    if least == most:
        many, saved = f"{most:,}", f"{most - asked:,}"
    else:
        many = f"{least:,} ({first}) to {most:,} ({last})"
        saved = f"{max(least - asked, 0):,} to {most - asked:,}"
    return f"{made} For intervals as short by {metric} the sample alone would have taken {many}: {saved} were saved."


def _bias_sentences(rows: Sequence[Row]) -> list[str]:
    """Whether the cheap judge alone, by whom the leaderboard is, would have misled."""
    known = [row for row in rows if row["low"] is not None and row["cheap"] is not None]
    off = [row for row in known if not row["low"] <= row["cheap"] <= row["high"]]
    if not known:
        return []
    board = "The leaderboard is by the cheap judge alone"
    if not off:
        return [f"{board}; its means lie within the intervals below."]
    named = [
        f"{row['system']} by {row['metric']} ({signed(row['cheap'], 3)} for {signed(row['estimate'], 3)})"
        for row in off
    ]
    return [f"{board}, whose mean lies outside the interval of {format_list(named, 3)}."]


def _judge_sentences(results: Results) -> list[str]:
    """Who the better judge was, for each kind of judgment."""
    made = []
    for name, frame in results.said.items():
        if name.endswith("-expensive") and "source" in frame.columns:
            sources = format_list(frame["source"].unique(maintain_order=True).to_list(), 3)
            made.append(f"Expensive judge of {name.removesuffix('-expensive')}: {sources}.")
    return made
