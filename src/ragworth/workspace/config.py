"""``ragworth.toml``: what is evaluated, with which model, by what, and where results go.

The whole file is checked before anything else happens. Unknown keys and values of the wrong type are reported
together, each with its line. Paths start at the folder of the file. The names of metrics, graders and pipeline steps
are checked by their packages. Settings made in Python are not checked.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, GetPydanticSchema, Tag, ValidationInfo

from ragworth.core.errors import MAX_PATH_LENGTH, InputError, format_list, quote_short
from ragworth.core.files import paths_outside
from ragworth.data.tokens import WORDS
from ragworth.formats.catalog import Spec
from ragworth.workspace.toml import (
    SWITCH,
    WITHOUT_FALSE,
    Amount,
    Count,
    Flag,
    Positive,
    PositiveAmount,
    Several,
    TextListValue,
    TextValue,
    TomlTable,
    check_toml,
    read_toml,
    split,
)

EVERY_SYSTEM = "*"
"""Name of a system that stands for all of a file, each under its own name; ``*2``, ``*3``, … for more files."""


def names_every_system(name: str) -> bool:
    """Whether a name stands for all systems of a file."""
    return re.fullmatch(r"\*\d*", name) is not None


WORKSPACE_FILE = "ragworth.toml"
"""What the file of a workspace is called."""


JUDGE_KEYS = ("model", "sample", "file")
"""Keys of an expensive judge that are no settings of its kind of judgment."""

FLAGS = ("file", "without", "oracle", "everything", "replace")
"""Keys of ``[answers]`` that may stand beside a file, if they are false."""

OUTPUT_OPTIONS = {"results": "--results DIR", "store": "--store FILE", "cache": "--cache DIR"}


def _check_answers(value: Any) -> Any:
    written = isinstance(value, dict) and value.get("file")
    if written and any(key not in FLAGS or each is True for key, each in value.items()):
        raise ValueError("answers that come from a file have no other settings", "file")
    return value


def _check_judge(value: Any) -> Any:
    """An expensive judge is one of the two: a model and the size of the sample, or a file."""
    if not isinstance(value, dict):
        return value
    keys = value.keys()
    if "file" in keys and len(value) > 1:
        raise ValueError("a file has no other settings: its queries are the sample")
    if not keys & {"file", "model"}:
        raise ValueError("it names neither a model nor a file")
    if not keys & {"file", "sample"}:
        raise ValueError("it does not say about how many queries the model is asked: sample = 50")
    return value


def _check_system(value: Any) -> Any:
    if value in ([], {}):
        raise ValueError("this system has no steps and no file")
    return value


def _check_names(systems: Mapping[str, str]) -> Mapping[str, str]:
    plain: dict[str, str] = {}
    for name in systems:
        if not name:
            raise ValueError("the name of a system is empty")
        if (other := plain.setdefault(" ".join(name.split()).casefold(), name)) != name:
            raise ValueError(f"the systems {other!r} and {name!r} differ only in case or spaces", name)
    return systems


def _check_baseline(baseline: str | None, info: ValidationInfo) -> str | None:
    """One of the systems, unless files that are not read yet name some."""
    collection, systems = info.data.get("collection"), info.data.get("systems")
    if baseline is None or not systems or collection is None or collection.whole or baseline in systems:
        return baseline
    if not any(map(names_every_system, systems)):
        raise ValueError(f"the baseline {baseline!r} is no system; there are {format_list(list(systems), 20)}")
    return baseline


def _check_inside(written: str, info: ValidationInfo) -> str:
    """Refuse a place that the file, not the user, puts outside of its folder. Links are followed first."""
    context: Any = info.context
    (folder, paths), name = context, str(info.field_name)
    path = folder / written
    outside = None if getattr(paths, name) else next(paths_outside(path, folder), None)
    if outside is None:
        return written
    target = outside.resolve()
    where = f"{quote_short(str(path), MAX_PATH_LENGTH)} is outside of the folder of the workspace"
    if outside.is_symlink() or outside != path:
        leads = quote_short(str(target), MAX_PATH_LENGTH)
        where = f"{quote_short(str(outside), MAX_PATH_LENGTH)} leads outside of the folder of the workspace, to {leads}"
    option, _, value = OUTPUT_OPTIONS[name].partition(" ")
    place = shlex.quote(str(target)) if outside == path else value
    raise ValueError(f"paths.{name}: {where}; to write there, add {option} {place}")


OutputPlace = Annotated[TextValue, AfterValidator(_check_inside), Field(validate_default=True)]


@dataclass(frozen=True)
class ModelSpec(TomlTable):
    """A model by its written form, with its options."""

    use: TextValue = "embedded"
    options: Mapping[str, Any] = field(default_factory=dict)
    chosen: Annotated[bool, Field(alias="(chosen)")] = field(default=False, compare=False)
    """True if the user named it, in a command or in Python; a file can't say so."""


