"""From what the user names to what is evaluated: a ``ragworth.toml``, a folder with or without one, files, or data.

Every file is read once, whole; the workspace remembers what was read, and an evaluation starts from that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os.path import commonpath
from pathlib import Path
from typing import Any, NamedTuple

from ragworth import formats
from ragworth.core.errors import InputError, format_list
from ragworth.core.files import refuse_links
from ragworth.formats.contract import LoadedCollection
from ragworth.formats.files import SPREADSHEETS, EncodingError, missing_file_remedy, run_name, source_name
from ragworth.formats.grades import GradeError
from ragworth.workspace import config
from ragworth.workspace.config import WORKSPACE_FILE, AnswerConfig, OutputPaths, Workspace
from ragworth.workspace.files import USES, ReadFile, UnusableFileError, recognise_file
from ragworth.workspace.plan import BY_TEXT, OTHER_QUERIES, WorkspacePlan, plan_workspace
from ragworth.workspace.problems import Problems

NO_PATHS = OutputPaths()
MANIFEST = "manifest.json"
"""The file that every folder of results has."""
MAX_DEPTH = 2
"""How many folders down files are looked for."""
MAX_FILES = 1000
"""How many files are looked at."""
PREFERRED_SPLITS = ("test", "dev", "validation", "val")
"""Splits of a BEIR folder, the best first."""
SKIPPED_FOLDERS = ("results", "node_modules", "__pycache__")
"""How the names of folders end that hold no data of the user's; results of single files are in NAME-results."""
DATA_SUFFIXES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", *SPREADSHEETS, ".run", ".trec", ".qrels")
"""Endings of files that are data: if one can't be used, the reason is listed."""
IGNORED_SUFFIXES = (
    *(".md", ".rst", ".py", ".ipynb", ".sh", ".toml", ".yaml", ".yml", ".cfg", ".ini", ".lock", ".log", ".xml", ".tex"),
    *(".html", ".htm", ".css", ".js", ".pdf", ".png", ".jpg", ".jpeg", ".svg", ".zip", ".tar", ".tgz", ".bin"),
    *(".sqlite", ".sqlite-wal", ".sqlite-shm", ".db", ".gguf", ".safetensors", ".npy", ".npz", ".pkl", ".pt"),
)
"""Endings of files that are no data of ours."""


class Inputs(NamedTuple):
    """A workspace, which knows the files that were read, and how they were understood; no plan with a file's own."""

    workspace: Workspace
    plan: WorkspacePlan | None = None


def read(
    data: Any,
    columns: Mapping[str, str] | None = None,
    output: OutputPaths = NO_PATHS,
) -> Inputs:
    """Find what to evaluate: a workspace, or files and folders that are understood as they are.

    ``data`` is a path or several; ``columns`` maps our names of fields to those of the logs.
    """
    named = [Path(path) for path in ([data] if isinstance(data, str | Path) else data)]
    for path in named:
        _check_path(path)
    if len(named) == 1 and (named[0].suffix == ".toml" or (named[0] / WORKSPACE_FILE).exists()):
        space = config.read(named[0], output)
        return Inputs(replace(space, columns={**space.columns, **(columns or {})}))
    if len(named) == 1 and named[0].is_dir():
        inputs = read_folder(named[0], columns, output)
        _check_systems(inputs.plan, named[0])
        return inputs
    return _read_files(named, columns, output)


def read_records(records: LoadedCollection, settings: Mapping[str, Any], output: OutputPaths) -> Inputs:
    """A workspace for data in memory. ``settings`` replace what the data leads to, as in a ``ragworth.toml``."""
    plan = plan_workspace([ReadFile("records", "log", "records", records)])
    _check_systems(plan, Path("records"))
    plan.tables.pop("systems", None)  # they are the records themselves
    head = {name: value for name, value in settings.items() if not isinstance(value, Mapping) or name == "model"}
    tables = {name: value for name, value in settings.items() if name not in head}
    plan.tables = {**plan.tables, **tables, "": {**plan.tables.get("", {}), **head}}
    return Inputs(_workspace(plan, [], Path.cwd(), output, "records"), plan)


def answer_anew(space: Workspace) -> Workspace:
    """The same with answers of the model instead of those in the data."""
    return replace(space, answers=replace(space.answers or AnswerConfig(), replace=True))


