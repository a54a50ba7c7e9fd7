"""Read a BEIR folder: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``.

``beir:FOLDER`` reads the split ``test``, or the only one; ``beir:FOLDER/qrels/dev.tsv`` another.
"""

from __future__ import annotations

import os
from pathlib import Path

from ragworth.core.errors import FormatError, format_list
from ragworth.data import Judgments
from ragworth.data.collection import Collection
from ragworth.formats.contract import Format, LoadedCollection
from ragworth.formats.files import PathOrStr, run_name
from ragworth.formats.tables import make_table, read_rows
from ragworth.formats.texts import read_texts


def _find_file(folder: Path, name: str) -> Path:
    """Find a file in a folder, compressed or not."""
    for ending in ("", ".gz", ".zst"):
        if (folder / f"{name}{ending}").is_file():
            return folder / f"{name}{ending}"
    raise FormatError(
        f"no {name} in this folder",
        file=str(folder),
        expected="a BEIR folder: corpus.jsonl, queries.jsonl, qrels/test.tsv",
        remedy="check the path",
    )


def _find_split(path: Path) -> tuple[Path, Path]:
    """Return the folder and the qrels file to read."""
    # Unlike pathlib's, these return False for an invalid file name.
    if os.path.isfile(path):  # noqa: PTH113
        return path.parent.parent, path
    if not os.path.isdir(path):  # noqa: PTH112
        raise FormatError("no such folder", file=str(path), remedy="check the path")
    splits = sorted(p for p in (path / "qrels").glob("*.tsv*") if p.is_file())
    for split in splits:
        if run_name(split) == "test" or len(splits) == 1:
            return path, split
    raise FormatError(
        f"splits: {format_list([run_name(s) for s in splits])}, but no test"
        if splits
        else "no qrels/*.tsv in this folder",
        file=str(path),
        expected="qrels/test.tsv, or one file in qrels/",
        remedy="name the file: beir:FOLDER/qrels/SPLIT.tsv" if splits else "check the path",
    )


def read_qrels(path: PathOrStr, *, skip_bad_lines: bool = False) -> Judgments:
    """Read the relevance judgments of a split, a table with the header ``query-id  corpus-id  score``."""
    _, file = _find_split(Path(path))
    return make_table(Judgments, read_rows(file, required=("score",), skip_bad_lines=skip_bad_lines), file)


def load(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    folder, file = _find_split(Path(path))
    relevance = read_qrels(file, skip_bad_lines=skip_bad_lines)
    queries, query_notes = read_texts(_find_file(folder, "queries.jsonl"), "queries", skip_bad_lines=skip_bad_lines)
    passages, notes = read_texts(_find_file(folder, "corpus.jsonl"), "passages", skip_bad_lines=skip_bad_lines)
    queries = queries.join(relevance.frame.select("query").unique(), on="query", how="semi", maintain_order="left")
    return LoadedCollection(
        Collection.of(
            queries=queries,
            passages=passages,
            relevance=relevance,
            source=str(folder),
            notes=(*query_notes, *notes, *relevance.notes),
        )
    )


FORMAT = Format(name="beir", title="BEIR folder", judgments=read_qrels, load=load)
