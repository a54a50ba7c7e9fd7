"""Agents that search several times: which passages each hop found, and what each hop was worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from ragworth.core.errors import FormatError, format_count
from ragworth.data import Contexts
from ragworth.data.coercion import find_id_column, id_column, to_frame
from ragworth.formats.files import PathOrStr
from ragworth.formats.tables import read_table
from ragworth.formats.values import read_objects
from ragworth.judging.contribution.outcomes import LEAST
from ragworth.judging.contribution.rows import context_rows, mean_by_query
from ragworth.stats.estimate import Resampling

EXPECTED = "system, query, hop (1, 2, …), passage, and optionally turn and search: what the agent searched for"


class Hop(NamedTuple):
    """One search of an agent, and the passages that it was the first to find."""

    name: str
    search: str
    passages: tuple[str, ...]


HopTable: TypeAlias = Mapping[tuple[str, str], Sequence[Hop]]
"""Hops in their order, by system and query."""


def read_hops(path: PathOrStr) -> HopTable:
    """Read hops from Parquet, CSV, TSV or JSONL, one row for each passage that a search found.

    Several searches of one hop count as hops of their own. A passage that an earlier hop found belongs to that one. A
    row without a passage is a search that found nothing.
    """
    if str(path).lower().endswith((".jsonl", ".ndjson")):
        items = [item for _, item in read_objects(path, [], skip=False, expected=EXPECTED)]
        frame = to_frame(items, source=str(path))
    else:
        frame, _ = read_table(path)
    return hops_of(frame, str(path))


def hops_of(frame: pl.DataFrame, source: str = "") -> HopTable:
    """Hops from a frame with query, passage, and hop or turn, and optionally system (by default ``run``) and search."""
    counted = [name for name in ("turn", "hop") if name in frame.columns]
    if not counted:
        raise FormatError("there is no column 'hop'", file=source, expected=EXPECTED)
    numbers = [_hop_numbers(frame, name, source) for name in counted]
    named = find_id_column(frame, "system") is not None
    system = id_column(frame, "system", table="hops", source=source) if named else ["run"] * frame.height
    search = frame["search"].cast(pl.String).fill_null("") if "search" in frame.columns else [""] * frame.height
    query = id_column(frame, "query", table="hops", source=source)
    passage = _found_passages(frame, source)
    rows = sorted(
        zip(zip(*numbers, strict=True), range(frame.height), system, query, passage, search, strict=True),
        key=lambda row: row[:2],
    )
    found: dict[tuple[str, str], dict[tuple[tuple[int, ...], str], list[str]]] = {}
    seen: set[tuple[str, str, str]] = set()
    for number, _, name, asked, shown, words in rows:
        hop = found.setdefault((name, asked), {}).setdefault((number, words), [])
        if shown is not None and (name, asked, shown) not in seen:
            seen.add((name, asked, shown))
            hop.append(shown)
    return {
        key: [Hop(_hop_name(counted, number), words, tuple(passages)) for (number, words), passages in hops.items()]
        for key, hops in found.items()
    }


def _found_passages(frame: pl.DataFrame, source: str) -> list[str | None]:
    """The ids of the passages; None where a search found nothing."""
    named = find_id_column(frame, "passage")
    if named is None or not frame[named].null_count():
        return id_column(frame, "passage", table="hops", source=source).to_list()
    known = frame[named].is_not_null()
    ids = iter(id_column(frame.filter(known), "passage", table="hops", source=source).to_list())
    return [next(ids) if found else None for found in known]


def _hop_numbers(frame: pl.DataFrame, name: str, source: str) -> pl.Series:
    numbers = frame[name].cast(pl.Int64, strict=False)
    wrong = (numbers.is_null() | (numbers < 0)).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise FormatError(
            f"row {row + 1}: the {name} is {frame[name][row]!r}", file=source, expected="whole numbers: 1, 2, …"
        )
    return numbers


def _hop_name(counted: Sequence[str], number: Sequence[int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in zip(counted, number, strict=True))


def hop_contexts(hops: HopTable) -> Contexts:
    """All that the hops of each query found, in their order."""
    rows = [
        (system, query, passage, rank)
        for (system, query), mine in hops.items()
        for rank, passage in enumerate((each for hop in mine for each in hop.passages), 1)
    ]
    return Contexts(pl.DataFrame(rows, schema=["system", "query", "passage", "rank"], orient="row"))


def hops_needed(growing: Sequence[float], least: float) -> int:
    """The number of hops after which the others together add no more than ``least`` nats to the answer."""
    return next(n for n, value in enumerate(growing) if growing[-1] - value <= least)


def hop_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """A row for each hop: what it added when it came, and what it contributes in any order.

    From the frame of an annotator that splits answers among hops.
    """
    rows: list[tuple[Any, ...]] = []
    for context in context_rows(frame).filter(pl.col("growing").is_not_null()).iter_rows(named=True):
        added, values = np.diff(context["growing"]).tolist(), context["contributions"]
        rows += [
            (context["system"], context["query"], *hop)
            for hop in zip(context["passages"], context["searches"], added, values, context["growing"][1:], strict=True)
        ]
    numbers = dict.fromkeys(("added", "contribution", "logprob"), pl.Float64)
    texts = dict.fromkeys(("system", "query", "hop", "search"), pl.String)
    return pl.DataFrame(rows, schema={**texts, **numbers}, orient="row")


def hop_profile(
    frame: pl.DataFrame, plan: Resampling | None = None, conversations: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """What answers have gained after each number of hops, in nats: the mean with a bootstrap interval over queries.

    An answer with fewer hops keeps what it had after its last one.
    """
    rows = []
    known = context_rows(frame).filter(pl.col("growing").is_not_null())
    for (system,), mine in known.group_by("system", maintain_order=True):
        curves = [np.array(each) - each[0] for each in mine["growing"].to_list()]
        longest = max(map(len, curves))
        gains = np.array([np.pad(each, (0, longest - len(each)), mode="edge") for each in curves])
        for hop, mean in enumerate(mean_by_query(gains, mine["query"], plan, conversations)):
            reached = sum(len(each) > hop for each in curves)
            rows.append((system, hop, mean.value, mean.low, mean.high, reached))
    numbers = dict.fromkeys(("worth", "low", "high"), pl.Float64)
    schema = {"system": pl.String, "hops": pl.Int64, **numbers, "reached": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def stop_sentence(growing: Sequence[float], least: float = LEAST) -> str:
    """When an agent could have stopped, in words."""
    hops, needed = len(growing) - 1, hops_needed(growing, least)
    if needed == hops:
        return f"the agent couldn't have stopped earlier: the last search adds {growing[-1] - growing[-2]:.1f} nats"
    best, end = int(np.argmax(growing)), growing[-1]
    when = f"after {_searches(best)}" if best else "without any"
    more = f"; the answer was likeliest {when}" if growing[best] - end > least else ""
    if not needed:
        every = "the search adds" if hops == 1 else "all searches together add"
        return f"the agent could have answered without searching: {every} {_signed(end - growing[0])} nats{more}"
    enough = f"the agent could have stopped after {needed} of {_searches(hops)}"
    return f"{enough}: the rest adds {_signed(end - growing[needed])} nats{more}"


def _searches(number: int) -> str:
    return format_count(number, "search", "searches")


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
