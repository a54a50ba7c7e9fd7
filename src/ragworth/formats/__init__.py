"""Files to tables and back, one file a format.

A spec is a path, whose ending tells the format (TREC when none does), or ``FORMAT:PATH``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.collection import WORD_UNIT, Collection
from ragworth.errors import FormatError, quote_short
from ragworth.formats.contract import Format, LoadedCollection
from ragworth.registry import Registry
from ragworth.tables import Contexts, Judgments, Ratings, Table
from ragworth.tables.ranking import Ties

FORMATS: Registry[Format] = Registry(
    "format",
    "ragworth.formats",
    {
        "trec": "ragworth.formats.trec:FORMAT",
        "table": "ragworth.formats.frames:FORMAT",
        "jsonl": "ragworth.formats.jsonl:FORMAT",
        "beir": "ragworth.formats.beir:FORMAT",
        "exam": "ragworth.formats.exam:FORMAT",
        "ir_datasets": "ragworth.formats.ir_datasets:FORMAT",
    },
)

USES = {
    "contexts": "read as contexts (a run)",
    "judgments": "read as judgments",
    "ratings": "read as ratings",
    "load": "read as a collection",
    "write_contexts": "written with contexts",
    "write_judgments": "written with judgments",
    "write_ratings": "written with ratings",
}


def resolve(spec: str | Path, what: str) -> tuple[Format, str]:
    """The format of a spec that can do ``what``, and the path without its prefix."""
    text = str(spec)
    prefix, colon, rest = text.partition(":")
    if colon and prefix in FORMATS:
        chosen, path = FORMATS.get(prefix), rest
    else:
        name = text.removesuffix(".gz").removesuffix(".zst").lower()
        by_ending = [f for f in FORMATS if name.endswith(f.endings or ("\0",))]
        chosen, path = (by_ending[0] if by_ending else _guess_format(text, what)), text
    if not chosen.can(what):
        able = [f.name for f in FORMATS if f.can(what)]
        raise FormatError(
            f"{chosen.title} cannot be {USES[what]}",
            file=path,
            expected=" or ".join(able),
            remedy=f"name another format before the path: {able[0]}:{path}",
        )
    return chosen, path


def _guess_format(path: str, what: str) -> Format:
    """Where no ending tells: a folder is BEIR's, everything else TREC's."""
    prefix, colon, _ = path.partition(":")
    if colon and len(prefix) > 1 and "/" not in prefix and not os.path.lexists(path):
        raise FormatError(
            f"there is no such file, and no format {quote_short(prefix, 24)}",
            file=path,
            expected=f"a path, or one of {', '.join(f'{name}:' for name in FORMATS.names())} before it",
        )
    # Unlike pathlib's, isdir is False for a name that no file system takes.
    folder = os.path.isdir(path)  # noqa: PTH112
    return FORMATS.get("beir" if folder and what in ("judgments", "load") else "trec")


def read_contexts(
    spec: str | Path,
    *,
    system: str | None = None,
    ties: Ties = "float64",
    skip_bad_lines: bool = False,
) -> Contexts:
    """Read a run. ``system`` names it; else the file's name does, or the file itself."""
    chosen, path = resolve(spec, "contexts")
    table: Contexts = chosen.do("contexts")(path, system=system, ties=ties, skip_bad_lines=skip_bad_lines)
    return table


def read_judgments(spec: str | Path, *, skip_bad_lines: bool = False) -> Judgments:
    """Read qrels, or judgments of any aspects."""
    return _read(spec, "judgments", skip_bad_lines)  # type: ignore[no-any-return]


def read_ratings(spec: str | Path, *, skip_bad_lines: bool = False) -> Ratings:
    """Read ratings of sub-questions, or sub-topic qrels."""
    return _read(spec, "ratings", skip_bad_lines)  # type: ignore[no-any-return]


def load(spec: str | Path, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read a collection, with the contexts that come in the same file."""
    return _read(spec, "load", skip_bad_lines)  # type: ignore[no-any-return]


class PassageLengths(NamedTuple):
    """Passage lengths (passage, tokens), who counted them, and what was noticed while reading."""

    frame: pl.DataFrame
    counter: str
    notes: tuple[str, ...]


def read_lengths(spec: str | Path, *, skip_bad_lines: bool = False) -> PassageLengths:
    """How long passages are: by a column ``tokens``, or counted by us from the texts."""
    chosen, path = resolve(spec, "load")
    if chosen.name == "table":
        from ragworth.formats.frames import read_table

        frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
        if "tokens" in frame.columns:
            return PassageLengths(frame, f"column 'tokens' of {path}", notes)
        texts = Collection.of(passages=frame, source=path, notes=notes)
    else:
        texts = load(spec, skip_bad_lines=skip_bad_lines).collection
    return PassageLengths(texts.tokens(), WORD_UNIT, texts.notes)


def _read(spec: str | Path, what: str, skip_bad_lines: bool) -> Any:
    chosen, path = resolve(spec, what)
    return chosen.do(what)(path, skip_bad_lines=skip_bad_lines)


def write(table: Table, spec: str | Path, collection: Collection | None = None) -> None:
    """Write a table in the format that the ending tells; ``collection`` gives texts to JSONL.

    Answers, outcomes and scores go to Parquet, CSV or TSV.
    """
    what = f"write_{table.name}"
    if what not in USES:
        FORMATS.get("table").do("write_contexts")(table, spec)
        return
    chosen, path = resolve(spec, what)
    if chosen.name == "jsonl":
        chosen.do(what)(table, path, collection)
    else:
        chosen.do(what)(table, path)
