"""Passages to write from, and those whose text occurs again."""

from __future__ import annotations

import polars as pl

from ragworth.build.questions.contract import SourceText

COLUMNS = ("passage", "document", "document_title", "text")


def passage_sources(passages: pl.DataFrame) -> dict[str, SourceText]:
    """Passages by their ids. ``passages`` has the columns above; a text has the title of its document in front."""
    return {
        id: SourceText(id, document, title, text.removeprefix(f"{title}\n") if title else text)
        for id, document, title, text in passages.select(COLUMNS).iter_rows()
    }


def repeated_passages(passages: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Passages whose text occurs again, whatever the titles of their documents, each with the others."""
    bodies = passages.select("passage", body=pl.col("text").str.strip_prefix(pl.col("document_title") + "\n"))
    groups = bodies.filter(pl.col("body").is_duplicated()).group_by("body", maintain_order=True).agg("passage")
    return {id: tuple(each for each in same if each != id) for same in groups["passage"].to_list() for id in same}
