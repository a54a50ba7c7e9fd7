"""Being sure what a file is: it is read as what it seems to be, by the reader that an evaluation uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, get_args

import polars as pl

from ragworth import formats
from ragworth.core.errors import FormatError, InputError, RagworthError
from ragworth.data import Contexts
from ragworth.data.collection import Collection
from ragworth.formats import outcomes, texts
from ragworth.formats.contract import Format, LoadedCollection
from ragworth.formats.files import run_name
from ragworth.formats.grades import GradeError
from ragworth.formats.tables import read_answer_table
from ragworth.workspace.file_heads import TABLE_SUFFIXES, FileHead
from ragworth.workspace.guesses import KIND_NAMES, FileForm, FileKind, Guess, TextKind, UnknownKindError, guess_kinds
from ragworth.workspace.references import are_references
from ragworth.workspace.runs import applicable_columns, find_log_format, queries_of, systems_of


class RecognisedFile(NamedTuple):
    """A file that is of a kind: it was read, or its beginning was."""

    name: str
    kind: FileKind
    spec: str
    """As it is written in the file of a workspace."""
    frame: pl.DataFrame
    whole: bool
    texts: Collection = Collection()
    """Texts and labels that come with it."""
    doubt: str = ""
    log: LoadedCollection | None = None
    """All of a log."""
    columns: Mapping[str, str] | None = None
    """The user's names of its fields, if it has such columns."""

    @property
    def queries(self) -> set[str]:
        """The queries that it is about; nothing if it isn't about queries."""
        if self.log is None:
            return set(self.frame["query"]) if "query" in self.frame.columns else set()
        return {*self.texts.queries["query"], *queries_of(self.log)}

    @property
    def systems(self) -> list[str]:
        """Systems of a run or a log."""
        if self.log is not None:
            return systems_of(self.log)
        return self.frame["system"].unique(maintain_order=True).to_list()


def recognise_file(head: FileHead, columns: Mapping[str, str] | None = None) -> list[RecognisedFile]:
    """What a file is, mostly one thing; raises an :class:`InputError` where it is nothing known, or has mistakes.

    ``columns``: the user's names of fields in logs.
    """
    if texts.conversation_format(head.file.path) is not None:
        said = texts.read(head.file.path, "queries")
        return [RecognisedFile(head.file.name, "queries", unambiguous_path(head.file.name), said.queries, True, said)]
    unknown: FormatError | None = None
    form: Format | None = None
    columns = applicable_columns(head.file.path, columns or {}) or None
    try:
        form = find_log_format(head.file.path)
    except FormatError as error:
        unknown = error
    if form is not None and form.name != "jsonl":  # which may also be texts
        try:
            return [_read_log(head, form.name, columns)]
        except FormatError as error:
            if not columns and not isinstance(error, NothingLoggedError):
                raise
            unknown = error
    if columns and unknown is not None:
        return [_read_log(head, "log", columns)]
    try:
        return _recognise_table(head, columns)
    except (UnknownKindError, DamagedFileError) as error:
        if isinstance(error, UnknownKindError) or form is not None:
            raise unknown or error from error
        raise


def _recognise_table(head: FileHead, columns: Mapping[str, str] | None) -> list[RecognisedFile]:
    """A run, labels, texts, answers or grades; contexts with texts whose columns the user names are a log."""
    seem = guess_kinds(head)
    if seem == [Guess("log", "jsonl")]:
        return [_read_log(head, "log" if columns else "jsonl", columns)]
    found = [each for guess in seem if (each := _confirm_guess(head, guess)) is not None]
    if not found:
        raise FormatError("it has no row")
    return found


def _read_log(head: FileHead, form: str, columns: Mapping[str, str] | None) -> RecognisedFile:
    """A log. One that is long and has a record per line is read in part, if its first records tell enough."""
    lines = head.file.plain.endswith((*TABLE_SUFFIXES, ".jsonl", ".ndjson"))
    lines = lines and (head.whole or not columns)
    sample = head.sample if lines else head.file.path
    log = formats.load(f"{form}:{sample}", columns, skip_bad_lines=lines and not head.whole)
    if not systems_of(log) and are_references(log.collection):
        spec = f"{form}:{head.file.name}"
        return RecognisedFile(
            head.file.name,
            "references",
            spec,
            log.collection.answers,
            lines is False or head.whole,
            log.collection,
            columns=columns,
        )
    if not systems_of(log):
        raise NothingLoggedError("it has no contexts and no answers")
    if log.answers is None and log.outcomes is None and not _shown(log).height:
        raise NothingLoggedError("nothing was retrieved in it")
    spec = _path_spec(head, "log", form)
    return RecognisedFile(
        head.file.name, "log", spec, _shown(log), head.whole or not lines, log.collection, "", log, columns
    )