ModelValue = Annotated[
    ModelSpec,
    split("options", "use"),
    BeforeValidator(lambda value: {"use": value} if isinstance(value, str) and value else value),
]
Settings = Annotated[Mapping[str, Any], AfterValidator(lambda some: {key.replace("-", "_"): some[key] for key in some})]


@dataclass(frozen=True)
class ExpensiveJudge(TomlTable):
    """A better judge than one can afford to ask about everything: a model for some queries, or a file of judgments."""

    model: ModelValue | None = None
    sample: Several | None = None
    """Queries that the model is asked about."""
    settings: Settings = field(default_factory=dict)
    """Those that differ from the kind's."""
    file: TextValue | None = None
    """Judgments that were made before; their queries are the sample."""


@dataclass(frozen=True)
class TaskConfig(TomlTable):
    """A kind of judgment, or a grader: its settings, and its model if that is not the workspace's."""

    settings: Settings = field(default_factory=dict)
    model: ModelValue | None = None
    expensive: Annotated[ExpensiveJudge, split("settings", *JUDGE_KEYS), BeforeValidator(_check_judge)] | None = None
    """Of a kind of judgment: a better judge for a sample."""

    def with_settings(self, settings: Mapping[str, Any]) -> TaskConfig:
        """The same with other settings besides its own."""
        return replace(self, settings={**self.settings, **settings})


@dataclass(frozen=True)
class CollectionConfig(TomlTable):
    """Where the collection comes from: all of it, or its parts; a part replaces that of the whole."""

    whole: Annotated[TextValue | None, Field(alias="from")] = None
    queries: TextValue | None = None
    passages: TextValue | None = None
    answers: TextValue | None = None
    subquestions: TextValue | None = None
    qrels: TextListValue = ()
    ratings: TextValue | None = None
    tokens: TextValue = WORDS
    """What counts as a token in densities: words, hf:PATH/tokenizer.json or tiktoken:NAME."""
    turns: Literal["conversation", "rewrite", "turn"] = "conversation"
    """What the reader is asked in a conversation: the turn with the conversation before it, its human rewrite, or the
    turn alone."""


@dataclass(frozen=True)
class AnswerConfig(TomlTable):
    """How answers are written, or the file that has them."""

    task: Annotated[TaskConfig, split("settings", "model"), Field(alias="(task)")] = TaskConfig()
    without: Flag = False
    oracle: Flag = False
    everything: Flag = False
    """Also queries without accepted answers, where others have some."""
    replace: Flag = False
    """Also where the data has answers, which are then ignored."""
    file: TextValue | None = None


@dataclass(frozen=True)
class BudgetConfig(TomlTable):
    """How far to go; None as far as it takes."""

    calls: Count | None = None
    tokens: Count | None = None
    cost: Amount | None = None
    price: tuple[Amount, Amount] | None = None
    """What an endpoint charges for a million tokens read and written."""


@dataclass(frozen=True)
class ExecutorConfig(TomlTable):
    """Where calls run: in this process, or on a Ray cluster.

    Attributes
    ----------
    address: of the cluster; ``auto`` finds a running one, empty starts one on this machine. Another one is for the user
        to name, not for a file: whoever runs a cluster sees all prompts and runs its code here.
    actors: models that are open at a time, each in a process of its own.
    cpus, gpus, resources: what each actor occupies.
    deadline: seconds after which a batch counts as hung.
    patience: seconds to wait for an actor to start if none is there.
    """

    kind: Literal["local", "ray"] = "local"
    address: Annotated[str, Field(pattern=r"^(auto)?$")] = ""
    actors: Positive = 1
    cpus: Amount = 1.0
    gpus: Amount = 0.0
    resources: Mapping[str, Amount] = field(default_factory=dict)
    deadline: PositiveAmount = 600.0
    patience: PositiveAmount = 300.0


@dataclass(frozen=True)
class OutputPaths:
    """Where to write instead of where the file says. They start where the command is called, not at the file."""

    results: str | Path | None = None
    store: str | Path | None = None
    cache: str | Path | None = None

    def __bool__(self) -> bool:
        return any((self.results, self.store, self.cache))


