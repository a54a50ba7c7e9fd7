"""Ids of runs that judgments have in another spelling, so that they don't match."""

from __future__ import annotations

import polars as pl

from ragworth.core.errors import format_count, quote_short

MAX_PASSAGES = 50_000
"""Number of passages, over all systems and from the first ranks on, whose ids are compared."""

SPELLING = (
    pl.col("id")
    .str.normalize("NFC")
    .str.strip_chars()
    .str.to_lowercase()
    .str.replace_all(r"(^|[^0-9.])0+([0-9])", "$1$2")
    .str.replace(r"^([0-9]+)\.0$", "$1")
    .alias("key")
)


def spelling_hint(unknown: pl.Series, known: pl.Series, what: str, noun: tuple[str, str] = ("query", "queries")) -> str:
    """Say how many unknown ids are known ones in another spelling; empty if none is."""
    return _hint(unknown.rename("id").to_frame(), known.rename("id").to_frame(), what, *noun)


def passage_hint(shown: pl.DataFrame, judged: pl.DataFrame, what: str) -> str:
    """Say how many passages without a judgment have one in another spelling; empty if none has.

    Both tables have query and passage. An id that both have, be it for other queries, isn't misspelt.
    """
    near = judged.select("query", "passage").join(shown.select("query").unique(), on="query", how="semi").unique()
    unknown, missed = shown.join(judged, on="passage", how="anti"), near.join(shown, on="passage", how="anti")
    return _hint(unknown.rename({"passage": "id"}), missed.rename({"passage": "id"}), what, "passage", "passages")


def _hint(unknown: pl.DataFrame, known: pl.DataFrame, what: str, one: str, several: str) -> str:
    frames = [frame.with_columns(SPELLING) for frame in (unknown, known)]
    keys = [name for name in unknown.columns if name != "id"]
    pairs = frames[0].join(frames[1], on=[*keys, "key"], maintain_order="left")
    same = pairs.unique([*keys, "id"], maintain_order=True)
    if not same.height:
        return ""
    mine, theirs = (quote_short(each, 24) for each in same.select("id", "id_right").row(0))
    differ = "differs" if same.height == 1 else "differ"
    return (
        f"{format_count(same.height, one, several)} {differ} from {what} ones only "
        f"in leading zeros, spaces, case, a final .0 or Unicode form ({mine} and {theirs}); write the ids the same way"
    )
