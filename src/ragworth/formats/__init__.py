"""Read tables from files and write them; one module per format.

A spec is a path, whose extension determines the format (TREC by default), or ``FORMAT:PATH``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.core.errors import FormatError, quote_short
from ragworth.data import Contexts, Judgments, Ratings, Table
from ragworth.data.collection import Collection
from ragworth.data.ranking import Ties
from ragworth.data.token_counter import WORDS
from ragworth.formats import detection, records
from ragworth.formats.catalog import FORMATS as FORMATS
from ragworth.formats.contract import FileSample, Format, LoadedCollection
from ragworth.formats.files import open_file
from ragworth.formats.heads import suffix_of
from ragworth.formats.logs.document_rows import find_rows

USES = {
    "contexts": "read as contexts (a run)",
    "judgments": "read as judgments",
    "ratings": "read as ratings",
    "load": "read as a collection",
    "write_contexts": "written with contexts",
    "write_judgments": "written with judgments",
    "write_ratings": "written with ratings",
}


ROWS = ("contexts", "judgments", "ratings")
"""What TREC files hold; a text of a few words may look like one of their lines."""


def resolve(spec: str | Path, what: str) -> tuple[Format, str]:
    """Return the format of a spec that supports ``what``, and the path without the prefix."""
    text = str(spec)
    prefix, colon, rest = text.partition(":")
    if colon and prefix in FORMATS:
        chosen, path = FORMATS.get(prefix), rest
    else:
        name = text.removesuffix(".gz").removesuffix(".zst").lower()
        by_ending = [f for f in FORMATS if name.endswith(f.endings or ("\0",))]
        table = bool(by_ending) and not (name.endswith(".tsv") and what in ROWS and _is_trec(text))
        chosen, path = (by_ending[0] if table else _guess_format(text, what)), text
    if not chosen.can(what):
        if os.path.isfile(path):  # noqa: PTH113
            with open_file(path):  # which says it if this is no text at all
                pass
        able = [f.name for f in FORMATS if f.can(what)]
        raise FormatError(
            f"{chosen.title} cannot be {USES[what]}",
            file=path,
            expected=" or ".join(able),
            remedy=f"name another format before the path: {able[0]}:{path}",
        )
    return chosen, path


def _is_trec(path: str) -> bool:
    """Whether a file begins with a line of TREC instead of a header, as the qrels.dev.tsv of MS MARCO."""
    if not os.path.isfile(path):  # noqa: PTH113
        return False
    recognise = FORMATS.get("trec").recognise
    with open_file(path) as stream:
        sample = FileSample(path, "text", stream.readline(1 << 16))
    return recognise is not None and recognise(sample)


def _guess_format(path: str, what: str) -> Format:
    """Guess the format of a path without a known extension: BEIR for a folder, otherwise TREC."""
    prefix, colon, _ = path.partition(":")
    if colon and len(prefix) > 1 and "/" not in prefix and not os.path.lexists(path):
        raise FormatError(
            f"no such file, and no format named {quote_short(prefix, 24)}",
            file=path,
            expected=f"a path, or one of {', '.join(f'{name}:' for name in FORMATS.names())} before it",
        )
    if suffix_of(path) == ".json" and os.path.isfile(path):  # noqa: PTH113
        return FORMATS.get("pytrec_eval")
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
    chosen, path = _choose(spec, "contexts")
    table: Contexts = chosen.do("contexts")(path, system=system, ties=ties, skip_bad_lines=skip_bad_lines)
    return table


def read_judgments(spec: str | Path, *, skip_bad_lines: bool = False) -> Judgments:
    """Read qrels, or judgments of any aspect."""
    return _read(spec, "judgments", skip_bad_lines)  # type: ignore[no-any-return]


def read_ratings(spec: str | Path, *, skip_bad_lines: bool = False) -> Ratings:
    """Read ratings of sub-questions, or sub-topic qrels."""
    return _read(spec, "ratings", skip_bad_lines)  # type: ignore[no-any-return]


def load(
    spec: str | Path | Any, columns: Mapping[str, str] | None = None, *, skip_bad_lines: bool = False
) -> LoadedCollection:
    """Read a collection, and the contexts, answers and grades in the same file, data frame or list of dicts.

    ``columns`` maps our names of fields (question, answer, passages, …) to those of the file.
    """
    if not isinstance(spec, (str, os.PathLike)):
        return load_records(spec, columns)
    chosen, path = _choose(str(spec), "load", columns)
    more: dict[str, Any] = {} if columns is None else {"columns": columns}
    if more and chosen.name in ("jsonl", "table"):
        chosen = FORMATS.get("log")
    if more and chosen.load_rows is None:
        raise FormatError(f"the columns of {chosen.title} can't be mapped", file=path, remedy="leave the mapping out")
    loaded: LoadedCollection = chosen.do("load")(path, skip_bad_lines=skip_bad_lines, **more)
    return loaded


def load_records(data: Any, columns: Mapping[str, str] | None = None, *, source: str = "") -> LoadedCollection:
    """Convert a list of dicts, a data frame, or objects of another library, as :func:`load` does with a file.

    ``source`` names the data in notes and errors, and the system if the data has no name for it.
    """
    return _load_rows(records.read_rows(data, source), columns, source)


def _load_rows(rows: records.MemoryRows, columns: Mapping[str, str] | None, source: str) -> LoadedCollection:
    sample = FileSample(source, "json", document=rows.document, rows=rows.first, columns=rows.columns)
    chosen = detection.recognise(sample)
    inner = find_rows(rows.document, known=chosen is not None, columns=columns)
    if inner is not None:
        return _load_rows(records.read_rows(inner.rows, source)._replace(note=inner.note), columns, source)
    if chosen is None or chosen.load_rows is None:
        if columns is None:
            raise detection.unknown_error(sample)
        chosen = FORMATS.get("log")
    loaded: LoadedCollection = chosen.do("load_rows")(
        rows.values, columns=columns, source=source, cells=rows.cells, note=rows.note
    )
    return loaded


DETECTABLE = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".eval")
"""Extensions of files whose format depends on what is in them."""


def _choose(spec: str | Path, what: str, columns: Mapping[str, str] | None = None) -> tuple[Format, str]:
    """Return the format of a spec, looking into the file if its extension leaves the format open."""
    path = str(spec)
    prefix, colon, _ = path.partition(":")
    if (colon and prefix in FORMATS) or suffix_of(path) not in DETECTABLE:
        return resolve(spec, what)
    # A pipe can't be read twice, and pathlib's is_file raises on an invalid name.
    if not os.path.isfile(path) and (suffix_of(path) != ".json" or os.path.exists(path)):  # noqa: PTH110, PTH113
        return resolve(spec, what)
    sample, found = detection.inspect_file(path, columns)
    if found is not None and found.can(what):
        usable = columns is None or found.load_rows is not None
        return (found if usable else FORMATS.get("log")), path
    if columns is not None:
        return FORMATS.get("log"), path
    if what == "load" and found is None and (sample.columns or suffix_of(path) in (".json", ".eval")):
        raise detection.unknown_error(sample)
    return resolve(spec, what)


class PassageLengths(NamedTuple):
    """Passage lengths (passage, tokens), how they were counted, and notes from reading."""

    frame: pl.DataFrame
    counter: str
    notes: tuple[str, ...]


def read_lengths(spec: str | Path, *, tokens: str = WORDS, skip_bad_lines: bool = False) -> PassageLengths:
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
    texts = texts.counting(tokens)
    return PassageLengths(texts.tokens(), texts.counter.name, texts.notes)


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
