"""Reading files: those that a workspace or the command line names, and those that have to be understood first.

Every problem goes to one collector. What was read is remembered, so that a file that was understood is never parsed
again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import polars as pl

from ragworth import formats
from ragworth.core.errors import FormatError, InputError, RagworthError
from ragworth.data import Contexts
from ragworth.data.collection import Collection, merge_collections
from ragworth.data.ranking import Ties
from ragworth.formats import outcomes, texts
from ragworth.formats.contract import Contents, Head, Kind, LoadedCollection, TextKind
from ragworth.formats.detection import examine, unknown_error
from ragworth.formats.files import EncodingError, PathOrStr
from ragworth.formats.grades import GradeError
from ragworth.formats.heads import has_key, read_head
from ragworth.formats.kinds import KIND_NAMES
from ragworth.formats.logs.names import JOIN
from ragworth.formats.tables import read_answer_table
from ragworth.workspace.matching import (
    JudgmentSource,
    are_references,
    merge_judgments,
    queries_of,
    rename_system,
    systems_of,
)
from ragworth.workspace.problems import Problems

if TYPE_CHECKING:
    from ragworth.workspace.config import CollectionConfig

T = TypeVar("T")
PARALLEL_FILES = 2
"""Runs read at a time; each has a few chunks in memory besides its rows."""

UNDECIDED: dict[Kind, str] = {
    "texts": "it has ids and texts; call it queries or passages, or write query_id or passage_id",
    "lengths": "it has lengths of passages, and no texts",
}
"""Kinds of files that can't be evaluated, with the reason."""


class CollectionFiles(NamedTuple):
    """The files of a collection, read."""

    whole: LoadedCollection | None
    """A collection that comes in one piece, as it was read."""
    collection: Collection


class CollectionInputs(NamedTuple):
    """Texts and labels, and what systems show."""

    contexts: Contexts | None
    """None where no run was given."""
    collection: Collection
    notes: tuple[str, ...]


class UnusableFileError(FormatError):
    """A file that looks like one of a known kind and can't be used as one."""


class ReadFile(NamedTuple):
    """A file of a known kind, with all that its reader made of it."""

    name: str
    kind: Kind
    spec: str
    """The path as a workspace names it."""
    data: Any
    doubt: str = ""
    columns: Mapping[str, str] | None = None
    """The user's names of its fields, if it has such columns."""

    @property
    def log(self) -> LoadedCollection | None:
        """All of a file with contexts, answers or a whole collection."""
        return self.data if isinstance(self.data, LoadedCollection) else None

    @property
    def texts(self) -> Collection:
        """Texts and labels that come with it."""
        if self.log is not None:
            return self.log.collection
        return self.data if isinstance(self.data, Collection) else Collection()

    @property
    def frame(self) -> pl.DataFrame:
        """The rows of the table that it has."""
        if self.log is not None:
            return self.log.contexts.frame if self.log.contexts is not None else pl.DataFrame(schema=Contexts.schema)
        table = self.data[0] if isinstance(self.data, tuple) else self.data  # of answers, with the passages shown
        rows: pl.DataFrame = getattr(table, self.kind) if isinstance(table, Collection) else table.frame
        return rows

    @property
    def queries(self) -> set[str]:
        """The queries that it is about; nothing if it isn't about queries."""
        if self.log is not None:
            return {*self.texts.queries["query"], *queries_of(self.log)}
        return set(self.frame["query"]) if "query" in self.frame.columns else set()

    @property
    def systems(self) -> list[str]:
        """The systems of a run or log, or of a table of answers or outcomes."""
        return systems_of(self.log) if self.log is not None else list(dict.fromkeys(self.frame["system"]))


KnownFiles: TypeAlias = dict[tuple[str, str], ReadFile]
"""Files that were read, by their use and path."""


def read_run(
    spec: PathOrStr,
    *,
    name: str = "",
    ties: Ties = "float64",
    columns: Mapping[str, str] | None = None,
    skip_bad_lines: bool = False,
) -> LoadedCollection:
    """Read a run or a log. Without a name, systems are named by the file, or after it."""
    form, path, contents = formats.choose(spec, "contexts", columns)
    if form.load_rows is None and form.name != "jsonl" and (contents or not columns):
        contexts = form.do("contexts")(path, system=name or None, ties=ties, skip_bad_lines=skip_bad_lines)
        loaded = LoadedCollection(Collection(), contexts)
    else:
        loaded = formats.load(spec, columns, skip_bad_lines=skip_bad_lines)
    if loaded.contexts is None and loaded.answers is None and loaded.outcomes is None:
        expected = "a run, or a log of queries with contexts or answers"
        raise FormatError("it has texts only: nothing was retrieved or answered", file=str(path), expected=expected)
    return rename_system(loaded, name) if name else loaded


