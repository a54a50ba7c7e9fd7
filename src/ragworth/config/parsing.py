"""From the text of a ``ragworth.toml`` to checked settings."""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragworth.config.output_paths import with_output_paths
from ragworth.config.toml_reader import TomlReader, format_toml_value
from ragworth.config.workspace import (
    EVERY_SYSTEM,
    WORKSPACE_FILE,
    AnswerConfig,
    BudgetConfig,
    CollectionConfig,
    ExpensiveJudge,
    ModelSpec,
    OutputPaths,
    TaskConfig,
    Workspace,
)
from ragworth.errors import FormatError, InputError, format_list


def read(path: str | Path, paths: OutputPaths = OutputPaths()) -> Workspace:  # noqa: B008 (it cannot change)
    """Read the file of a workspace; a folder has one called ``ragworth.toml``.

    The file may come from somebody else, so that what it has written stays in its folder. ``paths`` are the user's own
    words and may be anywhere.
    """
    file = Path(path)
    file = file / WORKSPACE_FILE if file.is_dir() else file
    try:
        data = file.read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError as error:
        remedy = f"ragworth init {file.parent if file.suffix else file} writes one"
        raise InputError("there is no such file", file=str(file), expected=WORKSPACE_FILE, remedy=remedy) from error
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
    reader = TomlReader(text)
    made = _parse_workspace(reader, whole, file)
    made = with_output_paths(reader, made, paths)
    if reader.wrong:
        first, *rest = sorted(reader.wrong, key=lambda each: each.line or 0)
        more = tuple(f"line {each.line}: {each.text}" if each.line else each.text for each in rest)
        raise InputError(first.text, file=str(file), line=first.line, more=more)
    return replace(made, given=whole, digest=hashlib.sha256(data).hexdigest()[:16])


def _parse_workspace(reader: TomlReader, whole: dict[str, Any], file: Path) -> Workspace:
    known = ("title", "seed", "k", "limit", "collection", "systems", "model", "judgments", "answers", "grades")
    reader.keys(whole, (*known, "metrics", "budget", "paths"))
    metrics, paths = reader.table(whole, "metrics"), reader.table(whole, "paths")
    reader.keys(metrics, ("use", "baseline"), "metrics")
    reader.keys(paths, ("results", "store", "cache", "prompts"), "paths")
    systems = _parse_systems(reader, reader.table(whole, "systems"))
    given = _parse_collection(reader, reader.table(whole, "collection"))
    baseline = reader.text(metrics, "baseline", "metrics")
    if baseline is not None and systems and EVERY_SYSTEM not in systems and not given.whole and baseline not in systems:
        reader.say(
            f"the baseline {baseline!r} is no system; there are {format_list(list(systems), 20)}", "metrics", "baseline"
        )
    judgments, judged = _parse_judgments(reader, reader.table(whole, "judgments"))
    grades, graded = _parse_tasks(reader, reader.table(whole, "grades"), "grades")
    made = Workspace(file)
    return Workspace(
        file,
        title=reader.text(whole, "title") or file.resolve().parent.name,
        seed=reader.number(whole, "seed", 0) or 0,
        k=reader.number(whole, "k", 1) or made.k,
        limit=reader.number(whole, "limit", 1),
        collection=given,
        systems=systems,
        model=_parse_model(reader, whole.get("model", {}), "model") or ModelSpec(),
        judgments=judgments,
        judged=judged,
        answers=_parse_answers(reader, whole["answers"]) if "answers" in whole else None,
        grades=grades,
        graded=graded,
        metrics=reader.texts(metrics, "use", "metrics"),
        baseline=baseline,
        budget=_parse_budget(reader, reader.table(whole, "budget")),
        results=reader.text(paths, "results", "paths") or made.results,
        store=reader.text(paths, "store", "paths") or made.store,
        cache=reader.text(paths, "cache", "paths") or made.cache,
        prompts=reader.text(paths, "prompts", "paths"),
    )


def _parse_collection(reader: TomlReader, table: dict[str, Any]) -> CollectionConfig:
    one = ("queries", "passages", "answers", "subquestions", "ratings")
    reader.keys(table, ("from", *one, "qrels"), "collection")
    parts = {key: reader.text(table, key, "collection") for key in one}
    qrels = reader.texts(table, "qrels", "collection")
    return CollectionConfig(reader.text(table, "from", "collection"), **parts, qrels=qrels)


def _parse_systems(reader: TomlReader, table: dict[str, Any]) -> dict[str, str]:
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


def _parse_model(reader: TomlReader, value: Any, *path: str) -> ModelSpec | None:
    """A model: its written form alone, or a table with ``use`` and its options."""
    if isinstance(value, str) and value:
        return ModelSpec(value)
    if not isinstance(value, dict):
        reader.say(f"{'.'.join(path)} is {format_toml_value(value)}, not the name of a model or a table", *path)
        return None
    use = reader.text(value, "use", *path) or "embedded"
    return ModelSpec(use, {key: each for key, each in value.items() if key != "use"})


