"""Read tables from files and write them; one module per format.

A spec is a path or ``FORMAT:PATH``. The beginning of a file says its format; for a file to write, the ending says it.
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
from ragworth.formats.catalog import Spec as Spec
from ragworth.formats.contract import Contents, Format, Head, Kind, LoadedCollection
from ragworth.formats.files import PathOrStr
from ragworth.formats.heads import read_head
from ragworth.formats.kinds import KIND_NAMES

USES = {
    "contexts": "read as contexts (a run)",
    "judgments": "read as judgments",
    "ratings": "read as ratings",
    "load": "read as a collection",
    "write_contexts": "written with contexts",
    "write_judgments": "written with judgments",
    "write_ratings": "written with ratings",
}
LOADED: set[Kind] = {"run", "log", "references", "collection", "queries", "passages", "texts"}
"""What a file may hold that is loaded whole."""


class Choice(NamedTuple):
    """A format, the path or head to give to it, and what the file holds, as far as that was looked at."""

    format: Format
    path: PathOrStr
    contents: Sequence[Contents] = ()


def choose(spec: PathOrStr, what: str, columns: Mapping[str, str] | None = None) -> Choice:
    """Return the format for a use: the one named before the path, or else the one that the file begins as.

    For a file to write, or one whose format doesn't have this use, the ending decides. ``columns`` are the user's
    names of fields, which only logs have.
    """
    prefix, path = Spec.of(spec)
    if prefix:
        return _checked(Choice(FORMATS.get(prefix), path), what)
    # Unlike pathlib's is_file and is_dir, these return False for an invalid file name.
    if what.startswith("write") or not (isinstance(path, Head) or os.path.isfile(path)):  # noqa: PTH113
        return _checked(Choice(_format_of_ending(path, what), str(path)), what)
    head = read_head(path)
    detected = detection.examine(head, columns)
    if detected.format is not None and detected.format.can(what):
        return Choice(detected.format, head, detected.contents)
    if columns is not None:
        return Choice(FORMATS.get("log"), head)
    other = Choice(_format_of_ending(head, what), head)
    if detected.format is None and what == "load" and (detected.head.columns or not other.format.can(what)):
        raise detection.unknown_error(detected.head)
    return _checked(other, what)


def _format_of_ending(path: PathOrStr, what: str) -> Format:
    """The format of a path by its ending; BEIR for a folder, and otherwise TREC."""
    suffix = Spec("", path).suffix
    if (known := next((each for each in FORMATS if suffix in each.endings), None)) is not None:
        return known
    before, colon, _ = str(path).partition(":")
    prefix = before.rpartition("/")[2]  # a workspace puts its folder before the path
    if colon and len(prefix) > 1 and not os.path.lexists(path):
        raise FormatError(
            f"no such file, and no format named {quote_short(prefix, 24)}",
            file=str(path),
            expected=f"a path, or one of {', '.join(f'{name}:' for name in FORMATS.names())} before it",
        )
    if what in ("judgments", "load") and os.path.isdir(path):  # noqa: PTH112
        return FORMATS.get("beir")
    return FORMATS.get("trec")


def _checked(choice: Choice, what: str) -> Choice:
    """The choice, if its format has this use."""
    if choice.format.can(what):
        return choice
    able = [each.name for each in FORMATS if each.can(what)]
    raise FormatError(
        f"{choice.format.title} cannot be {USES[what]}",
        file=str(choice.path),
        expected=" or ".join(able),
        remedy=f"name another format before the path: {able[0]}:{choice.path}",
    )


def read_contexts(
    spec: PathOrStr,
    *,
    system: str | None = None,
    ties: Ties = "float64",
    skip_bad_lines: bool = False,
) -> Contexts:
    """Read a run, named ``system``; by default after the file, or as named in it."""
    form, path, _ = choose(spec, "contexts")
    table: Contexts = form.do("contexts")(path, system=system, ties=ties, skip_bad_lines=skip_bad_lines)
    return table


def read_judgments(spec: PathOrStr, *, skip_bad_lines: bool = False) -> Judgments:
    """Read qrels, or judgments of any aspect."""
    return _read(spec, "judgments", skip_bad_lines)  # type: ignore[no-any-return]


def read_ratings(spec: PathOrStr, *, skip_bad_lines: bool = False) -> Ratings:
    """Read ratings of sub-questions, or sub-topic qrels."""
    return _read(spec, "ratings", skip_bad_lines)  # type: ignore[no-any-return]


def _read(spec: PathOrStr, what: str, skip_bad_lines: bool) -> Any:
    form, path, _ = choose(spec, what)
    return form.do(what)(path, skip_bad_lines=skip_bad_lines)


def load(
    spec: PathOrStr | Any, columns: Mapping[str, str] | None = None, *, skip_bad_lines: bool = False
) -> LoadedCollection:
    """Read a collection, and the contexts, answers and grades in the same file, data frame or list of dicts.

    ``columns`` maps our names of fields (question, answer, passages, …) to those of the file.
    """
    if not isinstance(spec, (str, os.PathLike)):
        return load_records(spec, columns)
    form, path, contents = choose(spec, "load", columns)
    options: dict[str, Any] = {"skip_bad_lines": skip_bad_lines}
    if columns is not None:
        form, options["columns"] = _mapped_format(form, path), columns
    elif contents and not LOADED & {each.kind for each in contents}:
        raise FormatError(
            f"it holds {KIND_NAMES[contents[0].kind]}, and no texts and no log",
            file=str(path),
            expected="a collection, texts of queries or passages, a log or a run",
        )
    loaded: LoadedCollection = form.do("load")(path, **options)
    return loaded


def _mapped_format(form: Format, path: PathOrStr) -> Format:
    """The format that reads columns by the user's names: that of a tool, or the general one."""
    if form.load_rows is None and form.name not in ("jsonl", "table"):
        raise FormatError(
            f"the columns of {form.title} can't be mapped", file=str(path), remedy="leave the mapping out"
        )
    return form if form.load_rows is not None else FORMATS.get("log")


