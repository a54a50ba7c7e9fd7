"""Contexts with what metrics say of them and what came of them: the rows that are learned from, and their folds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.comparison import higher_is_better
from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data import OK, Contexts, Judgments, Outcomes, Ratings
from ragworth.metrics import engine
from ragworth.metrics.declaration import Metric
from ragworth.metrics.ground_truth import Tokens
from ragworth.results import Results
from ragworth.scoring import passage_tokens

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.str_]

SIGNIFICANT_DIGITS = 12
"""After the point; what differs only beyond them is equal."""

NO_OUTCOME = "no outcome"
NO_CONTEXT = "an outcome without a context"


@dataclass(frozen=True)
class FittingTables:
    """What is known of one collection and one model: a context is one (system, query).

    ``about`` says where the tables come from; JSON can hold it.
    """

    contexts: Contexts
    judgments: Judgments | None
    outcomes: Outcomes | None
    ratings: Ratings | None = None
    tokens: Tokens | None = None
    name: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Results, name: str = "") -> FittingTables:
        """The tables of an evaluation or of a study's case."""
        texts, facts = results.collection, results.manifest
        models = facts.get("models")
        known = models if isinstance(models, list) else []
        return cls(
            results.contexts,
            results.judgments,
            results.outcomes,
            results.ratings,
            passage_tokens(texts),
            name,
            {
                "title": str(facts.get("title") or name),
                "models": [str(model.get("name", "")) for model in known if isinstance(model, Mapping)],
            },
        )


@dataclass(frozen=True, eq=False)
class FittingRows:
    """One row for each context that has an outcome and a value of every metric.

    Attributes
    ----------
    values: (rows × metrics).
    outcome: the higher, the better.
    query: the number of each row's query.
    ids: of the queries, by their number.
    left_out: contexts that are no rows, by reason.

    Rows of one query may be compared with each other.
    """

    values: Floats
    outcome: Floats
    query: Ints
    ids: Texts
    left_out: Mapping[str, int]

    @property
    def queries(self) -> int:
        return len(self.ids)

    def where(self, which: Bools) -> FittingRows:
        """Some of the rows; queries are numbered anew."""
        names, query = np.unique(self.query[which], return_inverse=True)
        return FittingRows(self.values[which], self.outcome[which], query.reshape(-1), self.ids[names], self.left_out)

    @staticmethod
    def together(parts: Sequence[FittingRows]) -> FittingRows:
        """Rows of several tables; a query in two of them is an error: it would be learned from while held out."""
        counts = Counter(str(query) for part in parts for query in part.ids)
        if shared := [query for query, n in counts.items() if n > 1]:
            raise InputError(
                f"{format_count(len(shared), 'query is', 'queries are')} in several cases: {quote_short(shared[0])}",
                remedy="learn from one of the cases; ragworth study alignment tests the weights on another",
            )
        starts = np.cumsum([0, *(part.queries for part in parts)])
        left = Counter[str]()
        for part in parts:
            left.update(part.left_out)
        return FittingRows(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.outcome for part in parts]),
            np.concatenate([part.query + start for part, start in zip(parts, starts, strict=False)]),
            np.concatenate([part.ids for part in parts]),
            dict(left),
        )


