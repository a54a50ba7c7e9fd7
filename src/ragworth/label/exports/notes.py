"""What users should know about an export, such as what isn't in its files."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ragworth.core.errors import format_count
from ragworth.data import OK
from ragworth.label.dataset import NO_MAJORITY, LabelledData
from ragworth.label.exports import LABEL_EXPORTS
from ragworth.label.exports.qrels import agreed_relevance

NOT_RELEVANT = "most metrics count a passage without a label as not relevant"


def export_notes(data: LabelledData, name: str) -> tuple[str, ...]:
    """Notes on an export in the format ``name``."""
    found = () if LABEL_EXPORTS.get(name).has_items else tuple(_unlabelled_notes(data, name))
    return (*found, *_table_notes(data)) if name == "tables" else found


def _unlabelled_notes(data: LabelledData, name: str) -> Iterator[str]:
    if data.unlabelled:
        every = len(data.labelled) + data.unlabelled
        why = f"; {NOT_RELEVANT}" if name == "qrels" else ""
        yield f"{data.unlabelled:,} of {format_count(every, 'item')} without a label{why}"
    if name == "qrels":
        agreed = agreed_relevance(data)
        without = agreed.filter(pl.col("status") != OK)
        if without.height:
            split = int((without["status"] == NO_MAJORITY).sum())
            reasons = [f"{split:,} without a majority"] if split else []
            reasons += [f"{without.height - split:,} whose majority has no score"] if split < without.height else []
            left_out = f"qrels.txt leaves out {without.height:,} of {format_count(agreed.height, 'labelled passage')}"
            yield f"{left_out}: {', '.join(reasons)}; {NOT_RELEVANT}"


def _table_notes(data: LabelledData) -> Iterator[str]:
    if data.has_random_share and data.unfinished_random:
        count = format_count(data.unfinished_random, "item")
        yield f"estimate-….csv lacks {count} drawn at random; estimates may be biased until all have a label"
    if data.has_random_share and data.unfinished_disputed:
        count = format_count(data.unfinished_disputed, "disputed item")
        yield f"corrections-….csv is not written: {count} without a label"
    if data.chosen_by_hand:
        count = format_count(data.chosen_by_hand, "labelled item")
        yield f"estimate-….csv and corrections-….csv leave out {count} chosen by hand"
