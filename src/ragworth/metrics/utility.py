"""Utility and distraction of passages for the model that reads them, and UDCG.

The utility of a passage is u = R·(1 − p_abstain), where R is +1 for a relevant passage and −1 for any other, and
p_abstain is the probability that the model declines to answer when shown only that passage. A passage not judged
relevant counts as irrelevant. A context with a passage that lacks an abstention probability has no value.

A passage is a distractor if it is irrelevant and the model answers from it all the same. If the same model says which
passages are irrelevant, it calls those irrelevant that it wouldn't answer from, so it never seems to be distracted: the
result would be 0 whatever the passages are. A judge that was shown the accepted answers doesn't go by its own opinion.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from ragworth.core.errors import TableError, format_count, format_list
from ragworth.data import OK, Judgments, Outcomes
from ragworth.data.coercion import Data
from ragworth.metrics.blocks import Block, Bools, Floats
from ragworth.metrics.classical import REL, ratio
from ragworth.metrics.declaration import FileParameter, MetricResult, Need, Parameter, declare

WEAK, HARD = 0.2, 0.8
"""Distracting effect below which an irrelevant passage is a weak distractor, and above which it is a hard one."""


def utilities(judgments: Judgments | Data, rel: float = 1.0, *, weak: float = WEAK, hard: float = HARD) -> pl.DataFrame:
    """Return every passage that has an abstention probability, with its utility and class.

    u = R·(1 − p_abstain), where R is +1 if relevance is at least ``rel`` and −1 otherwise; an unjudged passage counts
    as irrelevant, as in UDCG. The distracting effect of an irrelevant passage is 1 − p_abstain. Classes are
    ``relevant``, ``weak-distractor`` (effect below ``weak``), ``hard-distractor`` (above ``hard``) and ``distractor``.

    Returns query, passage, relevance, abstention, utility, distraction, class and status. If either judgment failed,
    the utility is missing, and the status gives the reason. If the model that declines or answers judged relevance
    itself, utility and class would follow from its own opinion alone; they are missing too (``reader-judged``).
    """
    table = judgments if isinstance(judgments, Judgments) else Judgments(judgments)
    asked, judged = table.of("abstention"), table.of("relevance")
    for name, part in (("abstention", asked), ("relevance", judged)):
        if not part.height:
            raise TableError(
                f"there are no judgments of {name}",
                expected="judgments of relevance and abstention",
                remedy=f"create them with ragworth annotate {name}",
            )
    keys = ["query", "passage"]
    both = asked.select(*keys, pl.col("value").alias("abstention"), "status").join(
        judged.select(*keys, pl.col("value").alias("relevance"), pl.col("status").alias("_failed")),
        on=keys,
        how="left",
        maintain_order="left",
    )
    own = reader_judged(table).with_columns(_own=pl.lit(True)).unique()
    both = both.join(own, on=keys, how="left", maintain_order="left")
    sure = 1 - pl.col("abstention")
    relevant = (pl.col("relevance") >= rel).fill_null(False)
    known = pl.col("status") == OK
    effect = pl.when(known & ~relevant).then(sure)
    return (
        both.with_columns(
            pl.when((pl.col("status") == OK) & (pl.col("_failed").fill_null(OK) != OK))
            .then(pl.col("_failed"))
            .when((pl.col("status") == OK) & pl.col("_own").fill_null(False))
            .then(pl.lit(READER_JUDGED))
            .otherwise(pl.col("status"))
            .alias("status")
        )
        .with_columns(
            pl.when(known & relevant).then(sure).when(known).then(pl.col("abstention") - 1).alias("utility"),
            effect.alias("distraction"),
        )
        .with_columns(
            pl.when(~known)
            .then(None)
            .when(relevant)
            .then(pl.lit("relevant"))
            .when(pl.col("distraction").round(12) < weak)
            .then(pl.lit("weak-distractor"))
            .when(pl.col("distraction").round(12) > hard)
            .then(pl.lit("hard-distractor"))
            .otherwise(pl.lit("distractor"))
            .alias("class")
        )
        .select(*keys, "relevance", "abstention", "utility", "distraction", "class", "status")
    )


UNLABELLED_SOURCES = r" · |^containment "
"""Sources of relevance by a model and its prompt, or by a match with accepted answers."""

READER_JUDGED = "reader-judged"
"""Status of what can't be measured because the reader judged relevance itself."""

READER_REASON = "can't be measured, because the model that reads the passages also judged their relevance"

ANSWERS_SHOWN = "accepted answers shown"
"""Part of the source of a judgment whose judge saw the accepted answers."""

_MODEL = r"^(.+?) · "
"""The model in the source of a judgment that ragworth made."""

