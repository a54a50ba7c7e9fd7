"""Steps, pipelines of steps with a written form, and what they run on.

A step is a frozen dataclass in ``steps/``, plus a line in `STEPS`. Its fields declared with `option` (by name) and
`argument` (by position) are its settings, in Python and in the written form. `Step.apply` takes the contexts retrieved
so far by one system, or None if the step comes first, and returns contexts: any queries in any order, under any name.
`ragworth.retrieval.execution` does what every step needs: it keeps only the requested queries, in their order, lists
those without passages, and names the system.

``a >> b`` passes the results of a to b, ``a % k`` keeps the first k. As in Python, ``%`` binds tighter than ``>>``,
which makes no difference: both ``a >> b % 10`` and ``(a >> b) % 10`` cut the results of b. Of two cuts in a row, the
smaller one counts. Equal pipelines have equal written forms and hashes.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, NoReturn, TypeAlias, TypeVar

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.core.registry import Registry
from ragworth.data import OK, Contexts, Judgments
from ragworth.data.collection import Collection
from ragworth.interop.retrievers import is_retriever
from ragworth.judging.contract import options_of, validate_options
from ragworth.metrics.declaration import format_number
from ragworth.retrieval.asker import StepAsker

if TYPE_CHECKING:
    from ragworth.calls.store import Store
    from ragworth.llm.contract import Model
    from ragworth.llm.prompts.template import Template

T = TypeVar("T")

DEFAULT_DEPTH = 100
"""Default number of passages of a first stage."""

MAX_STEPS = 100
"""Steps of a pipeline, which run within each other."""

Place = Literal["first", "behind", "either"]
"""Where a step may be: only first in a pipeline, only after another step, or both."""

Need = Literal["passages", "query texts", "relevance", "judgments"]
"""Inputs that a step may require."""


@dataclass(frozen=True, eq=False)
class StepContext:
    """What pipelines run on.

    Attributes
    ----------
    collection: passages to retrieve from.
    queries: query, text; the text is null if unknown.
    relevance: labels, for contexts built from them.
    judgments: judgments of other aspects, such as abstention.
    seed: seed of all random draws.
    cache: folder for artifacts that can be rebuilt (indexes), or None.
    folder: base of relative paths in pipelines; None is the current folder.
    depth: number of passages of a first stage.
    model_access: models for steps that call one, or None.
    progress: receives the progress of long work: its name, the amount done, and the total.
    returned_texts: texts of passages returned by systems but missing in the collection, by id.
    """

    collection: Collection
    queries: pl.DataFrame
    relevance: Judgments | None = None
    judgments: Judgments | None = None
    seed: int = 0
    cache: Path | None = None
    folder: Path | None = None
    depth: int = DEFAULT_DEPTH
    model_access: StepAsker | None = None
    progress: Callable[[str, int, int], None] | None = None
    returned_texts: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        collection: Collection,
        queries: Sequence[str] | None = None,
        *,
        relevance: Judgments | None = None,
        judgments: Judgments | None = None,
        seed: int = 0,
        cache: str | Path | None = None,
        folder: str | Path | None = None,
        depth: int = DEFAULT_DEPTH,
        model: Model | str | None = None,
        store: Store | str | Path | None = None,
        prompts: str | Path | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> StepContext:
        """Build the context of a collection: its queries, or those given, and its own labels unless others are given.

        Steps that call a model use ``model`` (by default the embedded one) unless they name another; answers are saved
        in ``store``. ``prompts`` is a folder of the user's own prompts.
        """
        requested = collection.queries
        if queries is not None:
            wanted = pl.DataFrame({"query": list(dict.fromkeys(queries))}, schema={"query": pl.String})
            requested = wanted.join(collection.queries, on="query", how="left", maintain_order="left")
        return cls(
            collection,
            requested,
            relevance if relevance is not None else collection.relevance,
            judgments,
            seed,
            Path(cache) if cache is not None else None,
            Path(folder) if folder is not None else None,
            depth,
            StepAsker(model, store, Path(prompts) if prompts is not None else None),
            progress,
        )

    @cached_property
    def ids(self) -> list[str]:
        """Ids of the queries."""
        return self.queries["query"].to_list()

    @cached_property
    def passages(self) -> pl.Series:
        """Ids of passages with a text, in sorted order, so that nothing depends on the order of a file."""
        ids = self.collection.passages["passage"]
        return ids.filter(~ids.is_in(list(self.blank_ids))).sort() if self.blank_ids else ids.sort()

    @cached_property
    def passage_ids(self) -> frozenset[str]:
        """Ids of passages with a text, as a set."""
        return frozenset(self.passages)

    @cached_property
    def blank_ids(self) -> frozenset[str]:
        """Ids of passages of the collection that have no text but blanks."""
        blank = pl.col("text").str.strip_chars() == ""
        return frozenset(self.collection.passages.filter(blank)["passage"])

    @property
    def texts(self) -> Collection:
        """The collection, with the texts of passages that systems returned so far."""
        more = {"passage": list(self.returned_texts), "text": list(self.returned_texts.values())}
        frame = pl.DataFrame(more, schema=dict.fromkeys(more, pl.String))
        return self.collection.with_passages(frame)

    @cached_property
    def labels(self) -> dict[str, dict[str, float]]:
        """Known relevance by query and passage."""
        return judged_values(self.relevance, "relevance")

    def searching(self, texts: Mapping[str, str]) -> StepContext:
        """Return the context with other search texts. They stand alone: no history goes with them."""
        queries = self.queries.with_columns(text=pl.Series([texts[query] for query in self.ids], dtype=pl.String))
        collection = replace(self.collection, queries=queries, turns=self.collection.turns.clear())
        return replace(self, queries=queries, collection=collection)

    def why_missing(self, need: Need) -> str:
        """Say why a required input is missing; empty if it is there."""
        if need == "query texts":
            without = self.queries.filter(pl.col("text").is_null())["query"]
            few = format_list([quote_short(each, 24) for each in without.head(4)], 3)
            return f"no text of {format_count(len(without), 'query', 'queries')} ({few})" if len(without) else ""
        if need == "passages":
            return "" if self.collection.passages.height else "no texts of passages"
        if need == "relevance":
            return "" if self.relevance is not None else "no relevance labels"
        return "" if self.judgments is not None else "no judgments"


def judged_values(judgments: Judgments | None, aspect: str) -> dict[str, dict[str, float]]:
    """Return known values of an aspect by query and passage, without failed judgments."""
    values: dict[str, dict[str, float]] = {}
    if judgments is not None:
        rows = judgments.of(aspect).filter(pl.col("status") == OK).select("query", "passage", "value")
        for query, passage, value in rows.iter_rows():
            values.setdefault(query, {})[passage] = value
    return values


class SearchTexts(NamedTuple):
    """Texts to search with, by query, once for each rewrite; and notes on how they came about."""

    texts: tuple[Mapping[str, str], ...]
    notes: tuple[str, ...] = ()


def argument(default: T, help: str, *, low: float | None = None, high: float | None = None) -> T:
    """Declare a positional setting: ``run("file")``. Otherwise like `ragworth.judging.contract.option`."""
    about = {"help": help, "choices": (), "low": low, "high": high}
    declared: Any = field(default=default, metadata=about)
    return declared  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Step:
    """A step with its settings. Steps with equal settings are equal; ``str()`` is the written form."""

    kind: ClassVar[str]
    title: ClassVar[str]
    """What it returns, in one line."""
    place: ClassVar[Place]
    needs: ClassVar[tuple[Need, ...]] = ()
    bounded: ClassVar[bool] = True
    """Whether, as a first step, it returns `StepContext.depth` passages; otherwise it has its own depth.

    The first k results of a bounded step must not depend on the depth, because it runs once for several systems.
    """

    takes_pipelines: ClassVar[bool] = False
    """Whether its positional values are pipelines; see `Combined`."""

    control: ClassVar[bool] = False
    """Whether it is for comparison only: it draws at random, goes by labels, or spoils the order."""

    asks_model: ClassVar[bool] = False
    """Whether it calls a language model."""

    rewrites: ClassVar[bool] = False
    """Whether it retrieves nothing and changes the search texts of the steps behind it; see `search_texts`."""

    def __post_init__(self) -> None:
        validate_options(self, self.kind)
        self.check()

    def check(self) -> None:
        """Reject settings that conflict."""

    def problems(self, context: StepContext) -> list[str]:
        """Say why it can't run, checked before anything does."""
        lacks = [lack for need in self.needs if (lack := context.why_missing(need))]
        return [f"{self.kind} lacks an input: {lack}" for lack in lacks]

    def files(self, context: StepContext) -> tuple[Path, ...]:
        """Return the user's files that its results depend on."""
        return ()

    def sources(self, context: StepContext) -> tuple[str, ...]:
        """Return the models and prompts that its results depend on, each with its version."""
        return ()

    def models(self) -> tuple[str, ...]:
        """Return the written forms of the language models that it calls; ``""`` is the evaluation's."""
        return ()

    def templates(self, context: StepContext) -> dict[str, Template]:
        """Return all prompts that it uses."""
        return {}

    @property
    def inner_pipelines(self) -> tuple[Pipeline, ...]:
        """Pipelines that it combines: they run before it, and then `join` is called instead of `apply`."""
        return ()

    @property
    def all_pipelines(self) -> tuple[Pipeline, ...]:
        """All pipelines in it: those that run before it, and those that it runs itself."""
        return self.inner_pipelines

    def join(self, results: Sequence[Contexts], context: StepContext) -> Contexts:
        """Combine the results of the pipelines inside it, in their order."""
        raise NotImplementedError

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        """Return contexts from those before it; `before` is None if and only if it comes first."""
        raise NotImplementedError

    def search_texts(self, context: StepContext) -> SearchTexts:
        """Return new search texts of the queries, for a step that rewrites."""
        raise NotImplementedError

    def __rshift__(self, other: StepLike) -> Pipeline:
        return Pipeline((self,)) >> other

    def __mod__(self, k: int) -> Pipeline:
        return Pipeline((self,)) % k

    def __str__(self) -> str:
        inside: list[str] = []
        bare = True  # no positional setting was left out
        for each in sorted(fields(self), key=lambda each: bool(each.kw_only)):
            value = getattr(self, each.name)
            if value != each.default:
                written = format_value(value)
                inside.append(written if bare and not each.kw_only else f"{each.name}={written}")
            elif not each.kw_only:
                bare = False
        return self.kind + (f"({', '.join(inside)})" if inside else "")


