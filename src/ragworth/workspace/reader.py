"""Reading the files that the command line or a ``ragworth.toml`` names; every problem goes to one collector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ragworth import formats
from ragworth.data import Contexts
from ragworth.data.collection import Collection, merge_collections
from ragworth.data.ranking import Ties
from ragworth.formats import texts
from ragworth.formats.contract import LoadedCollection
from ragworth.workspace.conflicts import JudgmentSource, merge_judgments
from ragworth.workspace.problems import Problems
from ragworth.workspace.runs import applicable_columns, read_run

if TYPE_CHECKING:
    from ragworth.workspace.config import CollectionConfig

T = TypeVar("T")
PARALLEL_FILES = 2
"""Runs read at a time; each has a few chunks in memory besides its rows."""

TEXT_KINDS: tuple[texts.CollectionPart, ...] = ("queries", "passages", "answers", "subquestions")


class CollectionFiles(NamedTuple):
    """What the files of a collection hold."""

    whole: LoadedCollection | None
    """A collection that comes in one piece, as it was read."""
    collection: Collection


class CollectionInputs(NamedTuple):
    """Texts and labels, and what systems show."""

    contexts: Contexts | None
    """None where no run was given."""
    collection: Collection
    notes: tuple[str, ...]


class FileReader:
    """Reads files and remembers them. An error is recorded in ``problems``, and what couldn't be read is None.

    ``locate`` turns a path as the user wrote it into one that can be opened.
    """

    def __init__(
        self,
        problems: Problems,
        locate: Callable[[str], str] = str,
        *,
        columns: Callable[[str], Mapping[str, str]] = lambda path: {},
        ties: Ties = "float64",
        skip_bad_lines: bool = False,
    ) -> None:
        self.problems, self.locate, self.columns = problems, locate, columns
        self.ties, self.skip_bad_lines = ties, skip_bad_lines
        self.files: dict[str, Path] = {}
        """The files that were read, by the path as it was written."""
        self.mapped: set[str] = set()
        """The columns of logs that the user names."""
        self._runs: dict[str, LoadedCollection | None] = {}
        self._started: dict[str, Future[LoadedCollection]] = {}

    def of(self, text: str, read: Callable[..., T], *path: str) -> T | None:
        """Return what ``read`` makes of a file that the key at ``path`` names."""
        spec = self.locate(text)
        found = self.problems.of(partial(read, spec, skip_bad_lines=self.skip_bad_lines), *path)
        file = Path(spec if Path(spec).exists() else spec.partition(":")[2])
        if found is not None and file.exists():
            self.files[text] = file
        return found

    def run(self, text: str, *path: str) -> LoadedCollection | None:
        """What systems showed, and answered if the file says so; ``text`` may be ``NAME=PATH`` on the command line."""
        if text not in self._runs:
            self._runs[text] = self.of(text, self._reader(text), *path)
        return self._runs[text]

    def start(self, texts: Sequence[str]) -> None:
        """Begin to read runs, two at a time: the parser doesn't keep all cores busy with one small file."""
        pool = ThreadPoolExecutor(max_workers=PARALLEL_FILES)
        for text in texts:
            if text not in self._started:
                read = partial(self._reader(text), self.locate(text), skip_bad_lines=self.skip_bad_lines)
                self._started[text] = pool.submit(read)
        pool.shutdown(wait=False)

    def runs(self, texts: Sequence[str]) -> list[LoadedCollection]:
        """The runs that can be read."""
        self.start(texts)
        try:
            for text in texts:
                if text not in self._runs:
                    future = self._started[text]
                    self._runs[text] = self.of(text, lambda *_, mine=future, **__: mine.result())
        except BaseException:
            for waiting in self._started.values():
                waiting.cancel()
            raise
        return [log for text in texts if (log := self._runs[text]) is not None]

    def _reader(self, text: str) -> Callable[..., LoadedCollection]:
        columns = applicable_columns(self.locate(text), self.columns(text))
        self.mapped |= set(columns.values())
        return partial(read_run, ties=self.ties, columns=columns)

    def check_columns(self, columns: Mapping[str, str]) -> None:
        """Refuse columns that no log has."""
        for name, column in columns.items():
            if column not in self.mapped:
                self.problems.say(
                    f"no log has the column {column!r}, which is given for {name!r}", "check its name", "columns", name
                )

    def collection(self, given: CollectionConfig) -> CollectionFiles | None:
        """Texts and labels. A part with a file of its own replaces that of the whole."""
        before = len(self.problems.found)
        whole = self.of(given.whole, self._load, "collection", "from") if given.whole else None
        parts = {
            kind: self.of(file, partial(_read_texts, kind), "collection", kind)
            for kind in TEXT_KINDS
            if (file := getattr(given, kind))
        }
        labels = [self.of(path, formats.read_judgments, "collection", "qrels") for path in given.qrels]
        ratings = self.of(given.ratings, formats.read_ratings, "collection", "ratings") if given.ratings else None
        sources = [JudgmentSource(path, each) for path, each in zip(given.qrels, labels, strict=True) if each]
        relevance = self.problems.of(partial(merge_judgments, sources), "collection", "qrels")
        if len(self.problems.found) > before or relevance is None:
            return None
        base = whole.collection if whole is not None else Collection()
        read = {kind: part for kind, part in parts.items() if part is not None}
        base = _with_conversations(base, read.get("queries"))
        collection = replace(
            base,
            **{kind: getattr(part, kind) for kind, part in read.items()},
            relevance=relevance if given.qrels else base.relevance,
            ratings=ratings if given.ratings else base.ratings,
            notes=(
                *(note for part in (base, *read.values()) for note in part.notes),
                *relevance.notes,
                *(ratings.notes if ratings is not None else ()),
            ),
        )
        return CollectionFiles(whole, collection)

    def with_runs(self, given: CollectionConfig, runs: Sequence[str]) -> CollectionInputs:
        """A collection, with the runs and logs that are named beside it; raises everything that is wrong."""
        logs = self.runs(runs)
        files = self.collection(given)
        self.problems.done()
        assert files is not None
        if not logs and files.whole is not None:
            logs = [files.whole._replace(collection=Collection())]
        tables = [log.contexts for log in logs if log.contexts is not None]
        contexts = Contexts.concat(tables) if tables else None
        collection = merge_collections([files.collection, *(log.collection for log in logs)])
        collection = replace(collection, turn_form=given.turns)
        notes = (*collection.notes, *(contexts.notes if contexts is not None else ()))
        return CollectionInputs(contexts, collection, tuple(dict.fromkeys(notes)))

    def _load(self, spec: str, *, skip_bad_lines: bool) -> LoadedCollection:
        columns = applicable_columns(spec, self.columns(spec))
        self.mapped |= set(columns.values())
        return formats.load(spec, columns or None, skip_bad_lines=skip_bad_lines)


def _with_conversations(base: Collection, queries: Collection | None) -> Collection:
    """The collection with the turns of a file of queries, and what else a file of conversations has."""
    if queries is None or not queries.turns.height:
        return base
    texts = {name: frame for name in ("answers", "passages") if (frame := getattr(queries, name)).height}
    return replace(base, turns=queries.turns, relevance=queries.relevance or base.relevance, **texts)


def _read_texts(kind: texts.CollectionPart, spec: str, *, skip_bad_lines: bool) -> Collection:
    return texts.read(spec, kind, skip_bad_lines=skip_bad_lines)
