"""Sentences about the contributions of many contexts: whose answers, what they cost, and how certain they are."""

from __future__ import annotations

import polars as pl

from ragworth.contribution.rows import context_rows
from ragworth.core.errors import format_count, format_list

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