@dataclass(frozen=True)
class SystemTable(TomlTable):
    """A system whose contexts are in a file."""

    run: TextValue | None = None

    def pipeline(self) -> str:
        return 'run("' + (self.run or "").replace("\\", "\\\\").replace('"', '\\"') + '")'


_System = Annotated[
    Annotated[SystemTable, AfterValidator(SystemTable.pipeline), Tag("(table)")]
    | Annotated[TextListValue, AfterValidator(" >> ".join), Tag("(steps)")],
    Discriminator(lambda value: "(table)" if isinstance(value, dict) else "(steps)"),
]
SystemValue = Annotated[str, GetPydanticSchema(lambda _, build: build(_System)), BeforeValidator(_check_system)]
ColumnValue = Annotated[
    Annotated[TextValue, Tag("(text)")] | Annotated[Mapping[str, TextValue], Tag("(table)")],
    Discriminator(lambda value: "(table)" if isinstance(value, dict) else "(text)"),
]
Judgment = Annotated[TaskConfig, split("settings", "model", "expensive"), SWITCH]
AUTO: Literal["auto"] = "auto"
"""Hops are analysed if the workspace's model runs on this machine, where it costs nothing."""
Hops = Annotated[TaskConfig | Literal["auto"] | None, split("settings", "model"), SWITCH]
Grade = Annotated[TaskConfig, split("settings", "model"), SWITCH]


@dataclass(frozen=True)
class Workspace(TomlTable):
    """Everything that one file says. Aliases are places in the file; those in parentheses are not in it."""

    file: Annotated[Path, Field(alias="(file)")]
    title: TextValue = ""
    seed: Count = 0
    k: Positive = 5
    limit: Positive | None = None
    judged_queries: Positive | None = None
    collection: CollectionConfig = CollectionConfig()
    systems: Annotated[Mapping[str, SystemValue], AfterValidator(_check_names)] = field(default_factory=dict)
    """Pipelines in their written form, by name."""
    columns: Mapping[str, ColumnValue] = field(default_factory=dict)
    """Our names of fields and those of the logs; a table holds the names of one log."""
    model: ModelValue = ModelSpec()
    judgments: Annotated[Mapping[str, Judgment], WITHOUT_FALSE] = field(default_factory=dict)
    judged: Annotated[TextListValue, Field(alias="judgments.files")] = ()
    """Files of judgments."""
    hops: Annotated[Hops, Field(alias="judgments.hops")] = AUTO
    """What the searches of an agent added, where contexts say in which hop it found what."""
    answers: Annotated[
        AnswerConfig | None,
        split("(task)", "without", "oracle", "everything", "replace", "file"),
        SWITCH,
        BeforeValidator(_check_answers),
    ] = None
    grades: Annotated[Mapping[str, Grade], WITHOUT_FALSE] = field(default_factory=dict)
    graded: Annotated[TextListValue, Field(alias="grades.files")] = ()
    """Files of outcomes."""
    metrics: Annotated[TextListValue, Field(alias="metrics.use")] = ()
    """None named: all that the inputs allow."""
    baseline: Annotated[TextValue | None, AfterValidator(_check_baseline), Field(alias="metrics.baseline")] = None
    budget: BudgetConfig = BudgetConfig()
    executor: ExecutorConfig = ExecutorConfig()
    results: Annotated[OutputPlace, Field(alias="paths.results")] = "results"
    store: Annotated[OutputPlace, Field(alias="paths.store")] = "calls.sqlite"
    cache: Annotated[OutputPlace, Field(alias="paths.cache")] = ".ragworth"
    prompts: Annotated[TextValue | None, Field(alias="paths.prompts")] = None
    given: Annotated[Mapping[str, Any], Field(alias="(given)")] = field(default_factory=dict, compare=False)
    """All that the file said when it was read; empty for a workspace made in Python."""
    digest: Annotated[str, Field(alias="(digest)")] = field(default="", compare=False)
    """Of the file, then."""
    known: Annotated[dict[Any, Any], Field(alias="(known)")] = field(default_factory=dict, compare=False, repr=False)
    """Files that were read already: see `workspace.files.KnownFiles`."""

    @property
    def folder(self) -> Path:
        return self.file.parent

    @property
    def judgment_tasks(self) -> Mapping[str, TaskConfig]:
        """Kinds of judgment, and the analysis of hops if the file says how."""
        return {**self.judgments, "hops": self.hops} if isinstance(self.hops, TaskConfig) else self.judgments

    def columns_of(self, text: str) -> dict[str, str]:
        """Names of fields in a log: those of all logs, and those of this one."""
        own = next((each for name, each in self.columns.items() if name == text and isinstance(each, Mapping)), {})
        return {**{name: each for name, each in self.columns.items() if isinstance(each, str)}, **own}

    def with_settings(self, tasks: Mapping[str, Mapping[str, Any]]) -> Workspace:
        """The same with other settings of some of its tasks: kinds of judgment, graders, or ``answers``."""
        judgments, grades = (
            {name: each.with_settings(tasks.get(name, {})) for name, each in known.items()}
            for known in (self.judgments, self.grades)
        )
        answers, mine = self.answers, tasks.get("answers", {})
        answers = replace(answers, task=answers.task.with_settings(mine)) if answers is not None else None
        return replace(self, judgments=judgments, grades=grades, answers=answers)

    def with_model(self, model: ModelSpec) -> Workspace:
        """The same with another model for all tasks that don't name their own."""
        given = {**self.given, "model": {"use": model.use, **model.options}} if self.given else self.given
        return replace(self, model=model, given=given)

    def path(self, text: str) -> Path:
        """A path of the file's, from its folder."""
        return self.folder / text

    @property
    def tokens(self) -> str:
        """What counts as a token, with the tokenizer's path from the folder of the file."""
        form, colon, rest = self.collection.tokens.partition(":")
        return f"hf:{self.folder / rest}" if form == "hf" and rest else form + colon + rest

    def spec(self, text: str) -> str:
        """A path that may carry its format in front (``beir:FOLDER``), from the folder of the file."""
        form, path = Spec.of(text)
        if form == "ir_datasets":
            return text
        return f"{form}:{self.folder / path}" if form else str(self.folder / path)


