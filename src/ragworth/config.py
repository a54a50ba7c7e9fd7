"""``ragworth.toml``: what is evaluated, with which model, by what, and where results go.

A file is read whole and checked before anything else happens: what is unknown, misspelt or of the wrong kind is
reported together, each with its line. Paths start at the folder of the file. What names mean (metrics, graders,
steps of a pipeline) is for the rooms to say that have them.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.errors import FormatError, InputError, listed

EVERY = "*"
"""Name of a system that stands for all that a file of runs has, each under its own name."""

NAME = "ragworth.toml"
"""What the file of a workspace is called."""


@dataclass(frozen=True)
class Asked:
    """A model by its written form, with its options."""

    use: str = "embedded"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """A kind of judgment, or a grader: its settings, and the model that it asks where that is not everybody's."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    model: Asked | None = None


@dataclass(frozen=True)
class Texts:
    """Where the collection comes from: all of it, or its parts; a part replaces that of the whole."""

    whole: str | None = None
    queries: str | None = None
    passages: str | None = None
    answers: str | None = None
    subquestions: str | None = None
    qrels: tuple[str, ...] = ()
    ratings: str | None = None


@dataclass(frozen=True)
class Writing:
    """How answers are written, or the file that has them."""

    task: Task = Task()
    without: bool = False
    oracle: bool = False
    everything: bool = False
    """Also queries without accepted answers, where others have some."""
    file: str | None = None


@dataclass(frozen=True)
class Budget:
    """How far to go; None as far as it takes."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    price: tuple[float, float] | None = None
    """What an endpoint charges for a million tokens read and written."""


@dataclass(frozen=True)
class Workspace:
    """Everything that one file says."""

    file: Path
    title: str = ""
    seed: int = 0
    k: int = 5
    limit: int | None = None
    collection: Texts = Texts()
    systems: Mapping[str, str] = field(default_factory=dict)
    """Pipelines in their written form, by name."""
    model: Asked = Asked()
    judgments: Mapping[str, Task] = field(default_factory=dict)
    judged: tuple[str, ...] = ()
    """Files of judgments."""
    answers: Writing | None = None
    grades: Mapping[str, Task] = field(default_factory=dict)
    graded: tuple[str, ...] = ()
    """Files of outcomes."""
    metrics: tuple[str, ...] = ()
    """None named: those that what is there allows."""
    baseline: str | None = None
    budget: Budget = Budget()
    results: str = "results"
    store: str = "calls.sqlite"
    cache: str = ".ragworth"
    prompts: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """All that the file says, as it was when it was read; nothing where a workspace was made without one."""
    digest: str = field(default="", compare=False)
    """Of the file, then."""

    @property
    def folder(self) -> Path:
        return self.file.parent

    def path(self, text: str) -> Path:
        """A path of the file's, from its folder."""
        return self.folder / text

    def spec(self, text: str) -> str:
        """A path that may carry its format in front (``beir:FOLDER``), from the folder of the file."""
        form, colon, rest = text.partition(":")
        if colon and re.fullmatch(r"[a-z_]{2,}", form):
            return text if form == "ir_datasets" else f"{form}:{self.folder / rest}"
        return str(self.folder / text)


class Wrong(NamedTuple):
    """One thing that is wrong, and where."""

    line: int | None
    text: str