@dataclass(frozen=True)
class Top(Step):
    """The first k passages; written ``% k``."""

    k: int = argument(10, "how many passages to keep", low=1)

    kind: ClassVar[str] = "top"
    title: ClassVar[str] = "the first k retrieved passages; written % k"
    place: ClassVar[Place] = "behind"

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        assert before is not None
        return before.cut(self.k)

    def __str__(self) -> str:
        return f"% {self.k}"


@dataclass(frozen=True)
class Pipeline:
    """Steps in order, at least one.

    It may be a part to be put after another, so the first step need not be able to come first; `complete` checks that.
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise InputError("the pipeline has no steps", expected="at least one, such as bm25")
        if len(self.steps) > MAX_STEPS:
            raise InputError(f"the pipeline has more than {MAX_STEPS} steps", expected=f"at most {MAX_STEPS}")
        for before, step in zip(self.steps, self.steps[1:], strict=False):
            if before.rewrites and (step.place == "behind" or step.rewrites):
                raise InputError(
                    f"{step} can't follow {before.kind}: nothing is retrieved before it",
                    expected=f"a step that retrieves after {before.kind}, such as {before} >> bm25",
                )
            if step.place == "first" and not before.rewrites:
                raise InputError(
                    f"{step.kind} can't follow {before.kind}: it retrieves on its own",
                    expected=f"{step.kind} at the beginning",
                )
        merged: list[Step] = []
        for step in self.steps:
            if merged and isinstance(step, Top) and isinstance(last := merged[-1], Top):
                merged[-1] = min(step, last, key=lambda cut: cut.k)
            else:
                merged.append(step)
        object.__setattr__(self, "steps", tuple(merged))

    @classmethod
    def of(cls, system: StepLike | Any) -> Pipeline:
        """Build a pipeline from any of its forms."""
        if isinstance(system, Pipeline):
            return system
        if isinstance(system, Step):
            return cls((system,))
        if isinstance(system, str):
            return parse(system)
        if isinstance(system, Sequence):
            return cls(tuple(step for part in system for step in cls.of(part).steps))
        if is_retriever(system):
            called = import_module("ragworth.retrieval.steps.external").Called  # which builds on this module
            return cls((called(system),))
        raise InputError(
            f"{quote_short(system)} is not a pipeline",
            expected='a step, a written form such as "bm25 >> reversed % 10", or a retriever: a function, an object',
        )

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """Its steps and those of inner pipelines."""
        waiting, steps = [self], []
        while waiting:
            for step in waiting.pop(0).steps:
                steps.append(step)
                waiting += step.all_pipelines
        return tuple(steps)

    @property
    def is_control(self) -> bool:
        """Whether it is for comparison only: some step is a control."""
        return any(step.control for step in self.all_steps)

    @property
    def asks_model(self) -> bool:
        """Whether some step calls a language model."""
        return any(step.asks_model for step in self.all_steps)

    def with_depth(self, k: int) -> Pipeline:
        """Return the same ranking, shown at least k deep: a cut at the end that keeps fewer is moved."""
        last = self.steps[-1]
        return Pipeline((*self.steps[:-1], Top(k))) if isinstance(last, Top) and last.k < k else self

    def complete(self) -> Pipeline:
        """Return the pipeline if it can run, i.e. begins with a step that retrieves."""
        if self.steps[0].place == "behind":
            sign = " " if isinstance(self.steps[0], Top) else " >> "
            raise InputError(
                f"{self.steps[0]} can't be first in {str(self)!r}: it works on what was retrieved before",
                expected=f"something that retrieves before it, such as bm25{sign}{self}",
            )
        if self.steps[-1].rewrites:
            raise InputError(
                f"{str(self)!r} retrieves nothing", expected=f"a step that retrieves after it, such as {self} >> bm25"
            )
        return self

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that identify the written form."""
        return hashlib.sha256(str(self).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def __rshift__(self, other: StepLike) -> Pipeline:
        return Pipeline((*self.steps, *Pipeline.of(other).steps))

    def __mod__(self, k: int) -> Pipeline:
        return Pipeline((*self.steps, Top(k)))

    def __str__(self) -> str:
        first, *rest = self.steps
        return str(first) + "".join(f" {step}" if isinstance(step, Top) else f" >> {step}" for step in rest)


StepLike: TypeAlias = Pipeline | Step | str | Sequence["StepLike"]
"""A pipeline, a step, a written form, or a list of them, which are joined by ``>>``."""


@dataclass(frozen=True, init=False)
class Combined(Step):
    """Base class of steps whose positional values are pipelines."""

    parts: tuple[Pipeline, ...]

    place: ClassVar[Place] = "first"
    bounded: ClassVar[bool] = False
    takes_pipelines: ClassVar[bool] = True

    def __init__(self, *parts: StepLike, **settings: Any) -> None:
        pipelines = tuple(Pipeline.of(part).complete() for part in parts)
        needs = dict.fromkeys(need for part in pipelines for step in part.steps for need in step.needs)
        defaults = {each.name: each.default for each in options_of(type(self))}
        if unknown := settings.keys() - defaults:
            raise TypeError(f"{self.kind} has no setting {min(unknown)!r}")
        for name, value in {**defaults, **settings, "parts": pipelines, "needs": tuple(needs)}.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    @property
    def all_pipelines(self) -> tuple[Pipeline, ...]:
        return self.parts

    @property
    def _steps(self) -> list[Step]:
        return [step for part in self.parts for step in part.steps]

    def problems(self, context: StepContext) -> list[str]:
        return list(dict.fromkeys(all_problems(self._steps, context)))

    def files(self, context: StepContext) -> tuple[Path, ...]:
        return tuple(path for step in self._steps for path in step.files(context))

    def sources(self, context: StepContext) -> tuple[str, ...]:
        return tuple(source for step in self._steps for source in step.sources(context))

    def __str__(self) -> str:
        options = [each for each in options_of(type(self)) if getattr(self, each.name) != each.default]
        inside = [f"{each.name}={format_value(getattr(self, each.name))}" for each in options]
        return f"{self.kind}({', '.join([*map(str, self.parts), *inside])})"


def all_problems(steps: Iterable[Step], context: StepContext) -> list[str]:
    """Say why steps can't run, also of those that raise an error when they are checked; each may have several lines."""
    problems: list[str] = []
    for step in steps:
        try:
            problems += step.problems(context)
        except InputError as error:
            problems.append(str(error))
    return problems


STEPS: Registry[type[Step]] = Registry(
    "kind of step",
    "ragworth.retrieval",
    {
        "rewritten": "ragworth.retrieval.steps.rewritten:Rewritten",
        "bm25": "ragworth.retrieval.steps.bm25:Bm25",
        "dense": "ragworth.retrieval.steps.dense:Dense",
        "sparse": "ragworth.retrieval.steps.sparse:Sparse",
        "fused": "ragworth.retrieval.steps.combined:Fused",
        "run": "ragworth.retrieval.steps.external:Run",
        "within": "ragworth.retrieval.steps.combined:Within",
        "random": "ragworth.retrieval.steps.reorder:Random",
        "oracle": "ragworth.retrieval.steps.controlled:Oracle",
        "adversary": "ragworth.retrieval.steps.controlled:Adversary",
        "best_by": "ragworth.retrieval.steps.controlled:BestBy",
        "rerank": "ragworth.retrieval.steps.cross_encoder:Rerank",
        "listwise": "ragworth.retrieval.steps.listwise:Listwise",
        "useful": "ragworth.retrieval.steps.useful:Useful",
        "mmr": "ragworth.retrieval.steps.mmr:Mmr",
        "reversed": "ragworth.retrieval.steps.reorder:Reversed",
        "shuffled": "ragworth.retrieval.steps.reorder:Shuffled",
        "top": "ragworth.retrieval.pipeline:Top",
    },
)
"""Kinds of steps by name. Other packages add theirs through entry points in the group ``ragworth.retrieval``."""

LARGE = 10**18
"""Whole numbers from here on are floats, which are rejected with the right message."""
EXCERPT_WIDTH = 36
"""How much of a pipeline to show on either side of a position."""
_QUOTED_BLANK_OR_COMMENT = re.compile(r"""(?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\s|#""", re.DOTALL)
EXAMPLE_FORM = "a form like bm25(k1=0.9) >> reversed % 10"


def parse(text: str) -> Pipeline:
    """Parse a pipeline from its written form, such as ``bm25(k1=0.9) >> reversed % 10``.

    It is a Python expression of names, calls, ``>>`` and ``%``: a step is a name, with its settings in parentheses. A
    value is a number, a text in quotes, ``true``, ``false``, or a text of one word. Only steps that combine pipelines
    take a pipeline as a value. Errors point at their position.
    """
    return _PipelineParser(text).parse()


class _PipelineParser:
    """Turns the syntax tree of one text into a pipeline."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line = _QUOTED_BLANK_OR_COMMENT.sub(self._on_one_line, text.strip())

    def parse(self) -> Pipeline:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of an invalid escape
                tree = ast.parse(self.line, mode="eval")
            return self.pipeline(tree.body)
        except SyntaxError as error:
            self.fail(InputError(error.msg, expected=EXAMPLE_FORM), (error.offset or len(self.line) + 1) - 1)
        except ValueError as error:  # characters that no Python text has
            self.fail(InputError(str(error), expected=EXAMPLE_FORM), 0)
        except (RecursionError, MemoryError):
            self.fail(InputError(f"it has more than {MAX_STEPS} steps, or too many parentheses"), 0)

    def _on_one_line(self, match: re.Match[str]) -> str:
        """Replace blanks outside quotes, and line ends anywhere; Python would skip the text after a ``#``."""
        if match["quoted"]:
            return re.sub(r"[\r\n]", " ", match[0])
        if match[0] == "#":
            self.fail(InputError("there are no comments in a pipeline", expected=EXAMPLE_FORM), match.start())
        return " "

    def pipeline(self, node: ast.expr) -> Pipeline:
        """Join the operands of ``>>`` and ``%``, from left to right."""
        behind: list[tuple[ast.operator, ast.expr]] = []
        while isinstance(node, ast.BinOp):
            behind.append((node.op, node.right))
            node = node.left
        pipeline = self.step(node)
        for operator, right in reversed(behind):
            if isinstance(operator, ast.RShift):
                pipeline = self.pointed(right, pipeline.__rshift__, self.pipeline(right))
            elif isinstance(operator, ast.Mod):
                k = right.value if isinstance(right, ast.Constant) else None
                if type(k) is not int or k >= LARGE:
                    self.unexpected(right, "after %", "a whole number, such as % 10")
                pipeline = self.pointed(right, pipeline.__mod__, k)
            else:
                self.unexpected(right, "behind another sign than >> and %", EXAMPLE_FORM)
        return pipeline

    def step(self, node: ast.expr) -> Pipeline:
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        name = call.func
        if not isinstance(name, ast.Name):
            self.unexpected(node, "where a step should stand", EXAMPLE_FORM)
        kind = self.pointed(name, STEPS.get, name.id)
        options = [each.name for each in options_of(kind)]
        by_place = [each.name for each in options_of(kind) if not each.kw_only]
        if kind.takes_pipelines:
            values = [self.pointed(each, self.pipeline(each).complete) for each in call.args]
        else:
            if extra := call.args[len(by_place) :]:
                form = f"name=value, of {format_list(options, 12)}" if options else "no settings"
                self.unexpected(extra[0], f"is one value too many for {kind.kind}", form)
            values = [self.value(each) for each in call.args]
        settings: dict[str, Any] = {}
        for keyword in call.keywords:
            option = keyword.arg or "**"
            if option not in options:
                near = difflib.get_close_matches(option, options, n=2, cutoff=0.5)
                problem = InputError(
                    f"{kind.kind} has no setting {quote_short(option, 24)}",
                    expected=format_list(options, 12) or "no settings",
                    remedy=f"did you mean {' or '.join(near)}?" if near else "",
                )
                self.fail(problem, self.position(keyword))
            if option in settings or option in by_place[: len(values)]:
                problem = InputError(f"the setting {option!r} occurs twice", expected="each setting once")
                self.fail(problem, self.position(keyword))
            settings[option] = self.value(keyword.value)
        return Pipeline((self.pointed(name, kind, *values, **settings),))

    def value(self, node: ast.expr) -> Any:
        """Return a number, a text, true or false."""
        if isinstance(node, ast.Name):
            return {"true": True, "false": False}.get(node.id, node.id)
        signed = node if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd) else None
        inner = signed.operand if signed else node
        value: Any = inner.value if isinstance(inner, ast.Constant) else None
        if type(value) in (int, float):
            number = float(str(value)) if value >= LARGE else value
            return -number if signed and isinstance(signed.op, ast.USub) else number
        if signed or type(value) not in (str, bool):
            expected = "a number, a text in quotes, true, false or one word"
            self.unexpected(node, "where a value should stand", expected)
        return value

    def position(self, node: ast.expr | ast.keyword) -> int:
        return len(self.line.encode()[: node.col_offset].decode())

    def pointed(self, node: ast.expr, make: Callable[..., T], *values: Any, **settings: Any) -> T:
        """Call ``make``, pointing at the position of any error."""
        try:
            return make(*values, **settings)
        except InputError as error:
            self.fail(error, self.position(node))

    def unexpected(self, node: ast.expr, where: str, expected: str) -> NoReturn:
        source = quote_short(ast.get_source_segment(self.line, node) or "", 24)
        self.fail(InputError(f"{source} {where}", expected=expected), self.position(node))

    def fail(self, error: InputError, position: int) -> NoReturn:
        """Raise the error with the part of the pipeline around a position."""
        at = len(self.text) - len(self.text.lstrip()) + position
        low = max(0, at - EXCERPT_WIDTH)
        excerpt = self.text[low : at + EXCERPT_WIDTH]
        shown = "".join(sign if sign.isprintable() else "·" for sign in excerpt)
        raise InputError(
            f"can't parse the pipeline at character {at + 1}: {error.found}",
            more=(*error.more, shown, f"{' ' * (at - low)}^"),
            expected=error.expected,
            remedy=error.remedy,
        ) from error


