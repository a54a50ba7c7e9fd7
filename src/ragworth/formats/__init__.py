"""Read tables from files and write them; one module per format.

A spec is a path, whose extension determines the format (TREC by default), or ``FORMAT:PATH``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
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
    """Return the format of a spec that supports ``what``, and the path without the prefix."""
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
    """Guess the format of a path without a known extension: BEIR for a folder, otherwise TREC."""
    prefix, colon, _ = path.partition(":")
    if colon and len(prefix) > 1 and "/" not in prefix and not os.path.lexists(path):
        raise FormatError(
            f"no such file, and no format named {quote_short(prefix, 24)}",
            file=path,
            expected=f"a path, or one of {', '.join(f'{name}:' for name in FORMATS.names())} before it",
        )
    # Unlike pathlib's is_dir, isdir returns False for an invalid file name.
    folder = os.path.isdir(path)  # noqa: PTH112
    return FORMATS.get("beir" if folder and what in ("judgments", "load") else "trec")


def read_contexts(
    spec: str | Path,
    *,
    system: str | None = None,
    ties: Ties = "float64",
    skip_bad_lines: bool = False,
) -> Contexts:
    """Read a run, named ``system``; by default after the file, or as named in it."""
    chosen, path = resolve(spec, "contexts")
    table: Contexts = chosen.do("contexts")(path, system=system, ties=ties, skip_bad_lines=skip_bad_lines)
    return table


def read_judgments(spec: str | Path, *, skip_bad_lines: bool = False) -> Judgments:
    """Read qrels, or judgments of any aspect."""
    return _read(spec, "judgments", skip_bad_lines)  # type: ignore[no-any-return]


def read_ratings(spec: str | Path, *, skip_bad_lines: bool = False) -> Ratings:
    """Read ratings of sub-questions, or sub-topic qrels."""
    return _read(spec, "ratings", skip_bad_lines)  # type: ignore[no-any-return]


def load(
    spec: str | Path, columns: Mapping[str, str] | None = None, *, skip_bad_lines: bool = False
) -> LoadedCollection:
    """Read a collection, and the contexts, answers and grades in the same file.

    ``columns`` maps our names of fields (question, answer, passages, …) to those of the file.
    """
    return _read(spec, "load", skip_bad_lines)  # type: ignore[no-any-return]


def load_records(data: Any, columns: Mapping[str, str] | None = None, *, source: str = "") -> LoadedCollection:
    """Convert a list of dicts, a data frame, or objects of another library; as :func:`load` does with a file."""
    raise NotImplementedError


class PassageLengths(NamedTuple):
    """Passage lengths (passage, tokens), how they were counted, and notes from reading."""

    frame: pl.DataFrame
    counter: str
    notes: tuple[str, ...]


def read_lengths(spec: str | Path, *, skip_bad_lines: bool = False) -> PassageLengths:
    """Read passage lengths from a ``tokens`` column, or count tokens in the texts."""
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
    """Write a table in the format of the extension; ``collection`` provides texts for JSONL.

    Answers, outcomes and scores can be written as Parquet, CSV or TSV.
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
