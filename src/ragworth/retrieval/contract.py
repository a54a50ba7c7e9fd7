"""What a step of a pipeline is: the whole contract, on one screen.

A step is a frozen dataclass in one of the files of ``steps/`` and one line in `STEPS`. Its fields made with `setting`
(by name) and `argument` (by place) are its settings, in Python and in the written form. `apply` takes what was
retrieved so far, of one system, or None where nothing stands before it, and gives contexts: any queries in any
order, under any name. What belongs to every step is done around it (`running`): only the queries that were asked
for are kept, in their order, those without a passage are named, and the system gets its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

import polars as pl

from ragworth.collection import Collection
from ragworth.errors import InputError, format_count, format_list, quote_short
from ragworth.metrics.declaration import format_number
from ragworth.tables import OK, Contexts, Judgments
from ragworth.tasks.options import validate_options

if TYPE_CHECKING:
    from ragworth.calls.programs import NoValue, Program
    from ragworth.calls.store import Store
    from ragworth.llm.contract import Card, Model
    from ragworth.retrieval.pipeline import Pipeline, StepLike

T = TypeVar("T")

DEFAULT_DEPTH = 100
"""How many passages a first stage gives where no cut follows it."""

Place = Literal["first", "behind", "either"]
"""Where a step may stand: only at the head of a pipeline, only behind another step, or at both."""

Need = Literal["passages", "query texts", "relevance", "judgments"]
"""What of a setting a step cannot do without."""


class ModelAccess(Protocol):
    """Models that steps ask, through a store, so that nothing is asked twice. ``""`` is the model of the whole."""

    @property
    def prompts(self) -> Path | None:
        """Folder of a user's own prompts."""
        ...

    @property
    def plan(self) -> bool:
        """Whether nothing is asked, and lists that would have to be asked about stay in the order before."""
        ...

    def card(self, model: str) -> Card:
        """Who would be asked. No weights are loaded for it."""
        ...

    def turn(self, system: str) -> None:
        """What is asked from now on is for this system."""
        ...

    def ask(
        self, model: str, work: Callable[[Card], Sequence[Program[T]]], *, step: str, most: int
    ) -> list[T | NoValue | None]:
        """What comes of each piece of work; None where nothing is to be asked, and it would have to be.

        ``most``: calls that all of the work may take together.
        """
        ...


@dataclass(frozen=True, eq=False)
class StepContext:
    """What pipelines run on.

    Attributes
    ----------
    collection: passages to retrieve from.
    queries: query, text; the text is null where it is not known.
    relevance: labels, for contexts that are made from them.
    judgments: of other aspects, such as abstention.
    seed: of everything that is drawn.
    cache: folder for what can be made again (indexes); None keeps nothing.
    folder: where relative paths in pipelines start; None is the current one.
    depth: how many passages a first stage gives.
    asking: models, for steps that ask one; None where there is none to ask.
    told: somebody who is told of long work: of what, how much is done, and of how much.
    brought: texts of passages that systems brought along and the collection does not have, by id.
    """

    collection: Collection
    queries: pl.DataFrame
    relevance: Judgments | None = None
    judgments: Judgments | None = None
    seed: int = 0
    cache: Path | None = None
    folder: Path | None = None
    depth: int = DEFAULT_DEPTH
    asking: ModelAccess | None = None
    told: Callable[[str, int, int], None] | None = None
    brought: dict[str, str] = field(default_factory=dict, repr=False)

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
        told: Callable[[str, int, int], None] | None = None,
    ) -> StepContext:
        """The setting of a collection: its queries, or those named, and its own labels unless others are given.

        Steps that ask a model ask ``model`` (the embedded one by default) unless they name another; what it says is
        kept in ``store``. ``prompts`` is a folder of own prompts.
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
            told,
        )

    @cached_property
    def ids(self) -> list[str]:
        """The queries' ids."""
        return self.queries["query"].to_list()

    @cached_property
    def passages(self) -> pl.Series:
        """The passages' ids in the order of ids, so that nothing depends on the order of a file."""
        return self.collection.passages["passage"].sort()

    @cached_property
    def known(self) -> frozenset[str]:
        """The passages' ids, to look them up."""
        return frozenset(self.passages)

    @property
    def texts(self) -> Collection:
        """The collection, with the texts of passages that systems brought along so far."""
        more = {"passage": list(self.brought), "text": list(self.brought.values())}
        frame = pl.DataFrame(more, schema=dict.fromkeys(more, pl.String))
        return replace(self.collection, passages=pl.concat([self.collection.passages, frame]))

    @cached_property
    def labels(self) -> dict[str, dict[str, float]]:
        """Relevance by query and passage, where it is known."""
        found: dict[str, dict[str, float]] = {}
        if self.relevance is not None:
            judged = self.relevance.of("relevance").filter(pl.col("status") == OK)
            for query, passage, value in judged.select("query", "passage", "value").iter_rows():
                found.setdefault(query, {})[passage] = value
        return found

    def lacking(self, need: Need) -> str:
        """Why something that is needed cannot be had, in words; nothing where it can."""
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


