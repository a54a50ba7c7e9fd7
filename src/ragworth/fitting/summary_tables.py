"""What was learned, as tables: in full for programs, and arranged for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ragworth.fitting.ablation import AblationResult
from ragworth.fitting.sweep import SweepResult
from ragworth.metrics.theta import Theta
from ragworth.report.render import format_p_value

CORRELATION_COLUMNS = {
    "correlation": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "queries": pl.Int64,
}


def weights_table(theta: Theta) -> pl.DataFrame:
    """The weights of each place: help, and harm where it has a part."""
    frame = pl.DataFrame({"place": range(1, theta.k + 1), "help": theta.alpha, "harm": theta.beta})
    return frame if theta.variant == "full" else frame.drop("harm")


def correlations_table(theta: Theta) -> pl.DataFrame:
    """How learned weights and UDCG go with the outcome."""
    names = {
        "in_sample": "learned, in-sample",
        "held_out": "learned, held out",
        "udcg": f"UDCG@{theta.k}",
        "gain": "held out − UDCG",
    }
    rows = [_row("", words, theta.figures[name])[1:] for name, words in names.items()]
    return pl.DataFrame(rows, schema={"of": pl.String, **CORRELATION_COLUMNS}, orient="row")


def ablation_table(ablation: Sequence[AblationResult]) -> pl.DataFrame:
    """The correlation of each metric on each case."""
    rows = [_row(each.name, name, figure) for each in ablation for name, figure in each.correlations.items()]
    schema = {"case": pl.String, "metric": pl.String, **CORRELATION_COLUMNS}
    return pl.DataFrame(rows, schema=schema, orient="row").drop("p")


def differences_table(found: Sequence[AblationResult]) -> pl.DataFrame:
    """The metrics compared, paired by query."""
    rows = [_row(each.name, f"{a} − {b}", figure) for each in found for (a, b), figure in each.differences.items()]
    schema = {"case": pl.String, "of": pl.String, **CORRELATION_COLUMNS}
    return pl.DataFrame(rows, schema=schema, orient="row").rename({"correlation": "difference"})


def choices_table(swept: Sequence[SweepResult]) -> pl.DataFrame:
    """The values chosen, and what choosing is worth."""
    rows: list[tuple[Any, ...]] = []
    for each in swept:
        for choice in each.choices:
            start = (each.name, choice.kind)
            low, high = choice.interval or (None, None)
            held = ", ".join(f"{value:.4g}" + f" ×{n}" * (n > 1) for value, n in choice.chosen.items())
            gain = choice.gain_interval or (None, None)
            rows += [
                (*start, "cross-validated", held, choice.held_out, low, high, None, choice.queries),
                (*start, "in-sample", f"{choice.best:.4g}", choice.in_sample, None, None, None, None),
                (*start, "default", f"{choice.default:.4g}", choice.at_default, None, None, None, None),
                (*start, "cross-validated − default", "", choice.gain, *gain, choice.p, choice.queries),
            ]
    names = {"case": pl.String, "kind": pl.String, "of": pl.String, "values": pl.String}
    return pl.DataFrame(rows, schema={**names, **CORRELATION_COLUMNS}, orient="row")


def grid_table(swept: Sequence[SweepResult]) -> pl.DataFrame:
    """Every value of the parameter of every case."""
    return pl.concat([each.table.select(pl.lit(each.name).alias("case"), pl.all()) for each in swept])


def format_for_reading(frame: pl.DataFrame, level: float) -> pl.DataFrame:
    """Intervals in brackets, p never 0, a single case without its name."""
    made = frame
    for low in [name for name in frame.columns if name == "low" or name.endswith("_low")]:
        kind = low.removesuffix("low").removesuffix("_")
        high = low.removesuffix("low") + "high"
        ends = [_interval(a, b) for a, b in frame.select(low, high).iter_rows()]
        name = f"{kind} {100 * level:g} % interval".strip()
        made = made.with_columns(pl.Series(low, ends, pl.String)).drop(high).rename({low: name})
    if "p" in made.columns:
        made = made.with_columns(pl.Series("p", [format_p_value(p) for p in frame["p"]], pl.String))
    if "default" in made.columns:
        marks = ["default" if each else "" for each in frame["default"]]
        made = made.with_columns(pl.Series("default", marks, pl.String)).rename({"default": ""})
        made = made.drop([name for name in made.columns if name.endswith("_queries")])
    return made.drop("case") if "case" in made.columns and made["case"].n_unique() == 1 else made


def _row(case: str, words: str, figure: Any) -> tuple[Any, ...]:
    ends = figure["value"], figure["low"], figure["high"]
    return (case, words, *ends, figure.get("p"), figure["queries"])


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"[{low:.4f}, {high:.4f}]"