_NAMED_P = r"((?:calibrated|raw) p\b.*)$"
"""The p of a model that has two, in the source of a judgment that ragworth made."""


def reader_judged(judgments: Judgments | None) -> pl.DataFrame:
    """query, passage: passages whose relevance was judged by the model whose abstention they have."""
    keys = ["query", "passage"]
    none = pl.DataFrame(schema=dict.fromkeys(keys, pl.String))
    if judgments is None:
        return none
    relevance, readers = _judges(judgments, "relevance"), _judges(judgments, "abstention")
    shared = set(relevance["model"]) & set(readers["model"])
    if not shared:
        return none
    mine = _of_models(judgments, "relevance", relevance, shared)
    return mine.join(_of_models(judgments, "abstention", readers, shared), on=[*keys, "model"], how="semi").select(keys)


def abstention_notes(values: Judgments | Outcomes | None) -> list[str]:
    """Say which p of passages or contexts is read, if the reader has a calibrated one besides its own."""
    if values is None:
        return []
    judged = values.having("aspect", ["abstention"]).frame.filter(pl.col("status") == OK)
    unit = "passage" if isinstance(values, Judgments) else "context"
    named = judged["source"].str.extract(_NAMED_P).drop_nulls().value_counts()
    words = [f"the {name} of {format_count(count, unit)}" for name, count in named.sort("source").iter_rows()]
    return [f"p_abstain is {format_list(words)}"] if words else []


def _judges(judgments: Judgments, aspect: str) -> pl.DataFrame:
    """source, model: the models that judged an aspect, leaving out judges that saw the accepted answers."""
    sources = judgments.of(aspect).select("source").unique(maintain_order=True)
    own = sources.filter(~pl.col("source").str.contains(ANSWERS_SHOWN, literal=True))
    return own.with_columns(model=pl.col("source").str.extract(_MODEL)).drop_nulls("model")


def _of_models(judgments: Judgments, aspect: str, judges: pl.DataFrame, models: set[str]) -> pl.DataFrame:
    rows = judgments.having("aspect", [aspect]).frame.select("query", "passage", "source")
    return rows.join(judges.filter(pl.col("model").is_in(list(models))), on="source", maintain_order="left")


PAPER = "Trappolini, Cuconasu et al.: Redefining Retrieval Evaluation in the Era of LLMs"
NEEDS: tuple[Need, ...] = ("relevance", "abstention")


class UtilitySums(NamedTuple):
    """Sums over the first k passages of each context, and where they are missing."""

    positive: Floats
    negative: Floats
    shown: Floats
    unknown: Bools

    def result(self, values: Floats) -> MetricResult:
        return MetricResult(values, ((self.unknown, "unjudged"),))


def answer_confidence(block: Block, k: float) -> tuple[Floats, Bools]:
    """1 − p_abstain of each passage up to the cutoff (0 beyond the end), and contexts that lack one."""
    assert block.abstention is not None
    filled = block.filled(k)
    sure = 1 - block.abstention[:, : block.upto(k)]
    unknown = np.asarray((np.isnan(sure) & filled).any(axis=1))
    return np.where(filled, np.nan_to_num(sure), 0.0), unknown


def utility_sums(block: Block, k: float, rel: float) -> UtilitySums:
    """Sum the helpful and harmful utility of each context."""
    sure, unknown = answer_confidence(block, k)
    relevant = block.relevance[:, : block.upto(k)] >= rel
    return UtilitySums(
        np.where(relevant, sure, 0).sum(axis=1), -np.where(relevant, 0, sure).sum(axis=1), block.within(k), unknown
    )


class UdcgWeights(NamedTuple):
    """Weights of help and harm at each position in UDCG_θ.

    ``binary``: a relevant passage counts 1, whatever its utility.
    ``trained_on``: digests of the queries that they were learned from.
    """

    helpful: tuple[float, ...]
    harmful: tuple[float, ...]
    binary: bool = False
    trained_on: frozenset[str] = frozenset()


def weighted_utility(block: Block, k: float, rel: float, weights: UdcgWeights) -> MetricResult:
    """Σα_i·u⁺_i + Σβ_i·u⁻_i of each context; empty positions add nothing."""
    sure, unknown = answer_confidence(block, k)
    relevant = block.relevance[:, : block.upto(k)] >= rel
    help_ = relevant.astype(np.float64) if weights.binary else np.where(relevant, sure, 0.0)
    harm = np.where(relevant, 0.0, -sure)
    alpha, beta = (np.array(each)[: relevant.shape[1]] for each in (weights.helpful, weights.harmful))
    return MetricResult(help_ @ alpha + harm @ beta, ((unknown, "unjudged"),))