def argument(default: T, help: str, *, low: float | None = None, high: float | None = None) -> T:
    """A setting that is given by its place: ``run("file")``. Otherwise like `ragworth.tasks.options.option`."""
    about = {"help": help, "choices": (), "low": low, "high": high}
    made: Any = field(default=default, metadata=about)
    return made  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Step:
    """One step with its settings. Steps with equal settings are equal; ``str()`` is the written form."""

    kind: ClassVar[str]
    title: ClassVar[str]
    """What it gives, in one line."""
    place: ClassVar[Place]
    needs: ClassVar[tuple[Need, ...]] = ()
    bounded: ClassVar[bool] = True
    """Whether it gives, standing first, as many passages as `Setting.depth` says; else it has a depth of its own.

    Of one that is bounded, the first k of what it gives must not depend on the depth: it runs once for several.
    """

    holds: ClassVar[bool] = False
    """Whether its values by place are pipelines, as many as one likes; see `inside`."""

    scored: ClassVar[bool] = True
    """Whether its order comes from scores, which it gives with the passages."""

    def __post_init__(self) -> None:
        validate_options(self, self.kind)
        self.check()

    def check(self) -> None:
        """Refuse settings that do not go together."""

    def problems(self, setting: StepContext) -> list[str]:
        """Why it cannot run, in words, before anything does."""
        lacks = [lack for need in self.needs if (lack := setting.lacking(need))]
        return [f"{self.kind} needs what is not there: {lack}" for lack in lacks]

    def files(self, setting: StepContext) -> tuple[Path, ...]:
        """Files of the user's that what it gives depends on."""
        return ()

    def sources(self, setting: StepContext) -> tuple[str, ...]:
        """Models and prompts that what it gives depends on, each with its version."""
        return ()

    @property
    def inside(self) -> tuple[Pipeline, ...]:
        """Pipelines that it puts together: they run before it, and then `join` is called and not `apply`."""
        return ()

    @property
    def contained(self) -> tuple[Pipeline, ...]:
        """All pipelines in it: those that run before it, and those that it runs itself."""
        return self.inside

    def join(self, found: Sequence[Contexts], setting: StepContext) -> Contexts:
        """Contexts out of what the pipelines inside of it gave, in their order."""
        raise NotImplementedError

    def apply(self, before: Contexts | None, setting: StepContext) -> Contexts:
        """Contexts out of those before it; `before` is None exactly where it stands first."""
        raise NotImplementedError

    def __rshift__(self, other: StepLike) -> Pipeline:
        return _as_pipeline(self) >> other

    def __mod__(self, k: int) -> Pipeline:
        return _as_pipeline(self) % k

    def __str__(self) -> str:
        inside: list[str] = []
        bare = True  # no setting that goes by its place was left out
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
    """The value of a setting as it is written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        signs = (
            sign if sign.isprintable() and sign not in '"\\' else ESCAPES.get(sign, ascii(sign)[1:-1]) for sign in value
        )
        return f'"{"".join(signs)}"'
    return format_number(value) if isinstance(value, float) else str(value)


ESCAPES = {'"': '\\"', "\\": "\\\\"}
"""How signs are written that would end a text, or begin an escape."""


def unscored_contexts(rows: Iterable[tuple[str, Sequence[str]]]) -> Contexts:
    """Contexts out of queries, each with its passages in the order shown, without scores."""
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
    """The passages of each query, in the order shown."""
    found: dict[str, list[str]] = {}
    for query, passage in contexts.frame.sort("rank").select("query", "passage").iter_rows():
        found.setdefault(query, []).append(passage)
    return found


def problems_error(problems: Sequence[str], remedy: str = "") -> InputError:
    """One error for all problems."""
    return InputError(problems[0], more=tuple(problems[1:]), remedy=remedy)