class Reader:
    """Takes a file apart and remembers what is wrong with it."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.wrong: list[Wrong] = []

    def say(self, text: str, *path: str) -> None:
        self.wrong.append(Wrong(self.line(*path), text))

    def line(self, *path: str) -> int | None:
        """The line on which a key stands, as far as it can be told; that of its table where it cannot."""
        table, found = "", None
        for number, line in enumerate(self.lines, 1):
            if head := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
                table = head[1].replace('"', "").replace(" ", "")
                if table == ".".join(path):
                    return number
                if path and table == path[0]:
                    found = found or number
            elif key := re.match(r"""\s*["']?([\w.-]+)["']?\s*=""", line):
                whole = f"{table}.{key[1]}" if table else key[1]
                if whole == ".".join(path):
                    return number
                if ".".join(path).startswith(f"{whole}."):
                    found = number
        return found

    def keys(self, table: Mapping[str, Any], known: tuple[str, ...], *path: str) -> None:
        """Refuse keys that mean nothing here."""
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1, 0.6)
                hint = f"; did you mean {near[0]!r}?" if near else f"; known are {listed(list(known), 20)}"
                place = f"[{'.'.join(path)}] has" if path else "there is"
                self.say(f"{place} no {key!r}{hint}", *path, key)

    def take(self, table: Mapping[str, Any], key: str, kind: type | tuple[type, ...], words: str, *path: str) -> Any:
        """A value of the right kind, or None."""
        value = table.get(key)
        if value is None:
            return None
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            self.say(f"{'.'.join([*path, key])} is {_shown(value)}, not {words}", *path, key)
            return None
        return value

    def text(self, table: Mapping[str, Any], key: str, *path: str) -> str | None:
        value: str | None = self.take(table, key, str, "a text", *path)
        if value == "":
            self.say(f"{'.'.join([*path, key])} is empty", *path, key)
            return None
        return value

    def texts(self, table: Mapping[str, Any], key: str, *path: str) -> tuple[str, ...]:
        """One text, or a list of them."""
        value = self.take(table, key, (str, list), "a text or a list of texts", *path)
        some = [value] if isinstance(value, str) else value or []
        if not all(isinstance(each, str) and each for each in some):
            self.say(f"{'.'.join([*path, key])} has something that is no text", *path, key)
            return ()
        return tuple(some)

    def number(self, table: Mapping[str, Any], key: str, low: int, *path: str) -> int | None:
        value: int | None = self.take(table, key, int, "a whole number", *path)
        if value is not None and value < low:
            self.say(f"{'.'.join([*path, key])} is {value}; it may be {low} or more", *path, key)
            return None
        return value

    def table(self, whole: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = self.take(whole, key, dict, "a table")
        return value or {}


def read(path: str | Path) -> Workspace:
    """Read the file of a workspace; a folder has one called ``ragworth.toml``."""
    file = Path(path)
    file = file / NAME if file.is_dir() else file
    try:
        data = file.read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError as error:
        remedy = f"ragworth init {file.parent if file.suffix else file} writes one"
        raise InputError("there is no such file", file=str(file), expected=NAME, remedy=remedy) from error
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"it cannot be read: {error}", file=str(file), expected="a text file in UTF-8") from error
    try:
        whole = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else None
        raise FormatError(
            f"it is no TOML: {error}", file=str(file), line=line, expected="see docs/workspace.md"
        ) from error
    reader = Reader(text)
    made = _workspace(reader, whole, file)
    if reader.wrong:
        first, *rest = sorted(reader.wrong, key=lambda each: each.line or 0)
        more = tuple(f"line {each.line}: {each.text}" if each.line else each.text for each in rest)
        raise InputError(first.text, file=str(file), line=first.line, more=more)
    return replace(made, given=whole, digest=hashlib.sha256(data).hexdigest()[:16])


def _workspace(reader: Reader, whole: dict[str, Any], file: Path) -> Workspace:
    known = ("title", "seed", "k", "limit", "collection", "systems", "model", "judgments", "answers", "grades")
    reader.keys(whole, (*known, "metrics", "budget", "paths"))
    metrics, paths = reader.table(whole, "metrics"), reader.table(whole, "paths")
    reader.keys(metrics, ("use", "baseline"), "metrics")
    reader.keys(paths, ("results", "store", "cache", "prompts"), "paths")
    systems = _systems(reader, reader.table(whole, "systems"))
    given = _texts(reader, reader.table(whole, "collection"))
    baseline = reader.text(metrics, "baseline", "metrics")
    if baseline is not None and systems and EVERY not in systems and not given.whole and baseline not in systems:
        reader.say(
            f"the baseline {baseline!r} is no system; there are {listed(list(systems), 20)}", "metrics", "baseline"
        )
    judgments, judged = _tasks(reader, reader.table(whole, "judgments"), "judgments")
    grades, graded = _tasks(reader, reader.table(whole, "grades"), "grades")
    made = Workspace(file)
    return Workspace(
        file,
        title=reader.text(whole, "title") or file.resolve().parent.name,
        seed=reader.number(whole, "seed", 0) or 0,
        k=reader.number(whole, "k", 1) or made.k,
        limit=reader.number(whole, "limit", 1),
        collection=given,
        systems=systems,
        model=_model(reader, whole.get("model", {}), "model") or Asked(),
        judgments=judgments,
        judged=judged,
        answers=_writing(reader, whole["answers"]) if "answers" in whole else None,
        grades=grades,
        graded=graded,
        metrics=reader.texts(metrics, "use", "metrics"),
        baseline=baseline,
        budget=_budget(reader, reader.table(whole, "budget")),
        results=reader.text(paths, "results", "paths") or made.results,
        store=reader.text(paths, "store", "paths") or made.store,
        cache=reader.text(paths, "cache", "paths") or made.cache,
        prompts=reader.text(paths, "prompts", "paths"),
    )