def _check_path(path: Path) -> None:
    """Refuse a path that can't be written into a workspace, and the results of an evaluation."""
    if source_name(path.absolute()) != str(path.absolute()):
        raise InputError("this path isn't UTF-8", file=source_name(path), remedy="rename the file or folder")
    if is_results(path):
        raise InputError(
            "these are the results of an evaluation, not data to evaluate",
            file=str(path),
            remedy=f"`ragworth report {path}` writes their report, `ragworth compare {path} …` compares them",
        )


def is_workspace(place: Path) -> bool:
    return (place if place.suffix == ".toml" else place / WORKSPACE_FILE).is_file()


def is_results(place: Path) -> bool:
    """Whether a place is a folder of results, and not a workspace."""
    return (place / MANIFEST).is_file() and not is_workspace(place)


def _read_files(named: Sequence[Path], columns: Mapping[str, str] | None, output: OutputPaths) -> Inputs:
    """Files of any kind, each of which must be understood. Results go to NAME-results beside the first."""
    specs = [formats.Spec.of(str(path)) for path in named]
    files = [Path(spec.path) for spec in specs]
    folder = Path(commonpath([path.absolute().parent for path in files]))
    places = [path.resolve() for path in files]
    if twice := next((path for path, place in zip(files, places, strict=True) if places.count(place) > 1), None):
        raise InputError("this file is named twice", file=str(twice), remedy="name each file once")
    problems, found = Problems(), []
    for spec in specs:
        found += problems.of(partial(_recognise_named, spec, folder, columns)) or []
    problems.done()
    plan = plan_workspace(found)
    _check_columns(found, columns or {}, [])
    if plan.unused:
        mapped = any(BY_TEXT in each for each in plan.unused)
        remedy = "map the ids, or leave out those files" if mapped else "leave out those files"
        if any(OTHER_QUERIES in each for each in plan.unused) and not mapped:
            remedy += ", or evaluate them alone; if they are parts of one log, join them in one file"
        raise InputError("not every file can be used", more=tuple(plan.unused), remedy=remedy)
    _check_systems(plan, files[0])
    paths = [path.absolute().relative_to(folder).as_posix() for path in files]
    names = list(dict.fromkeys(plan.file_names.get(path, run_name(path)).replace("/", "-") for path in paths))
    home = files[0].absolute().parent / f"{'-'.join(names[:3])}{'-etc' if len(names) > 3 else ''}-results"
    if not (output.results and output.store and output.cache):
        refuse_links(home, home.parent, "name another place: --results DIR --store FILE --cache DIR")
    where = OutputPaths(
        output.results or home, output.store or home / "calls.sqlite", output.cache or home / ".ragworth"
    )
    return Inputs(_workspace(plan, found, folder, where, format_list(names, 3)), plan)


def _recognise_named(spec: formats.Spec, folder: Path, columns: Mapping[str, str] | None) -> list[ReadFile]:
    """The contents of a file that the user named; an error names it in the same way."""
    path = Path(spec.path)
    if not path.is_file() and not (spec.format and path.is_dir()):
        problem, remedy = "there is no such file or folder", missing_file_remedy(path)
        if path.is_dir():
            problem, remedy = "this is a folder", "name one folder, or files"
        elif path.exists():
            problem, remedy = "this is a pipe or a device, not a file", "save it as a file, and name that"
        raise InputError(problem, file=str(path), remedy=remedy)
    name = path.absolute().relative_to(folder).as_posix()
    try:
        return recognise_file(f"{spec.format}:{folder / name}" if spec.format else str(folder / name), name, columns)
    except InputError as error:
        raise error.copy(file=str(path)) from error


def read_folder(folder: Path, columns: Mapping[str, str] | None = None, output: OutputPaths = NO_PATHS) -> Inputs:
    """Read the files of a folder. Files that can't be used are left out, with the reason."""
    plan_only: list[str] = []
    names, odd = list_folder(folder)
    found, taken = _read_beir_folders(folder, names, plan_only)
    for name in names:
        if name in taken:
            continue
        try:
            found += recognise_file(str(folder / name), name, columns)
        except GradeError:
            raise
        except InputError as error:
            telling = _plain(name).endswith(DATA_SUFFIXES)
            text = isinstance(error, EncodingError) and _plain(name).endswith(".txt")
            if telling or text or isinstance(error, UnusableFileError):
                advised = error.hint.option == "columns" or _plain(name).endswith(SPREADSHEETS)
                advice = f"; {error.remedy}" if advised else ""
                line = f"line {error.line}: " if error.line else ""
                plan_only.append(f"{name}: {line}{error.found}{advice}")
    plan = plan_workspace(found)
    plan.unused += [*plan_only, *odd]
    _check_columns(found, columns or {}, plan.unused)
    return Inputs(_workspace(plan, found, folder, output, folder.resolve().name), plan)


