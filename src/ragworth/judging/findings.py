"""Findings: values and their source, or the reason why there are none; warnings about unreliable judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import polars as pl

from ragworth.calls.budget import JobLimits
from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue
from ragworth.core.errors import ModelError, format_count
from ragworth.data import OK, Outcomes
from ragworth.llm.contract import Card, Scored, Usage
from ragworth.llm.prompts.template import Template

CUT = "cut"
"""Status of a passage that was shown only in part."""


NO_CITATIONS = "no-citations"
"""Status of values about the citations of an answer that cites nothing."""

UNFIT_MODEL = "unfit-model"
"""Status of all values of a model that fails on questions whose answer is known."""

VALUE_COLUMNS = {
    "value": pl.Float64,
    "status": pl.String,
    "source": pl.String,
    "reason": pl.String,
    "raw": pl.String,
}
"""Columns that every row of a finding has after its keys."""


class AspectValues(NamedTuple):
    """Values by aspect, each a number or the reason why it is missing, and details to store with them."""

    values: Mapping[str, float | NoValue]
    detail: Mapping[str, Any] = {}
    estimator: str = ""
    """How the values were estimated, if that depends on the model."""


def require_abilities(card: Card, abilities: Sequence[str], purpose: str) -> None:
    """Reject a model without the needed abilities, or trained for something else, before anything runs.

    An endpoint that was not asked yet, in a dry run, says of itself nothing; it is refused when it is asked.
    """
    if card.purpose and purpose != card.purpose:
        raise ModelError(
            f"{card.name!r} only writes {card.purpose}; it can't be used for {purpose}",
            expected="the embedded reader (embedded), or another model",
        )
    lacking = [ability for ability in abilities if ability not in card.abilities]
    if lacking and (card.abilities or not card.endpoint):
        countable = lacking == ["choose"] and "generate" in card.abilities
        address = f"{card.name}@{card.endpoint}" if card.endpoint else "…"
        other = f"count samples (sampled:{card.backend}:{address})" if countable else "another way of asking it"
        raise ModelError(
            f"{purpose} needs a model that can {', '.join(abilities)}; {card.name!r} cannot {', '.join(lacking)}",
            expected="for example the embedded model, gguf:FILE or hf:NAME",
            remedy=f"take another model, or {other} (ragworth models lists what each can do)",
        )


def value_unless_cut(value: float, usage: Usage, keep: bool) -> float | NoValue:
    """Return the value, or the reason why it doesn't count: the model saw only a part of the passage."""
    if usage.cut and not keep:
        what = f"{format_count(usage.cut, 'character')} of the passage did not fit into the model's context"
        return NoValue(CUT, what)
    return value


def reject_cut_passage(usage: Usage, keep: bool, raw: str | None = None) -> None:
    """Discard the finding if the model saw only a part of the passage, unless such findings are kept."""
    if isinstance(cut := value_unless_cut(0.0, usage, keep), NoValue):
        raise NoValue(cut.status, cut.detail, raw)


def answer_logprobs(scored: Scored) -> Sequence[float]:
    """Return the log-probability of each token of an answer; raises `NoValue` if there are none, or none possible."""
    logs = scored.trace.logprobs
    if not logs:
        raise NoValue("empty-continuation", "the answer has no tokens")
    if sum(logs) > 0:
        raise NoValue("malformed", "a log-probability is above 0")
    return logs


def describe_source(card: Card, prompts: Sequence[Template], *how: str) -> str:
    """Describe the source of a value in one line: model, prompts with versions, and method."""
    name = f"{card.backend}:{card.name}" if not card.name.startswith(card.backend) else card.name
    model = f"{name}@{card.revision[:12]}" if card.revision else name
    return " · ".join([model, *(f"{prompt.name}@{prompt.version}" for prompt in prompts), *filter(None, how)])


def aspect_rows(
    keys: Mapping[str, Any], aspects: Sequence[str], found: AspectValues | NoValue, source: str, origin: str = ""
) -> list[dict[str, Any]]:
    """Return a row for each aspect, with its value or reason; details go into the first row.

    ``origin``: what the source ends with, after the estimator.
    """
    rows = []
    for number, aspect in enumerate(aspects):
        value = found if isinstance(found, NoValue) else found.values[aspect]
        detail = found.detail if isinstance(found, AspectValues) and number == 0 else {}
        how = f" · {found.estimator}" if isinstance(found, AspectValues) and found.estimator else ""
        row = {**keys, "aspect": aspect, "value": None, "status": OK, "source": f"{source}{how}{origin}", **detail}
        if isinstance(value, NoValue):
            row |= {"status": value.status, "reason": value.detail}
            row |= {"raw": value.raw} if value.raw is not None else {}
        else:
            row["value"] = float(value)
        rows.append(row)
    return rows


