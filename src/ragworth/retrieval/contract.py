"""The interface of pipeline steps.

A step is a frozen dataclass in ``steps/``, plus a line in `STEPS`. Its fields declared with `option` (by name) and
`argument` (by position) are its settings, in Python and in the written form. `apply` takes the contexts retrieved so
far by one system, or None if the step comes first, and returns contexts: any queries in any order, under any name.
`run` does what every step needs: it keeps only the requested queries, in their order, lists those without passages,
and names the system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data import OK, Contexts, Judgments
from ragworth.data.collection import Collection
from ragworth.judging.contract import validate_options
from ragworth.metrics.declaration import format_number

if TYPE_CHECKING:
    from ragworth.calls.programs import NoValue, Program
    from ragworth.calls.store import Store
    from ragworth.llm.contract import Card, Model
    from ragworth.llm.prompts.template import Template
    from ragworth.retrieval.pipeline import Pipeline, StepLike

T = TypeVar("T")

DEFAULT_DEPTH = 100
"""Default number of passages of a first stage."""

Place = Literal["first", "behind", "either"]
"""Where a step may be: only first in a pipeline, only after another step, or both."""

Need = Literal["passages", "query texts", "relevance", "judgments"]
"""Inputs that a step may require."""


class ModelAccess(Protocol):
    """Models that steps call through a store, so that nothing is asked twice. ``""`` is the evaluation's model."""

    @property
    def prompts(self) -> Path | None:
        """Folder of the user's own prompts."""
        ...

    @property
    def plan(self) -> bool:
        """Whether no calls are made, and lists without stored answers keep their order."""
        ...

    def card(self, model: str) -> Card:
        """The model's card, without loading weights."""
        ...

    def begin_system(self, system: str) -> None:
        """Attribute the following calls to this system."""
        ...

    def ask(
        self, model: str, work: Callable[[Card], Sequence[Program[T]]], *, step: str, max_calls: int
    ) -> list[T | NoValue | None]:
        """Results of programs; None where planning lacks an answer.

        ``max_calls``: maximum calls of all programs together.
        """
        ...


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
    model_access: ModelAccess | None = None
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
        from ragworth.retrieval.rerankers.asker import StepAsker

        known = collection.queries
        if queries is not None:
            wanted = pl.DataFrame({"query": list(dict.fromkeys(queries))}, schema={"query": pl.String})
            known = wanted.join(known, on="query", how="left", maintain_order="left")
        return cls(
            collection,
            known,
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
        found: dict[str, dict[str, float]] = {}
        if self.relevance is not None:
            judged = self.relevance.of("relevance").filter(pl.col("status") == OK)
            for query, passage, value in judged.select("query", "passage", "value").iter_rows():
                found.setdefault(query, {})[passage] = value
        return found

    def searching(self, texts: Mapping[str, str]) -> StepContext:
        """The context with other search texts. They stand alone: no history goes with them."""
        queries = self.queries.with_columns(text=pl.Series([texts[query] for query in self.ids], dtype=pl.String))
        collection = replace(self.collection, queries=queries, turns=self.collection.turns.clear())
        return replace(self, queries=queries, collection=collection)

    def why_missing(self, need: Need) -> str:
        """Why a required input is missing, or empty."""
        if need == "query texts":
            without = self.queries.filter(pl.col("text").is_null())["query"]
            few = format_list([quote_short(each, 24) for each in without.head(4)], 3)
            return f"no text of {format_count(len(without), 'query', 'queries')} ({few})" if len(without) else ""
        there = {
            "passages": self.collection.passages.height > 0,
            "relevance": self.relevance is not None,
            "judgments": self.judgments is not None,
        }
        words = {"passages": "no texts of passages", "relevance": "no relevance labels", "judgments": "no judgments"}
        return "" if there[need] else words[need]


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
    """Whether its positional values are pipelines, any number of them; see `inner_pipelines`."""

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
        """Why it can't run, checked before anything does."""
        lacks = [lack for need in self.needs if (lack := context.why_missing(need))]
        return [f"{self.kind} lacks an input: {lack}" for lack in lacks]

    def files(self, context: StepContext) -> tuple[Path, ...]:
        """User files that its results depend on."""
        return ()

    def sources(self, context: StepContext) -> tuple[str, ...]:
        """Models and prompts that its results depend on, each with its version."""
        return ()

    def models(self) -> tuple[str, ...]:
        """Written forms of the language models that it calls; ``""`` is the evaluation's."""
        return ()

    def templates(self, context: StepContext) -> dict[str, Template]:
        """All prompts that it uses."""
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
        """New search texts of the queries, for a step that rewrites."""
        raise NotImplementedError

    def __rshift__(self, other: StepLike) -> Pipeline:
        return _as_pipeline(self) >> other

    def __mod__(self, k: int) -> Pipeline:
        return _as_pipeline(self) % k

    def __str__(self) -> str:
        inside: list[str] = []
        bare = True  # no positional setting was left out
        for each in sorted(fields(self), key=lambda each: bool(each.kw_only)):
            value = getattr(self, each.name)
            if value != each.default:
                inside.append(
                    format_value(value) if bare and not each.kw_only else f"{each.name}={format_value(value)}"
                )
            elif not each.kw_only:
                bare = False
        return self.kind + (f"({', '.join(inside)})" if inside else "")


def _as_pipeline(step: Step) -> Pipeline:
    from ragworth.retrieval.pipeline import Pipeline

    return Pipeline((step,))


def format_value(value: Any) -> str:
    """Format a setting's value in its written form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        signs = (
            sign if sign.isprintable() and sign not in '"\\' else ESCAPES.get(sign, ascii(sign)[1:-1]) for sign in value
        )
        return f'"{"".join(signs)}"'
    return format_number(value) if isinstance(value, float) else str(value)


ESCAPES = {'"': '\\"', "\\": "\\\\"}
"""Escapes of characters that would end a text, or begin an escape."""


def unscored_contexts(rows: Iterable[tuple[str, Sequence[str]]]) -> Contexts:
    """Build contexts without scores from queries with their passages in the order shown."""
    queries: list[str] = []
    passages: list[str] = []
    ranks: list[int] = []
    for query, shown in rows:
        queries += [query] * len(shown)
        passages += shown
        ranks += range(1, len(shown) + 1)
    columns = {"query": queries, "rank": ranks, "passage": passages}
    frame = pl.DataFrame(columns, schema={name: Contexts.schema[name] for name in columns})
    return Contexts.trusted(
        frame.with_columns(pl.lit("run").alias("system"), pl.lit(None, dtype=pl.Float64).alias("score"))
    )


def passages_by_query(contexts: Contexts) -> dict[str, list[str]]:
    """Passages of each query, in the order shown."""
    found: dict[str, list[str]] = {}
    for query, passage in contexts.frame.sort("rank").select("query", "passage").iter_rows():
        found.setdefault(query, []).append(passage)
    return found


def problems_error(problems: Sequence[str], remedy: str = "") -> InputError:
    """Combine all problems into one error."""
    return InputError(problems[0], more=tuple(problems[1:]), remedy=remedy)
