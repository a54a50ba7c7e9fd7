"""Read runs and relevance labels from JSON as pytrec_eval, ranx and BEIR write them.

A document is ``{query: {passage: number}}``; runs may also be ``{system: {query: {passage: number}}}``.
"""

from __future__ import annotations

from typing import Any

from ragworth.errors import FormatError, quote_short
from ragworth.formats.contract import FileSample, Format
from ragworth.formats.files import PathOrStr, run_name
from ragworth.formats.log_files import read_document
from ragworth.tables import Contexts, Judgments
from ragworth.tables.ranking import Ties

LARGEST = 2**1023
"""Whole numbers below this fit into a float."""

MOST_FRACTIONS = 10
"""Different fractions above which labels look like scores: those of a run are hardly ever equal."""

MOST_LABELS = 5
"""Different whole numbers up to which scores look like labels."""

EXPECTED = '{"q1": {"d7": 14.25, …}, …}'


def read_contexts(
    path: PathOrStr, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read a run, or those of several systems. A query without passages retrieved nothing."""
    document = _read(path)
    runs = {system or run_name(path): document} if _is_scored(document) else document
    rows = [(name, *row) for name, queries in runs.items() for row in _rows(path, queries)]
    empty = [(name, query) for name, queries in runs.items() for query, passages in queries.items() if not passages]
    names = ("system", "query", "passage", "score")
    table = [dict(zip(names, row, strict=True)) for row in rows]
    contexts = Contexts(table, ties=ties, source=str(path), empty=empty)
    values = sorted({score for *_, score in rows})
    if len(values) <= MOST_LABELS and all(value.is_integer() for value in values):
        found = ", ".join(f"{value:g}" for value in values)
        contexts.notes = (*contexts.notes, f"{path}: the only scores are {found}; check that these aren't labels")
    return contexts


def read_judgments(path: PathOrStr, *, skip_bad_lines: bool = False) -> Judgments:
    """Read relevance labels."""
    rows = _rows(path, _read(path))
    fractions = list(dict.fromkeys(value for _, _, value in rows if not value.is_integer()))
    notes: tuple[str, ...] = ()
    if len(fractions) > MOST_FRACTIONS:
        found = f"the labels are {len(fractions):,} different fractions, such as {fractions[0]}"
        notes = (f"{path}: {found}; check that this isn't a run",)
    names = ("query", "passage", "relevance")
    return Judgments([dict(zip(names, row, strict=True)) for row in rows], source=str(path), notes=notes)


def _read(path: PathOrStr) -> dict[str, Any]:
    document = read_document(path)
    if len(document) != 1 or not _is_nested(document[0]):
        raise FormatError("it has no numbers by query and passage", file=str(path), expected=EXPECTED)
    return dict(document[0])


def _rows(path: PathOrStr, queries: dict[str, Any]) -> list[tuple[str, str, float]]:
    """The rows of ``{query: {passage: number}}``; anything else in it is an error."""
    rows: list[tuple[str, str, float]] = []
    for query, passages in queries.items():
        wrong = passages if not isinstance(passages, dict) else [v for v in passages.values() if not _is_number(v)][:1]
        if wrong or not isinstance(passages, dict):
            shown = quote_short(wrong[0] if isinstance(wrong, list) else wrong, 24)
            raise FormatError(f"query {quote_short(query, 24)} has {shown}", file=str(path), expected=EXPECTED)
        rows += [(query, passage, float(value)) for passage, value in passages.items()]
    return rows


def _is_number(value: Any) -> bool:
    if isinstance(value, int):  # true and false are labels too
        return abs(value) < LARGEST
    return isinstance(value, float)


def _is_scored(document: Any) -> bool:
    """Whether this begins as ``{query: {passage: number}}``."""
    if not isinstance(document, dict) or not all(isinstance(each, dict) for each in document.values()):
        return False
    first = next((each for each in document.values() if each), None)
    return first is not None and all(map(_is_number, first.values()))


def _is_nested(document: Any) -> bool:
    """Whether this begins as ``{query: {passage: number}}``, perhaps for each system."""
    if _is_scored(document):
        return True
    if not isinstance(document, dict) or not all(isinstance(each, dict) for each in document.values()):
        return False
    return _is_scored(next((each for each in document.values() if each), None))


def _recognise(sample: FileSample) -> bool:
    return sample.kind == "json" and _is_nested(sample.document)


FORMAT = Format(
    name="pytrec_eval",
    title="JSON of numbers by query and passage",
    contexts=read_contexts,
    judgments=read_judgments,
    recognise=_recognise,
)
