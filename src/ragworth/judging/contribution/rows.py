"""Contributions as rows: of passages and of pairs, by position, for a context in a sentence; notes on many contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ragworth.core.errors import format_count, format_list
from ragworth.data.conversations import cluster_labels
from ragworth.judging.contribution import MOST
from ragworth.judging.contribution.design import Floats
from ragworth.judging.contribution.outcomes import EMPTY_CONTEXT, LEAST, SplitAnswer, threshold
from ragworth.stats.estimate import Estimate, Resampling, mean_estimates

DETAIL_COLUMNS: Mapping[str, Any] = {
    "answer": pl.String,
    "passages": pl.List(pl.String),
    **dict.fromkeys(("contributions", "errors", "removed", "single"), pl.List(pl.Float64)),
    "sentences": pl.List(pl.String),
    **dict.fromkeys(("by_sentence", "interactions"), pl.List(pl.List(pl.Float64))),
    **dict.fromkeys(("logprob", "logprob_alone"), pl.Float64),
    "tokens": pl.Int64,
    "method": pl.String,
    "subsets": pl.Int64,
    "settled": pl.Float64,
    **dict.fromkeys(("cited", "searches"), pl.List(pl.String)),
    "growing": pl.List(pl.Float64),
    "least": pl.Float64,
}
"""What is kept beside the outcomes of a context, in its first row.

The answer; the ids of the passages in the order shown; for each, its contribution with its standard error, what the
answer loses when it alone is removed, and gains when it alone is shown; the sentences, and for each the contributions
of all passages to it; interactions of each two passages; the answer's log-probability with the context and without; its
tokens; the method; how many subsets were asked about; the share of the ranking that is certain enough; the passages
that the answer cites; and where hops take the place of passages, what was searched for in each, and the answer's
log-probability after none, the first, the first two, … of them. Last, the nats from which a passage contributes, and
which the hops after it may add when an agent could have stopped.
"""

PASSAGE_COLUMNS = {
    "system": pl.String,
    "query": pl.String,
    "rank": pl.Int64,
    "passage": pl.String,
    **dict.fromkeys(("contribution", "error", "removed", "share"), pl.Float64),
    "redundant_with": pl.String,
    "sentence": pl.Int64,
    "method": pl.String,
    "cited": pl.Boolean,
    **dict.fromkeys(("status", "reason", "source"), pl.String),
}


def details(split: SplitAnswer, shown: Sequence[str], least: float) -> dict[str, Any]:
    """The columns of `DETAIL_COLUMNS` for one context; ``least``: nats from which a passage contributes."""
    found = split.found
    return {
        "answer": split.answer,
        "passages": list(shown),
        "contributions": found.totals.tolist(),
        "errors": [None if np.isnan(error) else error for error in found.errors.tolist()],
        "removed": found.alone.tolist(),
        "single": found.single.tolist() if found.single is not None else None,
        "sentences": list(split.sentences),
        "by_sentence": found.values.T.tolist(),
        "interactions": found.interactions.tolist() if found.interactions is not None else None,
        "logprob": float(found.everything.sum()),
        "logprob_alone": float(found.nothing.sum()),
        "tokens": split.tokens,
        "method": found.method,
        "subsets": found.subsets,
        "settled": found.settled,
        "cited": list(split.cited),
        "least": least,
    }


def context_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of an annotator or grader that have the details: one for each context, or answer."""
    keys = [name for name in ("system", "query", "repeat") if name in frame.columns]
    return frame.unique(keys, keep="first", maintain_order=True)