FLAT = ("metrics", "paths")
"""Tables whose keys are fields of the workspace, with aliases such as ``metrics.use``."""

LIFTED = {"judgments": ("files", "hops"), "grades": ("files",)}
"""Keys of other tables that are."""


def flatten(tables: dict[str, Any]) -> dict[str, Any]:
    """The file with the keys of `FLAT` and `LIFTED` at the top."""
    flat: dict[str, Any] = {}
    for name, table in tables.items():
        if name in FLAT and isinstance(table, dict):
            flat |= {f"{name}.{key}": value for key, value in table.items()}
        elif name in LIFTED and isinstance(table, dict):
            flat[name] = {key: table[key] for key in table if key not in LIFTED[name]}
            flat |= {f"{name}.{key}": table[key] for key in LIFTED[name] if key in table}
        else:
            flat[name] = table
    return flat


def read(path: str | Path, paths: OutputPaths = OutputPaths()) -> Workspace:  # noqa: B008 (it cannot change)
    """Read the file of a workspace; a folder has one called ``ragworth.toml``.

    The file may come from somebody else, so it may only write to its own folder. ``paths`` come from the user and may
    be anywhere.
    """
    file = Path(path)
    file = file / WORKSPACE_FILE if file.is_dir() else file
    if not file.exists():
        remedy = f"ragworth init {file.parent if file.suffix else file} writes one"
        raise InputError("there is no such file", file=str(file), expected=WORKSPACE_FILE, remedy=remedy)
    whole, text = read_toml(file, "TOML, such as: k = 5")
    facts = {"(file)": file, "(given)": whole, "(digest)": hashlib.sha256(text.encode()).hexdigest()[:16]}
    space = check_toml(Workspace, whole, str(file), text, values=flatten(whole) | facts, context=(file.parent, paths))
    return replace(space, title=space.title or file.resolve().parent.name, **_given_paths(paths))


def from_tables(tables: Mapping[str, Mapping[str, Any]], file: Path, paths: OutputPaths) -> Workspace:
    """A workspace from settings by table, without a file: ``file`` is where one would be; "" is the head of it.

    It writes to the same folder only, as with a file.
    """
    whole = {**tables.get("", {}), **{name: dict(keys) for name, keys in tables.items() if name}}
    facts = {"(file)": file, "(given)": whole}
    space = check_toml(Workspace, whole, values=flatten(whole) | facts, context=(file.parent, paths))
    return replace(space, **_given_paths(paths))


def _given_paths(paths: OutputPaths) -> dict[str, Any]:
    """The user's own places, from where the command is called."""
    chosen = {name: getattr(paths, name) for name in OUTPUT_OPTIONS}
    return {name: str(Path(path).expanduser().absolute()) for name, path in chosen.items() if path}