def open_spec(spec: str) -> PathOrStr:
    """Return the head of a file, from which readers go on; a folder, or what is no file, stays as it is."""
    return read_head(spec) if Path(formats.Spec.of(spec).path).is_file() else spec


def concerned_columns(place: PathOrStr, columns: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """Return the user's names of fields if a file has one of these columns: they may be for another file."""
    if not columns or not isinstance(place, Head):
        return None
    parts = [part for name in columns.values() for part in name.split(JOIN)]
    names = {name for part in parts for name in (part, part.partition(".")[0])}
    in_header = bool(names & {*place.columns, *examine(place, columns).head.columns})
    return columns if in_header or (place.kind in ("lines", "json") and has_key(place, names)) else None


def named_run(spec: str) -> tuple[str, str]:
    """Split ``NAME=PATH``; the name of a plain path is empty. A file whose name contains ``=`` is a path."""
    name, equals, path = spec.partition("=")
    named = bool(equals and name and "/" not in name and not Path(spec).exists())
    return (name, path) if named else ("", spec)


PARTS: tuple[TextKind, ...] = ("queries", "passages", "answers", "subquestions")
READERS: dict[Kind, Callable[..., Any]] = {
    "run": read_run,
    "collection": formats.load,
    **{kind: partial(texts.read, kind=kind) for kind in PARTS},
    "judgments": formats.read_judgments,
    "ratings": formats.read_ratings,
    "written": read_answer_table,
    "outcomes": outcomes.read,
}
"""How a file is read, by what it is used for."""

USES: dict[Kind, Kind] = {"log": "run", "references": "collection", "qrels": "judgments"}
"""What files of a kind are used for, if it isn't called like the kind."""


class FileReader:
    """Reads files and remembers them. An error is recorded in ``problems``, and an unreadable file is None.

    Parameters
    ----------
    locate: turns a path as the user wrote it into one that can be opened.
    columns: the user's names of fields in a log.
    known: files that were read before, by their use and located path.
    """

    def __init__(
        self,
        problems: Problems,
        locate: Callable[[str], str] = str,
        *,
        columns: Callable[[str], Mapping[str, str]] = lambda path: {},
        ties: Ties = "float64",
        skip_bad_lines: bool = False,
        known: KnownFiles | None = None,
    ) -> None:
        self.problems, self.locate, self.columns = problems, locate, columns
        self.ties, self.skip_bad_lines = ties, skip_bad_lines
        self.known: KnownFiles = {} if known is None else known
        self.files: dict[str, Path] = {}
        """The files that were read, by the path as it was written."""
        self.mapped: set[str] = set()
        """The columns of logs that the user names."""
        self._started: dict[str, Future[ReadFile]] = {}

    def of(self, text: str, read: Callable[..., T], *path: str) -> T | None:
        """Return what ``read`` makes of a file that the key at ``path`` names."""
        result = self.problems.of(partial(read, self.locate(text), skip_bad_lines=self.skip_bad_lines), *path)
        return None if result is None else self._remember(text, result)

    def _remember(self, text: str, result: T) -> T:
        """Note the file that something was read from."""
        file = Path(formats.Spec.of(named_run(self.locate(text))[1]).path)
        if file.exists():
            self.files[text] = file
        return result

    def read(self, use: Kind, text: str, *path: str) -> Any:
        """Return a file that the key at ``path`` names, read for a use of `READERS`; None if it can't be read."""
        place = (use, self.locate(text))
        if place not in self.known:
            started = self._started.get(text) if use == "run" else None
            file = self.problems.of(started.result if started else partial(self._read, use, text), *path)
            if file is None:
                return None
            self.known[place] = file
        self.mapped |= set((self.known[place].columns or {}).values())
        return self._remember(text, self.known[place].data)

    def _read(self, use: Kind, text: str) -> ReadFile:
        name, path = named_run(self.locate(text)) if use == "run" else ("", self.locate(text))
        place = open_spec(path)
        more: dict[str, Any] = {"skip_bad_lines": self.skip_bad_lines}
        columns = concerned_columns(place, self.columns(text)) if use in ("run", "collection") else None
        if use == "run":
            more |= {"name": name, "ties": self.ties}
        if columns is not None:
            more["columns"] = columns
        return ReadFile(text, use, path, READERS[use](place, **more), columns=columns)

    def start(self, runs: Sequence[str]) -> None:
        """Begin to read runs, two at a time: the parser doesn't keep all cores busy with one small file."""
        pool = ThreadPoolExecutor(max_workers=PARALLEL_FILES)
        for text in runs:
            if text not in self._started:
                self._started[text] = pool.submit(self._read, "run", text)
        pool.shutdown(wait=False)

    def runs(self, texts: Sequence[str]) -> list[LoadedCollection]:
        """The runs that can be read."""
        self.start(texts)
        try:
            return [log for text in texts if (log := self.read("run", text)) is not None]
        except BaseException:
            for waiting in self._started.values():
                waiting.cancel()
            raise

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
        whole: LoadedCollection | None = None
        if given.whole:
            whole = self.read("collection", given.whole, "collection", "from")
        parts: dict[str, Collection | None] = {
            kind: self.read(kind, file, "collection", kind) for kind in PARTS if (file := getattr(given, kind))
        }
        labels = [self.read("judgments", path, "collection", "qrels") for path in given.qrels]
        ratings = self.read("ratings", given.ratings, "collection", "ratings") if given.ratings else None
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


def _with_conversations(base: Collection, queries: Collection | None) -> Collection:
    """The collection with the turns of a file of queries, and what else a file of conversations has."""
    if queries is None or not queries.turns.height:
        return base
    texts = {name: frame for name in ("answers", "passages") if (frame := getattr(queries, name)).height}
    return replace(base, turns=queries.turns, relevance=queries.relevance or base.relevance, **texts)


def recognise_file(path: str, name: str, columns: Mapping[str, str] | None = None) -> list[ReadFile]:
    """Read a file as what it seems to be, mostly one thing; an :class:`InputError` says why it can't be used.

    ``path`` may have a format in front, and ``name`` is what a workspace calls it. ``columns``: the user's names of
    fields in logs.
    """
    if (folder := formats.Spec.of(path)).format and Path(folder.path).is_dir():
        return [ReadFile(name, "collection", f"{folder.format}:{name}", formats.load(path))]
    head = read_head(path)
    spec = f"{head.format}:{name}" if head.format else unambiguous_path(name)
    if head.kind == "text" and b"\0" in head.data:
        raise EncodingError("it is no text in UTF-8", file=str(head))
    mapped = concerned_columns(head, columns)
    inner, form, contents = examine(head, mapped)
    if (form is not None and form.load_rows is not None) or (mapped and not contents):
        contents = [Contents("log")]
    if not contents and head.format == "trec":  # whose reader says what is wrong with which line
        wide = len(head.data.partition(b"\n")[0].split()) > 4
        contents = [Contents("run" if wide else "qrels")]
    if not contents:
        raise unknown_error(inner)
    files = [_read_contents(ReadFile(name, kind, spec, head, doubt, mapped)) for kind, doubt in contents]
    files = [each for each in files if each.frame.height or each.log]
    if not files:
        raise FormatError("it has no row", file=str(head))
    return files


def _read_contents(file: ReadFile) -> ReadFile:
    """The file with what its reader makes of its head."""
    kind, head = file.kind, file.data
    if kind in UNDECIDED:
        raise FormatError(UNDECIDED[kind], file=str(head))
    if kind == "log":
        return _read_log(file)
    try:
        return file._replace(data=READERS[USES.get(kind, kind)](head), columns=None)
    except GradeError:
        raise
    except RagworthError as error:
        reason = error.found if isinstance(error, InputError) else str(error)
        line = f"line {error.line}: " if isinstance(error, InputError) and error.line else ""
        remedy = error.hint if isinstance(error, InputError) else ""
        raise UnusableFileError(
            f"it looks like {KIND_NAMES[kind]}, but {line}{reason}", file=str(head), remedy=remedy
        ) from error


def _read_log(file: ReadFile) -> ReadFile:
    log = formats.load(file.data, file.columns)
    if systems_of(log):
        if log.answers is None and log.outcomes is None and not (log.contexts is not None and len(log.contexts)):
            raise FormatError("nothing was retrieved in it", file=str(file.data))
        return file._replace(data=log)
    if are_references(log.collection):
        return file._replace(kind="references", data=log)
    raise FormatError("it has no contexts and no answers", file=str(file.data))


def unambiguous_path(name: str) -> str:
    """A path whose beginning is not taken for a format."""
    return f"./{name}" if formats.Spec.of(name).format else name
