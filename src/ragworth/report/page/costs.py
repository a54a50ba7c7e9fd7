"""What an evaluation cost, as far as its manifest says: calls, tokens, money, time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

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