def frame_from_rows(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    """Build a frame of these columns from rows."""
    whole = [{name: _encodable(value) for name, value in row.items()} for row in rows]
    return pl.DataFrame(whole, schema=dict(schema), orient="row")


def _encodable(value: Any) -> Any:
    """Make a model's text writable: it may end in half a character."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    return [_encodable(each) for each in value] if isinstance(value, list) else value


def fold_repeats(
    rows: Iterable[Mapping[str, Any]], details: Mapping[str, Any], averaged: Sequence[str], expected: int
) -> pl.DataFrame:
    """Return a row for each (system, query, aspect), in order of appearance: the mean of the repeats with a value.

    ``averaged``: details that are averaged as well. ``expected``: how many repeats there should be, if that is known.
    """
    together: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        together.setdefault((row["system"], row["query"], row["aspect"]), []).append(row)
    own = {"reason": pl.String, "raw": pl.String, "repeats": pl.Int64, "of": pl.Int64, "each": pl.List(pl.Float64)}
    outcomes = [_outcome(each, averaged, expected) for each in together.values()]
    return frame_from_rows(outcomes, {**Outcomes.schema, **own, **details})


def _outcome(rows: Sequence[Mapping[str, Any]], averaged: Sequence[str], expected: int) -> dict[str, Any]:
    values = [row["value"] for row in rows]
    good = [value for value in values if value is not None]
    facts = {"repeats": len(good), "of": max(len(rows), expected), "each": values}
    if len(rows) == 1:
        return {**rows[0], **facts}
    first = next((row for row in rows if row["status"] == OK), rows[0])
    kept = {name: first.get(name) for name in ("system", "query", "aspect", "status", "source")}
    reason = {} if good else {"reason": first.get("reason"), "raw": first.get("raw")}
    means = {name: fmean(known) for name in averaged if (known := [row[name] for row in rows if name in row])}
    return {**kept, **reason, **means, **facts, "value": fmean(good) if good else None}


def repeat_notes(frame: pl.DataFrame) -> list[str]:
    """Say how many outcomes come from fewer repeats than they should."""
    known = frame.filter(pl.col("repeats") > 0)
    partly = known.filter(pl.col("repeats") < pl.col("of")).height
    if not partly:
        return []
    number = f"{known['of'][0]} repeats" if known["of"].n_unique() == 1 else "all their repeats"
    return [
        f"{partly:,} of {format_count(known.height, 'outcome')} {'comes' if partly == 1 else 'come'} from fewer than "
        f"{number}: the other answers are missing or could not be graded"
    ]


def missing_notes(
    frame: pl.DataFrame, what: str, *, of: str = "value", good: Collection[str] = (OK,)
) -> tuple[str, ...]:
    """Say how many have a value and why the others don't; empty if all have one.

    ``what`` is a row in words, ``of`` what it may lack, and ``good`` the statuses of rows that lack nothing.
    """
    reasons = Counter(frame.filter(~pl.col("status").is_in(good))["status"].to_list())
    if not reasons:
        return ()
    words = ", ".join(f"{status} {number:,}" for status, number in reasons.most_common())
    verb = "has" if frame.height == 1 else "have"
    number = frame.height - reasons.total()
    return (f"{number:,} of {format_count(frame.height, what)} {verb} a {of}; without one: {words}",)


LOW_LABEL_MASS = 0.05
"""If all labels together are less probable than this, the model isn't choosing among them."""


def share_budget(job: Job | None, second: Job) -> None:
    """Give a second job what the first one left of its limits."""
    if job is not None and job.limits != JobLimits():
        second.limits = job.limits.less(job.tally)


def judgment_warnings(frame: pl.DataFrame, what: str, column: str = "value") -> list[str]:
    """Warn if a model's judgments may be meaningless.

    The labels hold next to no probability (column ``mass``, where there is one), or all judgments are the same.
    ``what`` is one of them in words, such as ``grade``.
    """
    notes = []
    mass = frame["mass"].drop_nulls() if "mass" in frame.columns else pl.Series(dtype=pl.Float64)
    middle = mass.median()
    if isinstance(middle, float) and middle < LOW_LABEL_MASS:
        notes.append(
            f"the labels hold little probability (median {middle:.2g} over {format_count(len(mass), what)}): "
            "the model would rather say something else"
        )
    said = frame[column].drop_nulls()
    if len(said) > 1 and said.n_unique() == 1:
        word = f"{said[0]:g}" if isinstance(said[0], float) else said[0]
        notes.append(f"all {format_count(len(said), what)} are the same: {word}")
    return notes