def _parse_task(reader: TomlReader, value: Any, *path: str) -> TaskConfig | None:
    """True, or a table of settings, one of which may be the model."""
    if value is False:
        return None
    if value is not True and not isinstance(value, dict):
        reader.say(f"{'.'.join(path)} is {format_toml_value(value)}, not true, false or a table of settings", *path)
        return None
    settings = {} if value is True else dict(value)
    model = _parse_model(reader, settings.pop("model"), *path, "model") if "model" in settings else None
    return TaskConfig({key.replace("-", "_"): each for key, each in settings.items()}, model)


def _parse_tasks(reader: TomlReader, table: dict[str, Any], name: str) -> tuple[dict[str, TaskConfig], tuple[str, ...]]:
    made = {key: _parse_task(reader, value, name, key) for key, value in table.items() if key != "files"}
    return {key: task for key, task in made.items() if task is not None}, reader.texts(table, "files", name)


def _parse_judgments(reader: TomlReader, table: dict[str, Any]) -> tuple[dict[str, TaskConfig], tuple[str, ...]]:
    """Kinds of judgment, each with who judges a sample of it better, and files."""
    own: dict[str, Any] = {}
    better: dict[str, ExpensiveJudge] = {}
    for kind, value in table.items():
        own[kind] = value
        if isinstance(value, dict) and "expensive" in value:
            own[kind] = {key: each for key, each in value.items() if key != "expensive"}
            if found := _parse_expensive(reader, value["expensive"], "judgments", kind, "expensive"):
                better[kind] = found
    made, files = _parse_tasks(reader, own, "judgments")
    return {kind: replace(task, expensive=better.get(kind)) for kind, task in made.items()}, files


def _parse_expensive(reader: TomlReader, value: Any, *path: str) -> ExpensiveJudge | None:
    """A model and how many queries it is asked about, or a file; one of the two."""
    place = ".".join(path)
    if not isinstance(value, dict):
        reader.say(f"{place} is {format_toml_value(value)}, not a table with model and sample, or with file", *path)
        return None
    task = _parse_task(reader, value, *path)
    assert task is not None
    settings = dict(task.settings)
    file, sample = reader.text(settings, "file", *path), reader.number(settings, "sample", 2, *path)
    rest = {key: each for key, each in settings.items() if key not in ("file", "sample")}
    if "file" in settings and (rest or "sample" in settings or "model" in value):
        reader.say(f"{place} comes from a file and has no other settings: the file's queries are the sample", *path)
    elif "file" not in settings and "model" not in value:
        reader.say(f"{place} names neither a model nor a file", *path)
    elif "file" not in settings and "sample" not in settings:
        reader.say(f"{place} does not say about how many queries the model is asked: sample = 50", *path)
    return ExpensiveJudge(task.model, sample, rest, file)


def _parse_answers(reader: TomlReader, value: Any) -> AnswerConfig | None:
    task = _parse_task(reader, value, "answers")
    if task is None:
        return None
    settings = dict(task.settings)
    flags = {key: bool(reader.take(settings, key, bool, "true or false", "answers")) for key in ("without", "oracle")}
    everything = bool(reader.take(settings, "everything", bool, "true or false", "answers"))
    file = reader.text(settings, "file", "answers")
    rest = {key: each for key, each in settings.items() if key not in ("without", "oracle", "everything", "file")}
    if file is not None and (rest or task.model or everything or any(flags.values())):
        reader.say("answers that come from a file have no other settings", "answers", "file")
    return AnswerConfig(TaskConfig(rest, task.model), **flags, everything=everything, file=file)


def _parse_budget(reader: TomlReader, table: dict[str, Any]) -> BudgetConfig:
    reader.keys(table, ("calls", "tokens", "cost", "price"), "budget")
    price = reader.take(table, "price", list, "a list of two numbers", "budget")
    if price is not None and not (len(price) == 2 and all(_is_amount(each) for each in price)):
        reader.say(
            "budget.price is not a list of two numbers: for a million tokens read, and written", "budget", "price"
        )
        price = None
    cost = reader.take(table, "cost", (int, float), "a number", "budget")
    if cost is not None and not _is_amount(cost):
        reader.say(f"budget.cost is {cost}; it may be 0 or more", "budget", "cost")
        cost = None
    return BudgetConfig(
        reader.number(table, "calls", 0, "budget"),
        reader.number(table, "tokens", 0, "budget"),
        float(cost) if cost is not None else None,
        (float(price[0]), float(price[1])) if price else None,
    )


def _is_amount(value: Any) -> bool:
    """Whether something is a number that money can be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