def build_fitting_rows(tables: FittingTables, metrics: Sequence[Metric], outcome: str) -> FittingRows:
    """What metrics say of each context that has an outcome of this aspect.

    A context without an outcome, or of which a metric has no value, is left out and counted.
    """
    came = outcomes_of_aspect(tables, outcome)
    scores = engine.score_tables(
        tables.contexts, tables.judgments, list(metrics), ratings=tables.ratings, tokens=tables.tokens, complete=False
    )
    keys = ["system", "query"]
    values = pl.when(pl.col("status") == OK).then(pl.col("value"))
    wide = scores.frame.group_by(keys, maintain_order=True).agg(
        values.alias("values"),
        pl.col("status").filter(pl.col("status") != OK).first().alias("why"),
    )
    shown = pl.concat(
        [
            tables.contexts.frame.select(keys).unique(maintain_order=True),
            pl.DataFrame(sorted(tables.contexts.empty), schema=dict.fromkeys(keys, pl.String), orient="row"),
        ]
    ).unique(maintain_order=True)
    both = shown.join(came, on=keys, how="left", maintain_order="left").join(wide, on=keys, how="left")
    both = both.with_columns(
        pl.when(pl.col("outcome").is_null())
        .then(pl.lit(NO_OUTCOME))
        .when(pl.col("values").is_null())
        .then(pl.lit("unjudged"))
        .otherwise(pl.col("why"))
        .alias("why")
    )
    left = dict(both.filter(pl.col("why").is_not_null()).group_by("why").len().sort("why").iter_rows())
    strange = came.join(shown, on=keys, how="anti").height
    # In an order that does not depend on that of the tables' rows, so that what is learned does not either.
    good = both.filter(pl.col("why").is_null()).sort("query", "system")
    names, query = np.unique(np.array(good["query"].to_list(), dtype=np.str_), return_inverse=True)
    table = round_to_digits(np.array(good["values"].to_list(), dtype=np.float64).reshape(good.height, len(metrics)))
    found = good["outcome"].to_numpy().astype(np.float64)
    return FittingRows(table, found, query.reshape(-1), names, left | ({NO_CONTEXT: strange} if strange else {}))


def round_to_digits(values: Floats) -> Floats:
    """Values without what rounding makes of sums: the same numbers in another order are equal, and share their rank."""
    return np.round(values, SIGNIFICANT_DIGITS)


def outcomes_of_aspect(tables: FittingTables, outcome: str) -> pl.DataFrame:
    """system, query and outcome of the contexts that have one of this aspect; none at all is an error.

    Outcomes of which lower is better change their sign.
    """
    where = f"{tables.name}: " if tables.name else ""
    frame = tables.outcomes.frame if tables.outcomes is not None else pl.DataFrame(schema=Outcomes.schema)
    mine = frame.filter(pl.col("aspect") == outcome)
    if not mine.height:
        aspects = frame["aspect"].unique(maintain_order=True).to_list()
        raise InputError(
            f"{where}there are no outcomes of {outcome!r}",
            expected=f"one of {format_list(aspects, 10)}" if aspects else "answers that were graded",
            remedy="name the outcome (--outcome)" if aspects else "have answers graded: ragworth evaluate, or a study",
        )
    good = mine.filter(pl.col("status") == OK)
    if not good.height:
        raise InputError(
            f"{where}not one of {format_count(mine.height, 'outcome')} of {outcome!r} has a value "
            f"({mine['status'][0]})",
            remedy="grade the answers again",
        )
    up = 1.0 if higher_is_better(outcome) else -1.0
    return good.select("system", "query", (up * pl.col("value")).alias("outcome"))


def describe_sources(tables: Sequence[FittingTables], outcome: str) -> dict[str, Any]:
    """Where what is learned comes from, in words that JSON can hold: judgments' sources name model and estimator."""
    found: dict[str, Any] = {
        "titles": [str(each.about.get("title") or each.name) for each in tables],
        "models": sorted({str(model) for each in tables for model in each.about.get("models", ())}),
        "outcome": outcome,
    }
    for aspect in ("abstention", "relevance"):
        judged = [each.judgments.of(aspect)["source"] for each in tables if each.judgments is not None]
        found[aspect] = sorted({source for column in judged for source in column.unique()})
    graded = [each.outcomes.frame for each in tables if each.outcomes is not None]
    found["graded"] = sorted(
        {source for frame in graded for source in frame.filter(pl.col("aspect") == outcome)["source"].unique()}
    )
    return found


def column_means(each: Floats) -> Floats:
    """The mean of each column's values that are there; NaN where none is."""
    known = ~np.isnan(each)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, each, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def assign_folds(query: Ints, folds: int, seed: int) -> Ints:
    """The part, 0 to ``folds`` − 1, of each row; ``query`` has the number of its query.

    Parts have equally many queries, or one more than others. Contexts of one query share its passages and its
    difficulty: if they were parted, what is learned would be tested on what it was learned from.
    """
    names, place = np.unique(query, return_inverse=True)
    part = np.random.default_rng(seed).permutation(len(names)) % folds
    return np.asarray(part[place.reshape(-1)], dtype=np.int64)