def passage_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """A row for each passage of each context, from the frame of an annotator or grader.

    ``share`` is the share of the positive contributions; ``redundant_with`` the passage that replaces it best, if any;
    ``sentence`` the number, from 1, of the sentence to which it contributes most. A context without contributions has
    one row, with the reason and no passage. Answers that are told apart by ``repeat`` keep it.
    """
    repeat = {"repeat": pl.Int64} if "repeat" in frame.columns else {}
    rows: list[dict[str, Any]] = []
    for context in context_rows(frame).iter_rows(named=True):
        key = {name: context[name] for name in ("system", "query", *repeat, "source")}
        if context["contributions"] is None:
            rows.append({**key, "status": context["status"], "reason": context["reason"]})
            continue
        if not context["passages"]:
            rows.append({**key, "status": EMPTY_CONTEXT, "reason": "the context has no passages"})
        rows += [{**key, "status": "ok", **row} for row in context_passages(context)]
    return pl.DataFrame(rows, schema={**PASSAGE_COLUMNS, **repeat}, orient="row")


def context_passages(context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is known of each passage of a context that has contributions, from its row in the frame."""
    values = np.array(context["contributions"], dtype=np.float64)
    if not len(values):
        return []
    by_sentence = np.array(context["by_sentence"], dtype=np.float64).reshape(-1, len(values))
    positive = np.maximum(values, 0).sum()
    cited = set(context["cited"] or ())
    partners = _partners(context)
    return [
        {
            "rank": n + 1,
            "passage": passage,
            "contribution": float(values[n]),
            "error": context["errors"][n],
            "removed": context["removed"][n],
            "share": float(max(values[n], 0.0) / positive) if positive > 0 else None,
            "redundant_with": partners[n],
            "sentence": int(by_sentence[:, n].argmax()) + 1 if values[n] > 0 else None,
            "method": context["method"],
            "cited": passage in cited,
        }
        for n, passage in enumerate(context["passages"])
    ]


def contributing_from(frame: pl.DataFrame) -> float:
    """The nats from which a passage contributes in a frame (the option ``least``)."""
    known = frame["least"].drop_nulls().to_list() if "least" in frame.columns else []
    return float(known[0]) if known else LEAST


def context_threshold(context: Mapping[str, Any]) -> float:
    """The same for one context, from its row."""
    return LEAST if context.get("least") is None else float(context["least"])


def _partners(context: Mapping[str, Any]) -> list[str | None]:
    """For each passage that contributes, the one that it is most redundant with (interaction below −least)."""
    passages, values = context["passages"], np.array(context["contributions"])
    if context["interactions"] is None or len(passages) < 2:
        return [None] * len(passages)
    least = threshold(values, context_threshold(context))
    helps = values > least
    table: Floats = np.where(helps[:, None] & helps[None, :], np.array(context["interactions"]), 0.0)
    return [passages[int(row.argmin())] if row.min() < -least else None for row in table]


def pair_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """A row for each two passages of a context: negative interactions are redundant, positive ones need each other."""
    rows = [
        (context["system"], context["query"], first, second, value)
        for context in context_rows(frame).iter_rows(named=True)
        if context["interactions"] is not None
        for i, first in enumerate(context["passages"])
        for second, value in list(zip(context["passages"], context["interactions"][i], strict=True))[i + 1 :]
    ]
    texts = dict.fromkeys(("system", "query", "first", "second"), pl.String)
    return pl.DataFrame(rows, schema={**texts, "interaction": pl.Float64}, orient="row")


WHOSE = {
    "accepted answer": "an accepted answer",
    "given answer": "the answer that was given",
    "generated answer": "the answer that the model wrote",
}
"""Whose answer was split, by what the source of the values says."""


def split_answers(frame: pl.DataFrame, *, graded: bool = False) -> str:
    """Whose answers were split and which model measured it: "an accepted answer, as measured by NAME".

    From the frame of an annotator; ``graded``: of a grader, which splits existing answers.
    """
    sources = frame["source"].drop_nulls().unique(maintain_order=True).to_list() if "source" in frame.columns else []
    parts = [source.partition(" ← ")[0].split(" · ") for source in sources]
    known = "given answer" if graded else next((each for each in WHOSE if any(each in part for part in parts)), "")
    whose = WHOSE.get(known, "an accepted answer" if "gain" in frame["aspect"].to_list() else "the answer")
    models = format_list(list(dict.fromkeys(part[0] for part in parts)))
    return f"{whose}, as measured by {models}" if models else whose


def contribution_notes(frame: pl.DataFrame) -> list[str]:
    """What to know before these contributions are read, from the frame of an annotator or grader."""
    known = context_rows(frame).filter(pl.col("contributions").is_not_null())
    if not known.height:
        return []
    asked, every = int(known["subsets"].sum()), sum(1 << len(each) for each in known["passages"])
    whole = "all" if asked == every else f"{asked:,} of {every:,}"
    notes = [f"contributions of {format_count(known.height, 'context')} from {whole} subsets of their passages"]
    sampled = known.filter(pl.col("method") == "permutations")
    open_ = sampled.filter(pl.col("settled") < 1).height
    if open_:
        notes.append(
            f"in {open_:,} of {format_count(sampled.height, 'context')} with sampled orders, the ranking of some "
            "passages isn't certain (see the standard errors; --subsets allows more calls)"
        )
    return notes


def position_profile(
    frame: pl.DataFrame, plan: Resampling | None = None, conversations: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Mean contribution, in nats, at each position, with a bootstrap interval over queries.

    From the frame of an annotator or grader. ``share`` is the mean share of the positive contributions, over contexts
    that have any. ``conversations`` has the conversation of each query that is a turn: whole conversations are drawn.
    """
    known = passage_rows(frame).filter(pl.col("status") == "ok", pl.col("passage").is_not_null())
    rows = []
    for (system, rank), mine in known.group_by("system", "rank", maintain_order=True):
        (mean,) = mean_by_query(mine["contribution"].to_numpy().reshape(-1, 1), mine["query"], plan, conversations)
        share = mine["share"].drop_nulls()
        mean_share = float(np.mean(share.to_numpy())) if len(share) else None
        rows.append((system, rank, mean.value, mean.low, mean.high, mean_share, mine.height))
    numbers = dict.fromkeys(("contribution", "low", "high", "share"), pl.Float64)
    schema = {"system": pl.String, "position": pl.Int64, **numbers, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("system", "position", maintain_order=True)


def mean_by_query(
    values: Floats, queries: pl.Series, plan: Resampling | None, conversations: Mapping[str, str] | None
) -> list[Estimate]:
    """The mean of each column with its interval; several rows of a query, or of a conversation, are one unit."""
    turns = cluster_labels(queries, conversations or {})
    return mean_estimates(values, plan or Resampling(), clusters=queries.to_numpy() if turns is None else turns)


def context_sentence(values: Floats, least: float, *, accepted: bool = False) -> str:
    """One context in words: how few passages carry most of the answer, and how many go against it.

    ``accepted``: the answer is known to be right, so what goes against it does harm.
    """
    k, against = len(values), int((values < -threshold(values, least)).sum())
    one, many = ("does harm", "do harm") if accepted else ("goes against it", "go against it")
    tail = f"; {against} of {k} {one if against == 1 else many}" if against else ""
    number = carrying(values, least)
    if not number:
        return f"no passage makes the answer likelier by more than {least:g} nats{tail}"
    positive = np.sort(np.maximum(values, 0))[::-1]
    share = positive[:number].sum() / positive.sum()
    verb = "carries" if number == 1 else "carry"
    return f"{format_count(number, 'passage')} of {k} {verb} {100 * share:.0f} % of the answer{tail}"


def carrying(values: Floats, least: float) -> int:
    """How few passages have `MOST` of the positive contributions; 0 if none contributes more than ``least`` nats."""
    positive = np.sort(np.maximum(values, 0))[::-1]
    if not len(values) or positive[0] <= least:
        return 0
    return int(np.searchsorted(np.cumsum(positive) / positive.sum(), MOST - 1e-12)) + 1