def format_value(value: Any) -> str:
    """Format a setting's value in its written form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escapes = {'"': '\\"', "\\": "\\\\"}
        signs = (escapes.get(sign) or (sign if sign.isprintable() else ascii(sign)[1:-1]) for sign in value)
        return f'"{"".join(signs)}"'
    return format_number(value) if isinstance(value, float) else str(value)


def unscored_contexts(rows: Iterable[tuple[str, Sequence[str]]]) -> Contexts:
    """Build contexts without scores from queries with their passages in the order shown."""
    lists = pl.DataFrame(list(rows), schema={"query": pl.String, "passage": pl.List(pl.String)}, orient="row")
    ranks = pl.int_ranges(1, pl.col("passage").list.len() + 1, dtype=pl.UInt32)
    frame = lists.with_columns(rank=ranks).filter(pl.col("passage").list.len() > 0).explode("passage", "rank")
    return Contexts.trusted(frame.with_columns(system=pl.lit("run"), score=pl.lit(None, dtype=pl.Float64)))


def passages_by_query(contexts: Contexts) -> dict[str, list[str]]:
    """Return the passages of each query, in the order shown."""
    passages: dict[str, list[str]] = {}
    for query, passage in contexts.frame.sort("rank").select("query", "passage").iter_rows():
        passages.setdefault(query, []).append(passage)
    return passages