def recognise_records(log: LoadedCollection) -> RecognisedFile:
    """Data in memory, as if it were a log."""
    return RecognisedFile("records", "log", "records", _shown(log), True, log.collection, log=log)


def _shown(log: LoadedCollection) -> pl.DataFrame:
    return log.contexts.frame if log.contexts is not None else pl.DataFrame(schema=Contexts.schema)


class NothingLoggedError(FormatError):
    """A file in the format of a log without what systems did, such as questions with accepted answers."""


class DamagedFileError(FormatError):
    """A file that begins like one of a known kind, and can't be read as such."""


def _confirm_guess(head: FileHead, guess: Guess) -> RecognisedFile | None:
    """The file read as what it seems to be; None where it holds nothing of the kind."""
    whole = head.whole or guess.form == "pytrec_eval"  # a JSON document can't be read in part
    skip = not whole and not head.file.plain.endswith(".parquet")  # the beginning may end within a row
    try:
        frame, more = READERS[guess.kind](head.file.path if whole else head.sample, guess.form, skip)
        if guess.kind == "run" and not whole and set(frame["system"]) != {run_name(head.sample)}:
            whole = True  # systems may follow one after the other
            frame, more = READERS[guess.kind](head.file.path, guess.form, False)
    except GradeError:
        raise
    except RagworthError as error:
        reason = error.found if isinstance(error, InputError) else str(error)
        line = f"line {error.line}: " if isinstance(error, InputError) and error.line else ""
        raise DamagedFileError(f"it looks like {KIND_NAMES[guess.kind]}, but {line}{reason}") from error
    if not frame.height and not more.passages.height:
        return None
    return RecognisedFile(
        head.file.name, guess.kind, _path_spec(head, guess.kind, guess.form), frame, whole, more, guess.doubt
    )


def _path_spec(head: FileHead, kind: FileKind, form: str) -> str:
    """The path as it is to be written: with its format in front where the ending tells another or none."""
    name = head.file.name
    if kind in (*get_args(TextKind), "written", "outcomes"):
        return unambiguous_path(name)
    what = {"run": "contexts", "log": "contexts", "exam": "load", "ratings": "ratings"}.get(kind, "judgments")
    try:
        known = form != "exam" and formats.choose(head.sample, what).format.name == form
    except FormatError:
        known = False
    return unambiguous_path(name) if known else f"{form}:{name}"


def unambiguous_path(name: str) -> str:
    """A path whose beginning is not taken for a format."""
    return f"./{name}" if re.match(r"[a-z_-]{2,}:", name) else name


FileReader = Callable[[Path, FileForm, bool], tuple[pl.DataFrame, Collection]]


def _read_run(path: Path, form: FileForm, skip: bool) -> tuple[pl.DataFrame, Collection]:
    return formats.read_contexts(f"{form}:{path}", skip_bad_lines=skip).frame, Collection()


def _read_exam(path: Path, form: FileForm, skip: bool) -> tuple[pl.DataFrame, Collection]:
    loaded = formats.load(f"{form}:{path}", skip_bad_lines=skip)
    frame = loaded.contexts.frame if loaded.contexts is not None else pl.DataFrame(schema={"query": pl.String})
    return frame, loaded.collection


def _read_judgments(path: Path, form: FileForm, skip: bool) -> tuple[pl.DataFrame, Collection]:
    return formats.read_judgments(f"{form}:{path}", skip_bad_lines=skip).frame, Collection()


def _read_ratings(path: Path, form: FileForm, skip: bool) -> tuple[pl.DataFrame, Collection]:
    return formats.read_ratings(f"{form}:{path}", skip_bad_lines=skip).frame, Collection()


def _texts_reader(kind: texts.CollectionPart) -> FileReader:
    def read(path: Path, form: FileForm, skip: bool) -> tuple[pl.DataFrame, Collection]:
        made = texts.read(path, kind, skip_bad_lines=skip)
        frame: pl.DataFrame = getattr(made, kind)
        return frame, made

    return read


def _read_answers(path: Path, form: FileForm, skip: bool) -> tuple[pl.DataFrame, Collection]:
    return read_answer_table(path, skip_bad_lines=skip)[0].frame, Collection()


def _read_outcomes(path: Path, form: FileForm, skip: bool) -> tuple[pl.DataFrame, Collection]:
    return outcomes.read(path, skip_bad_lines=skip).frame, Collection()


READERS: dict[FileKind, FileReader] = {
    "run": _read_run,
    "exam": _read_exam,
    "qrels": _read_judgments,
    "ratings": _read_ratings,
    "judgments": _read_judgments,
    "queries": _texts_reader("queries"),
    "passages": _texts_reader("passages"),
    "answers": _texts_reader("answers"),
    "subquestions": _texts_reader("subquestions"),
    "written": _read_answers,
    "outcomes": _read_outcomes,
}