def _texts(reader: Reader, table: dict[str, Any]) -> Texts:
    one = ("queries", "passages", "answers", "subquestions", "ratings")
    reader.keys(table, ("from", *one, "qrels"), "collection")
    parts = {key: reader.text(table, key, "collection") for key in one}
    qrels = reader.texts(table, "qrels", "collection")
    return Texts(reader.text(table, "from", "collection"), **parts, qrels=qrels)


def _systems(reader: Reader, table: dict[str, Any]) -> dict[str, str]:
    """Pipelines as texts; a list of steps is joined, and a table names the file of a run."""
    made: dict[str, str] = {}
    for name, value in table.items():
        if not name:
            reader.say("the name of a system is empty", "systems")
        elif isinstance(value, dict):
            reader.keys(value, ("run",), "systems", name)
            if not value:
                reader.say(f"the system {name!r} says nothing", "systems", name)
            elif run := reader.text(value, "run", "systems", name):
                made[name] = 'run("' + run.replace("\\", "\\\\").replace('"', '\\"') + '")'
        elif steps := reader.texts(table, name, "systems"):
            made[name] = " >> ".join(steps)
        elif value == []:
            reader.say(f"the system {name!r} has no steps", "systems", name)
    return made


def _model(reader: Reader, value: Any, *path: str) -> Asked | None:
    """A model: its written form alone, or a table with ``use`` and its options."""
    if isinstance(value, str) and value:
        return Asked(value)
    if not isinstance(value, dict):
        reader.say(f"{'.'.join(path)} is {_shown(value)}, not the name of a model or a table", *path)
        return None
    use = reader.text(value, "use", *path) or "embedded"
    return Asked(use, {key: each for key, each in value.items() if key != "use"})


def _task(reader: Reader, value: Any, *path: str) -> Task | None:
    """True, or a table of settings, one of which may be the model."""
    if value is False:
        return None
    if value is not True and not isinstance(value, dict):
        reader.say(f"{'.'.join(path)} is {_shown(value)}, not true, false or a table of settings", *path)
        return None
    settings = {} if value is True else dict(value)
    model = _model(reader, settings.pop("model"), *path, "model") if "model" in settings else None
    return Task({key.replace("-", "_"): each for key, each in settings.items()}, model)


def _tasks(reader: Reader, table: dict[str, Any], name: str) -> tuple[dict[str, Task], tuple[str, ...]]:
    made = {key: _task(reader, value, name, key) for key, value in table.items() if key != "files"}
    return {key: task for key, task in made.items() if task is not None}, reader.texts(table, "files", name)


def _writing(reader: Reader, value: Any) -> Writing | None:
    task = _task(reader, value, "answers")
    if task is None:
        return None
    settings = dict(task.settings)
    flags = {key: bool(reader.take(settings, key, bool, "true or false", "answers")) for key in ("without", "oracle")}
    everything = bool(reader.take(settings, "everything", bool, "true or false", "answers"))
    file = reader.text(settings, "file", "answers")
    rest = {key: each for key, each in settings.items() if key not in ("without", "oracle", "everything", "file")}
    if file is not None and (rest or task.model or everything or any(flags.values())):
        reader.say("answers that come from a file have no other settings", "answers", "file")
    return Writing(Task(rest, task.model), **flags, everything=everything, file=file)


def _budget(reader: Reader, table: dict[str, Any]) -> Budget:
    reader.keys(table, ("calls", "tokens", "cost", "price"), "budget")
    price = reader.take(table, "price", list, "a list of two numbers", "budget")
    if price is not None and not (len(price) == 2 and all(_amount(each) for each in price)):
        reader.say(
            "budget.price is not a list of two numbers: for a million tokens read, and written", "budget", "price"
        )
        price = None
    cost = reader.take(table, "cost", (int, float), "a number", "budget")
    if cost is not None and not _amount(cost):
        reader.say(f"budget.cost is {cost}; it may be 0 or more", "budget", "cost")
        cost = None
    return Budget(
        reader.number(table, "calls", 0, "budget"),
        reader.number(table, "tokens", 0, "budget"),
        float(cost) if cost is not None else None,
        (float(price[0]), float(price[1])) if price else None,
    )


def _amount(value: Any) -> bool:
    """Whether something is a number that money can be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