def load_records(data: Any, columns: Mapping[str, str] | None = None, *, source: str = "") -> LoadedCollection:
    """Convert a list of dicts, a data frame, or objects of another library, as :func:`load` does with a file.

    ``source`` names the data in notes and errors, and the system if the data has no name for it.
    """
    rows = records.read_rows(data, source)
    head = Head(source, "json", document=rows.document, rows=rows.first, columns=rows.columns)
    detected = detection.examine(head, columns)
    if detected.head is not head:
        return load_records(detected.head.document, columns, source=source)
    form = detected.format
    if form is None or form.load_rows is None:
        if columns is None:
            raise detection.unknown_error(head)
        form = FORMATS.get("log")
    loaded: LoadedCollection = form.do("load_rows")(rows.values, columns=columns, source=source, cells=rows.cells)
    return loaded


class PassageLengths(NamedTuple):
    """Passage lengths (passage, tokens), how they were counted, and notes from reading."""

    frame: pl.DataFrame
    counter: str
    notes: tuple[str, ...]


def read_lengths(spec: PathOrStr, *, tokens: str = WORDS, skip_bad_lines: bool = False) -> PassageLengths:
    """Read passage lengths from a ``tokens`` column, or count tokens in the texts."""
    form, path, _ = choose(spec, "load")
    if form.name == "table":
        from ragworth.formats.tables import read_table

        frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
        if "tokens" in frame.columns:
            return PassageLengths(frame, f"column 'tokens' of {path}", notes)
        texts = Collection.of(passages=frame, source=str(path), notes=notes)
    else:
        texts = load(spec, skip_bad_lines=skip_bad_lines).collection
    texts = texts.counting(tokens)
    return PassageLengths(texts.tokens(), texts.counter.name, texts.notes)


def write(table: Table, spec: PathOrStr, collection: Collection | None = None) -> None:
    """Write a table in the format of the extension; ``collection`` provides texts for JSONL.

    Answers, outcomes and scores can be written as Parquet, CSV or TSV.
    """
    what = f"write_{table.name}"
    if what not in USES:
        FORMATS.get("table").do("write_contexts")(table, spec)
        return
    form, path, _ = choose(spec, what)
    more = (collection,) if form.name == "jsonl" else ()
    form.do(what)(table, path, *more)
