"""Token F1 of answers with the accepted ones, straight from the tables of an evaluation."""

from __future__ import annotations

import polars as pl

from ragworth.results import Results
from ragworth.tables import ANSWERED_STATUSES
from ragworth.tasks.text_lookup import TextLookup
from ragworth.text_match.overlap import token_f1


def answer_f1(results: Results) -> pl.DataFrame:
    """system, query and value for each answer that has a text and accepted ones to compare it with."""
    rows = []
    if results.answers is not None:
        texts = TextLookup(results.collection)
        written = results.answers.frame.filter(pl.col("status").is_in(ANSWERED_STATUSES)).drop_nulls("text")
        rows = [
            (system, query, token_f1(text, accepted))
            for system, query, text in written.select("system", "query", "text").iter_rows()
            if (accepted := texts.known_answers(query))
        ]
    return pl.DataFrame(rows, {"system": pl.String, "query": pl.String, "value": pl.Float64}, orient="row")
