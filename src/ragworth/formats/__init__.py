"""Read tables from files and write them; one module per format.

A spec is a path, whose extension determines the format (TREC by default), or ``FORMAT:PATH``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from ragworth.core.errors import FormatError, quote_short
from ragworth.data import Contexts, Judgments, Ratings, Table
from ragworth.data.collection import Collection
from ragworth.data.ranking import Ties
from ragworth.data.tokens import WORDS
from ragworth.formats import detection, records
from ragworth.formats.catalog import FORMATS as FORMATS
from ragworth.formats.contract import Contents, Format, Head, Kind, LoadedCollection
from ragworth.formats.files import PathOrStr, suffix_of
from ragworth.formats.heads import read_head
from ragworth.formats.kinds import KIND_NAMES
from ragworth.formats.logs.rows import find_rows

LOADED: set[Kind] = {"run", "log", "references", "collection", "queries", "passages", "texts"}
"""What a file may hold that is loaded whole."""

USES = {
    "contexts": "read as contexts (a run)",
    "judgments": "read as judgments",
    "ratings": "read as ratings",
    "load": "read as a collection",
    "write_contexts": "written with contexts",
    "write_judgments": "written with judgments",
    "write_ratings": "written with ratings",
}


class Spec(NamedTuple):
    """A path, or the head of its file, and the format in front of it; "" if none is named."""

    format: str
    path: PathOrStr

    @classmethod
    def of(cls, text: PathOrStr) -> Spec:
        """Split ``FORMAT:PATH``. Only the names of formats count, because file names may have a colon."""
        prefix, colon, rest = str(text).partition(":")
        return cls(prefix, rest) if colon and prefix in FORMATS and not isinstance(text, Head) else cls("", text)


class Choice(NamedTuple):
    """A format, the path or head to give to it, and what the file holds, as far as that was looked at."""

    format: Format
    path: PathOrStr
    contents: Sequence[Contents] = ()


def resolve(spec: PathOrStr, what: str) -> Choice:
    """Return the format of a spec by its prefix or ending, and the path without the prefix."""
    prefix, path = Spec.of(spec)
    name = str(path).removesuffix(".gz").removesuffix(".zst").lower()
    by_ending = [f for f in FORMATS if name.endswith(f.endings or ("\0",))]
    chosen = FORMATS.get(prefix) if prefix else by_ending[0] if by_ending else _default_format(path, what)
    if not chosen.can(what):
        if os.path.isfile(path):  # noqa: PTH113
            read_head(path)  # which says it if this is no text at all
        able = [f.name for f in FORMATS if f.can(what)]
        raise FormatError(
            f"{chosen.title} cannot be {USES[what]}",
            file=str(path),
            expected=" or ".join(able),
            remedy=f"name another format before the path: {able[0]}:{path}",
        )
    return Choice(chosen, path if isinstance(path, Head) else str(path))


def _default_format(path: PathOrStr, what: str) -> Format:
    """The format of a path without a known ending: BEIR for a folder, otherwise TREC."""
    prefix, colon, _ = str(path).partition(":")
    if colon and len(prefix) > 1 and "/" not in prefix and not os.path.lexists(path):
        raise FormatError(
            f"no such file, and no format named {quote_short(prefix, 24)}",
            file=str(path),
            expected=f"a path, or one of {', '.join(f'{name}:' for name in FORMATS.names())} before it",
        )
    if suffix_of(path) == ".json" and os.path.isfile(path):  # noqa: PTH113
        return FORMATS.get("pytrec_eval")
    # Unlike pathlib's is_dir, isdir returns False for an invalid file name.
    folder = os.path.isdir(path)  # noqa: PTH112
    return FORMATS.get("beir" if folder and what in ("judgments", "load") else "trec")


def choose(spec: PathOrStr, what: str, columns: Mapping[str, str] | None = None) -> Choice:
    """Return the format of a spec, looking into the file unless a prefix names the format.

    ``columns`` are the user's names of fields, which only logs have.
    """
    prefix, path = Spec.of(spec)
    missing_document = suffix_of(path) == ".json" and not os.path.exists(path)  # noqa: PTH110
    # Pathlib's is_file raises on an invalid name.
    if prefix or not (isinstance(path, Head) or os.path.isfile(path) or missing_document):  # noqa: PTH113
        return resolve(spec, what)
    head = read_head(path)
    looked = detection.examine(head, columns)
    found = looked.format
    if found is not None and found.can(what) and (columns is None or found.load_rows is not None):
        return Choice(found, head, looked.contents)
    if columns is not None:
        return Choice(FORMATS.get("log"), head)
    if what == "load" and found is None and (looked.head.columns or suffix_of(path) in (".json", ".eval")):
        raise detection.unknown_error(looked.head)
    return resolve(head, what)


def read_contexts(
    spec: PathOrStr,
    *,
    system: str | None = None,
    ties: Ties = "float64",
    skip_bad_lines: bool = False,
) -> Contexts:
    """Read a run, named ``system``; by default after the file, or as named in it."""
    chosen, path, _ = choose(spec, "contexts")
    table: Contexts = chosen.do("contexts")(path, system=system, ties=ties, skip_bad_lines=skip_bad_lines)
    return table


def read_judgments(spec: PathOrStr, *, skip_bad_lines: bool = False) -> Judgments:
    """Read qrels, or judgments of any aspect."""
    return _read(spec, "judgments", skip_bad_lines)  # type: ignore[no-any-return]


def read_ratings(spec: PathOrStr, *, skip_bad_lines: bool = False) -> Ratings:
    """Read ratings of sub-questions, or sub-topic qrels."""
    return _read(spec, "ratings", skip_bad_lines)  # type: ignore[no-any-return]


def load(
    spec: PathOrStr | Any, columns: Mapping[str, str] | None = None, *, skip_bad_lines: bool = False
) -> LoadedCollection:
    """Read a collection, and the contexts, answers and grades in the same file, data frame or list of dicts.

    ``columns`` maps our names of fields (question, answer, passages, …) to those of the file.
    """
    if not isinstance(spec, (str, os.PathLike)):
        return load_records(spec, columns)
    chosen, path, contents = choose(spec, "load", columns)
    more: dict[str, Any] = {} if columns is None else {"columns": columns}
    if more and chosen.name in ("jsonl", "table"):
        chosen = FORMATS.get("log")
    if more and chosen.load_rows is None:
        raise FormatError(
            f"the columns of {chosen.title} can't be mapped", file=str(path), remedy="leave the mapping out"
        )
    if contents and not LOADED & {each.kind for each in contents}:
        raise FormatError(
            f"it holds {KIND_NAMES[contents[0].kind]}, and no texts and no log",
            file=str(path),
            expected="a collection, texts of queries or passages, a log or a run",
        )
    loaded: LoadedCollection = chosen.do("load")(path, skip_bad_lines=skip_bad_lines, **more)
    return loaded


def load_records(data: Any, columns: Mapping[str, str] | None = None, *, source: str = "") -> LoadedCollection:
    """Convert a list of dicts, a data frame, or objects of another library, as :func:`load` does with a file.

    ``source`` names the data in notes and errors, and the system if the data has no name for it.
    """
    return _load_rows(records.read_rows(data, source), columns, source)


def _load_rows(rows: records.MemoryRows, columns: Mapping[str, str] | None, source: str) -> LoadedCollection:
    head = Head(source, "json", document=rows.document, rows=rows.first, columns=rows.columns)
    chosen = detection.recognise(head).format
    inner = find_rows(rows.document, known=chosen is not None, columns=columns)
    if inner is not None:
        return _load_rows(records.read_rows(inner, source), columns, source)
    if chosen is None or chosen.load_rows is None:
        if columns is None:
            raise detection.unknown_error(head)
        chosen = FORMATS.get("log")
    loaded: LoadedCollection = chosen.do("load_rows")(rows.values, columns=columns, source=source, cells=rows.cells)
    return loaded


class PassageLengths(NamedTuple):
    """Passage lengths (passage, tokens), how they were counted, and notes from reading."""

    frame: pl.DataFrame
    counter: str
    notes: tuple[str, ...]


def read_lengths(spec: PathOrStr, *, tokens: str = WORDS, skip_bad_lines: bool = False) -> PassageLengths:
    """Read passage lengths from a ``tokens`` column, or count tokens in the texts."""
    chosen, path, _ = resolve(spec, "load")
    if chosen.name == "table":
        from ragworth.formats.tables import read_table

        frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
        if "tokens" in frame.columns:
            return PassageLengths(frame, f"column 'tokens' of {path}", notes)
        texts = Collection.of(passages=frame, source=str(path), notes=notes)
    else:
        texts = load(spec, skip_bad_lines=skip_bad_lines).collection
    texts = texts.counting(tokens)
    return PassageLengths(texts.tokens(), texts.counter.name, texts.notes)


def _read(spec: PathOrStr, what: str, skip_bad_lines: bool) -> Any:
    chosen, path, _ = choose(spec, what)
    return chosen.do(what)(path, skip_bad_lines=skip_bad_lines)


def write(table: Table, spec: PathOrStr, collection: Collection | None = None) -> None:
    """Write a table in the format of the extension; ``collection`` provides texts for JSONL.

    Answers, outcomes and scores can be written as Parquet, CSV or TSV.
    """
    what = f"write_{table.name}"
    if what not in USES:
        FORMATS.get("table").do("write_contexts")(table, spec)
        return
    chosen, path, _ = resolve(spec, what)
    if chosen.name == "jsonl":
        chosen.do(what)(table, path, collection)
    else:
        chosen.do(what)(table, path)