def sigmoid(x: Floats | float) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.asarray(x, dtype=np.float64))))


def _udcg_bounds(gamma: float, raw: bool, rel: float, theta: object = None) -> tuple[float, float]:
    """Bounds of UDCG; those of learned weights are in their file."""
    if theta is not None:
        return (-np.inf, np.inf) if raw else (0.0, 1.0)
    return (-gamma, 1.0) if raw else (float(sigmoid(-gamma)), float(sigmoid(1.0)))


@declare(
    name="UDCG",
    default=1,
    title="utility and distraction-aware cumulative gain",
    formula="UDCG(γ)@k = σ(Σu⁺/K + γ·Σu⁻/K), u = R·(1 − p_abstain), K = passages shown up to k",
    needs=NEEDS,
    range="σ(−γ) to σ(1); raw: −γ to 1",
    bounds=lambda values, _: _udcg_bounds(**values),
    paper=PAPER,
    parameters=(
        Parameter("gamma", 1 / 3, "weight of distraction against help; 0 ignores irrelevant passages", low=0, high=1),
        Parameter("raw", False, "omit σ"),
        REL,
    ),
    order_free=True,
    irrelevant_never_raises=False,
    whole_query=False,
    files=(FileParameter("theta", doc="weights of the positions, written by ragworth train udcg"),),
)
def udcg(block: Block, k: float, gamma: float, raw: bool, rel: float, theta: UdcgWeights | None = None) -> MetricResult:
    """How much the passages shown help the model to answer, less how much they mislead it.

    **Choice**: K is the number of passages actually shown; an empty context scores σ(0) = 0.5 (raw: 0).
    The order of the passages doesn't matter. Adding a harmless passage can raise the score, because it lowers the
    share of harmful ones. A passage without a relevance label counts as irrelevant; a note says how many there are.

    ``UDCG(theta=FILE)@k`` is UDCG_θ = σ(Σα_i·u⁺_i + Σβ_i·u⁻_i): each position has a weight for help and one for harm,
    learned from outcomes and saved in FILE by ``ragworth train udcg``. Its k must be the one it was learned for. Here
    the order of the passages matters, gamma is not used, the range is 0 to 1, and empty positions add nothing.
    """
    if theta is not None:
        found = weighted_utility(block, k, rel, theta)
        return found if raw else found._replace(values=sigmoid(found.values))
    u = utility_sums(block, k, rel)
    inside = ratio(u.positive, u.shown) + gamma * ratio(u.negative, u.shown)
    return u.result(inside if raw else sigmoid(inside))


@declare(
    name="Utility",
    title="mean utility of the passages shown",
    formula="Utility@k = Σu / K",
    needs=NEEDS,
    range="−1 to 1",
    bounds=lambda values, shown: (-1.0, 1.0),
    paper=PAPER,
    parameters=(REL,),
    order_free=True,
    irrelevant_never_raises=False,
    whole_query=False,
)
def mean_utility(block: Block, k: float, rel: float) -> MetricResult:
    """Mean of R·(1 − p_abstain) over the passages shown: 1 if all help, −1 if all mislead. 0 for an empty context."""
    u = utility_sums(block, k, rel)
    return u.result(ratio(u.positive + u.negative, u.shown))


@declare(
    name="Distraction",
    default=2,
    title="share of the passages shown that mislead the model",
    formula="Distraction@k = (irrelevant passages with 1 − p_abstain > threshold) / K",
    needs=NEEDS,
    range="0 to 1",
    bounds=lambda values, shown: (0.0, 1.0),
    paper=PAPER,
    parameters=(
        Parameter(
            "threshold", 0.8, "distracting effect above which a passage misleads (0.8: hard distractors)", low=0, high=1
        ),
        REL,
    ),
    higher_is_better=False,
    order_free=True,
    irrelevant_never_raises=False,
    whole_query=False,
    reader_may_judge=False,
)
def distraction(block: Block, k: float, threshold: float, rel: float) -> MetricResult:
    """Share of hard distractors: irrelevant passages from which the model would answer anyway.

    The distracting effect of an irrelevant passage is 1 − p_abstain. An empty context scores 0. If the reader judged
    the relevance of a passage shown itself, there is no value (status ``reader-judged``): a model that finds a passage
    irrelevant wouldn't answer from it, so the share would be 0 whatever is shown.
    """
    sure, unknown = answer_confidence(block, k)
    misleading = (sure > threshold) & ~(block.relevance[:, : block.upto(k)] >= rel)
    share = ratio(misleading.sum(axis=1).astype(np.float64), block.within(k))
    return MetricResult(share, ((unknown, "unjudged"),))