def _plain(name: str) -> str:
    """A name in lower case, without the ending of compression."""
    return name.lower().removesuffix(".gz").removesuffix(".zst")


def list_folder(folder: Path) -> tuple[list[str], list[str]]:
    """Names of files that may be data, those nearest first; and why others aren't looked at."""
    names, odd = [], []
    for name in sorted(_file_names(folder, folder, 0), key=lambda each: (each.count("/"), each)):
        if not name.isprintable():
            odd.append(f"{name!r}: the name has signs that cannot be shown")
        elif not _plain(name).endswith(IGNORED_SUFFIXES):
            names.append(name)
    if len(names) > MAX_FILES:
        odd.append(f"{len(names) - MAX_FILES:,} more files were not looked at: there are {len(names):,}")
    return names[:MAX_FILES], odd


def _file_names(folder: Path, root: Path, depth: int) -> Iterator[str]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return  # not ours to read
    for path in entries:
        if path.name.startswith("."):
            continue
        if path.is_file():
            yield path.relative_to(root).as_posix()
        elif (
            path.is_dir()
            and not path.name.endswith(SKIPPED_FOLDERS)
            and (depth < MAX_DEPTH or path.name == "qrels")  # the last: of a BEIR folder
            and not _leads_back(path, root)
        ):
            yield from _file_names(path, root, depth + 1)


def _leads_back(path: Path, root: Path) -> bool:
    """Whether a link leads to a folder that is listed anyway, or to one around it."""
    if not path.is_symlink():
        return False
    target, here = path.resolve(), root.resolve()
    return target.is_relative_to(here) or here.is_relative_to(target)


def _read_beir_folders(folder: Path, names: Sequence[str], unused: list[str]) -> tuple[list[ReadFile], set[str]]:
    """BEIR folders among files, each of which is one collection, and the names of their files."""
    found: list[ReadFile] = []
    taken: set[str] = set()
    for corpus in names:
        before = corpus[: corpus.rfind("/") + 1]
        files = {_plain(name): name for name in names if name.startswith(before)}
        splits = {run_name(name): name for plain, name in files.items() if plain.startswith(f"{before}qrels/")}
        if _plain(corpus) != f"{before}corpus.jsonl" or f"{before}queries.jsonl" not in files or not splits:
            continue
        taken |= {corpus, files[f"{before}queries.jsonl"], *splits.values()}
        split = next((each for each in PREFERRED_SPLITS if each in splits), next(iter(splits)))
        name = before.rstrip("/") or "."
        alone = len(splits) == 1 or split == "test"
        spec = f"beir:{name}" if alone else f"beir:{splits[split]}"
        doubt = f"of the splits {format_list(sorted(splits))} it takes {split}" if len(splits) > 1 else ""
        try:
            loaded = formats.load(f"beir:{folder / spec.removeprefix('beir:')}")
            found.append(ReadFile(name, "collection", spec, loaded, doubt))
        except InputError as error:
            unused.append(f"{name}: it looks like a BEIR folder, but {error.found}")
    return found, taken


def _check_columns(found: Sequence[ReadFile], columns: Mapping[str, str], unused: Sequence[str]) -> None:
    """Refuse names of columns if no log has any of them; ``unused``: why files aren't logs."""
    if columns and not any(each.columns for each in found):
        names = format_list([f"{name}={column}" for name, column in columns.items()])
        raise InputError(
            f"no log has any of the columns that are mapped: {names}",
            remedy="check their names; --map is for logs",
            more=tuple(unused),
        )


def _check_systems(plan: WorkspacePlan | None, place: Path) -> None:
    """Refuse files that hold nothing to evaluate."""
    if plan is not None and not plan.systems_known:
        raise InputError(
            "there is nothing to evaluate here",
            file=str(place),
            more=(*plan.unused, *(f"missing: {line}" for line in plan.lacking)),
            remedy="name a log or runs; `ragworth init --template NAME` writes a ragworth.toml to fill in",
        )


def _workspace(
    plan: WorkspacePlan, found: Sequence[ReadFile], folder: Path, output: OutputPaths, title: str
) -> Workspace:
    """The workspace of a plan, which knows the files that were read for it."""
    space = config.from_tables(plan.tables, folder / WORKSPACE_FILE, output)
    known = {(USES.get(each.kind, each.kind), space.spec(each.spec)): each for each in found}
    return replace(space, title=space.title or title, known=known)
