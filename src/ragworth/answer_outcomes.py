"""Outcomes of answers as scores, so that they are compared like metrics.

A three-way grade (1 correct, 0 abstained, −1 wrong) gives three outcomes besides itself:

========= ===================================== =========
outcome   value for a query                     better
========= ===================================== =========
correct   share of its answers that are right   higher
wrong     share that is wrong                   lower
abstained share that declines                   neither
========= ===================================== =========

What people call partially correct (0.5) counts as correct here. An answer without a grade is missing: it is never
counted as wrong.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import format_list
from ragworth.data import OK, Answers, Outcomes, Scores
from ragworth.formats.grades import (
    IN_WORDS,
    MEAN_OF_WORDS,
    THREE_WAY,
    Direction,
    direction_of_name,
    is_verdict,
    plain_grade,
)

UNIT = (0.0, 1.0)
GRADE, HUMAN, PREFERENCE = "grade", "human", "-preference"
OUR_GRADERS = r"^deterministic|\bgrade@"
"""Sources of grades that are known to be three-way."""
OUR_SOURCES = r"^(deterministic|text)( |$)| · "
"""Sources of all grades that graders of ours gave: the name of the grader, or model, prompt and method."""
NOT_GRADED = "not-graded"
"""Status of an answer that has no row in a table of outcomes."""
SEVERAL_ANSWERS = "several-answers"
"""Status of a share that can't be computed, because only the mean grade of several answers is known."""


class OutcomeType(NamedTuple):
    """What a value means, which direction is better, and the lowest and highest value (None if unknown)."""

    title: str
    direction: Direction = 1
    bounds: tuple[float, float] | None = UNIT


OUTCOME_TYPES = {
    "correct": OutcomeType("answers that are correct"),
    "wrong": OutcomeType("answers that are wrong", -1),
    "abstained": OutcomeType("answers that decline", 0),
    GRADE: OutcomeType("grade: 1 correct, 0 abstained, −1 wrong", 1, (-1.0, 1.0)),
    "em": OutcomeType("exact match with an accepted answer"),
    "f1": OutcomeType("token F1 with the closest accepted answer"),
    "containment": OutcomeType("answers that contain an accepted answer"),
    "rouge-l": OutcomeType("ROUGE-L with the closest accepted answer"),
    "ideal": OutcomeType("how much of an ideal answer it holds, 1 to 5", 1, (1.0, 5.0)),
    "coverage": OutcomeType("share of the sub-questions that it answers"),
    "density": OutcomeType("sub-questions answered, by length", 1, None),
    "supported": OutcomeType("sentences that the context supports"),
    "contradicted": OutcomeType("sentences that the context contradicts", -1),
    "unsupported": OutcomeType("sentences that the context says nothing about", -1),
    "citation-recall": OutcomeType("sentences that their citations support"),
    "citation-precision": OutcomeType("citations that support their sentence"),
    "gain": OutcomeType("what the context adds to the log-probability of an accepted answer", 1, None),
    "reliance": OutcomeType("what the context adds to the log-probability of the answer", 0, None),
    "contributing": OutcomeType("passages that contribute to the answer"),
    "harm": OutcomeType("share of the contributions that goes against an accepted answer", -1),
    "opposition": OutcomeType("share of the contributions that goes against the answer", 0),
    "effective": OutcomeType("effective number of passages behind the answer", 0, None),
    "redundancy": OutcomeType("share of the contributions that other passages would make up for", 0),
    "cited-contributing": OutcomeType("cited passages that contribute to the answer"),
    "hops-needed": OutcomeType("searches after which the others add nothing to the answer", 0, None),
    "bertscore": OutcomeType("similarity to an accepted answer, by an encoder", 1, None),
    "utility": OutcomeType("gain over the answer without a context", 1, None),
    **{name: OutcomeType("how sure the model is", 0, None) for name in ("PPL", "KeyPPL", "Entropy", "KeyEntropy")},
}
SHARES = ("correct", "wrong", "abstained")
"""What follows from a three-way grade."""


def outcome_type(name: str) -> OutcomeType | None:
    """What is known of an outcome by its name, also with a grader's or a judge's name before it; None if nothing."""
    while name not in OUTCOME_TYPES:
        _, hyphen, name = name.partition("-")
        if not hyphen:
            return None
    return OUTCOME_TYPES[name]


def outcome_direction(name: str) -> Direction:
    """Which way an outcome is better: as defined here, or else by a known name or a prefix; 0 if nothing says it."""
    known = outcome_type(name)
    return known.direction if known is not None else direction_of_name(name)


def outcome_scores(
    outcomes: Outcomes, said: Mapping[str, pl.DataFrame] | None = None, answers: Answers | None = None
) -> Scores:
    """Outcomes as scores: the aspects as metrics, and the shares that follow from grades.

    ``said``: what graders said (`Results.said`), with the value of ``each`` answer where a query has several. A system
    has a row for each question that it was asked, as far as ``answers`` and its other outcomes tell: one that nobody
    graded is missing, too.
    """
    aspects = outcomes.distinct("aspect")
    tables = [outcomes, *([answers] if answers is not None else [])]
    asked = pl.concat([table.frame.select("system", "query") for table in tables]).unique(maintain_order=True)
    frames = [pl.DataFrame(schema=Scores.schema)]
    for aspect in aspects:
        rows = _with_ungraded(outcomes.having("aspect", [aspect]).frame, asked)
        shares = _shares(rows, aspect, said or {})
        names = _share_names(aspect, aspects)
        frames += [_as_scores(part, names[name]) for name, part in shares.items()]
        frames.append(_as_scores(rows, aspect))
    return Scores.trusted(pl.concat(frames), (*outcomes.notes, *_unknown_directions(aspects)))


def _unknown_directions(aspects: Sequence[str]) -> tuple[str, ...]:
    """A note on outcomes of which nothing says which way they are better."""
    unknown = [name for name in aspects if outcome_type(name) is None and not outcome_direction(name)]
    if not unknown:
        return ()
    few, first = format_list(unknown, 6), unknown[0]
    return (f"nothing says which way {few} is better, so it decides nothing: call it higher_{first} or lower_{first}",)


def _with_ungraded(rows: pl.DataFrame, asked: pl.DataFrame) -> pl.DataFrame:
    """The outcomes of an aspect, and a missing one for each question that its systems were asked besides."""
    keys = ["system", "query"]
    others = asked.join(rows, on="system", how="semi", maintain_order="left").join(
        rows, on=keys, how="anti", maintain_order="left"
    )
    if not others.height:
        return rows
    return pl.concat([rows, others.with_columns(status=pl.lit(NOT_GRADED), source=pl.lit(""))], how="diagonal")


def main_outcome(names: list[str], given: Container[str] = ()) -> str | None:
    """The outcome that says best which system answers better: people's grades, those in the data, then our graders'.

    ``given`` are the outcomes that come with the data (:func:`given_outcomes`). Of these, only a verdict on the whole
    answer (:func:`is_verdict`) goes before ours: ``faithfulness`` doesn't say whether an answer is right. Scores of
    contexts, such as ``context_recall`` of ragas, come last: they don't depend on the answer. An outcome of a file that
    is better if lower, such as ``hallucination``, is the main one if no other is better if higher.
    """
    higher = [name for name in names if outcome_direction(name) == 1]
    lower = [name for name in names if outcome_direction(name) == -1 and outcome_type(name) is None]
    verdicts = [name for name in names if name in given and is_verdict(name)]
    order = ("correct", GRADE, "em", "f1")

    def preference(name: str) -> tuple[bool | int, ...]:
        bare = name.removeprefix(f"{HUMAN}-").removeprefix(f"{GRADE}-")
        known = order.index(bare) if bare in order else len(order) - (name == HUMAN)
        about_contexts = re.search("context|retriev", name.lower()) is not None
        return (
            HUMAN not in name.lower(),
            name not in verdicts,
            known,
            about_contexts,
            "correct" not in plain_grade(name),
        )

    return min(higher or lower, key=preference, default=None)


def given_outcomes(outcomes: Outcomes) -> frozenset[str]:
    """The outcomes that come with the data rather than from a grader of ours, with the shares that follow from them."""
    aspects = {
        str(aspect) for aspect in outcomes.frame.filter(~pl.col("source").str.contains(OUR_SOURCES))["aspect"].unique()
    }
    every = outcomes.distinct("aspect")
    return frozenset(aspects.union(*(_share_names(aspect, every).values() for aspect in aspects)))


def grader_of(outcomes: Outcomes, name: str) -> str:
    """Who says what an outcome says: people, whoever graded the data, a model, or a comparison of texts."""
    if HUMAN in name.lower():
        return "people's grades"
    if name in given_outcomes(outcomes):
        return "the grades in the data"
    every = outcomes.distinct("aspect")
    aspects = [aspect for aspect in every if name in (aspect, *_share_names(aspect, every).values())]
    # Behind the arrow stands the model that wrote the answers.
    grader, _, _ = str(outcomes.having("aspect", aspects).frame["source"][0]).partition(" ← ")
    judge, asked, _ = grader.partition(" · ")
    return f"the judge {judge.partition('@')[0]}" if asked else "text comparison"


def _is_grade(aspect: str) -> bool:
    return aspect == GRADE or aspect.endswith(f"-{GRADE}")


def _says_wrong(rows: pl.DataFrame, aspect: str) -> bool:
    """Whether verdicts are words of which one is "wrong". Yes and no are 1 and 0, whose mean is the share."""
    return is_verdict(aspect) and bool((rows["source"].str.ends_with(IN_WORDS) & (rows["value"] == -1.0)).any())


def _share_names(aspect: str, aspects: Sequence[str]) -> dict[str, str]:
    """What the shares that follow from a grade are called: ``correct`` of ``grade``, ``human-correct`` of ``human``.

    If one of these is an outcome of its own, all of them are ``grade-correct``, …: it is by another grader.
    """
    prefix = aspect.removesuffix(GRADE) if _is_grade(aspect) else f"{aspect}-"
    if {f"{prefix}{name}" for name in SHARES} & set(aspects):
        prefix = f"{aspect}-"
    return {name: f"{prefix}{name}" for name in SHARES}


def _as_scores(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    return rows.select("system", "query", pl.lit(name).alias("metric"), "value", "status")


def _single_values(rows: pl.DataFrame, aspect: str, said: Mapping[str, pl.DataFrame]) -> pl.Series | None:
    """The grades of the single answers behind each row, in the order of the rows; None if they aren't known."""
    keys = ["system", "query"]
    for frame in said.values():
        if {*keys, "aspect", "each"} <= set(frame.columns):
            mine = frame.filter(pl.col("aspect") == aspect).select(*keys, "each")
            if mine.height:
                return rows.select(keys).join(mine, on=keys, how="left", maintain_order="left")["each"]
    return None


def _shares(rows: pl.DataFrame, aspect: str, said: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Shares of correct, wrong and abstained answers; nothing if the outcome isn't a three-way grade.

    Of grades that are only 0 and 1 and aren't known to be three-way, 0 may mean wrong as well as abstained, so only
    the share of correct answers is known. People's grades are known to be three-way if they were words.
    """
    if not (_is_grade(aspect) or HUMAN in aspect.lower() or _says_wrong(rows, aspect)) or aspect.endswith(PREFERENCE):
        return {}
    each = _single_values(rows, aspect, said)
    ours = each is not None or bool(rows["source"].str.contains(OUR_GRADERS).any())
    each = rows.select(pl.concat_list("value")).to_series() if each is None else each
    values = each.explode().drop_nulls().unique()
    mean_of_words = rows["source"].str.ends_with(MEAN_OF_WORDS)
    single = each.filter(~mean_of_words).explode().drop_nulls().unique()
    if not single.is_in(list(THREE_WAY.values())).all() and not (ours and values.is_between(-1.0, 1.0).all()):
        return {}
    names = SHARES if ours else _known_shares(rows, aspect, single)
    exact = (
        each.list.eval(pl.element().is_null() | pl.element().is_in(list(THREE_WAY.values()))).list.all()
        & ~mean_of_words
    )
    known = (rows["status"] == OK) & exact
    status = pl.when((pl.col("status") == OK) & ~exact).then(pl.lit(SEVERAL_ANSWERS)).otherwise("status")
    return {
        name: rows.with_columns(value=pl.when(known).then(each.list.eval(_COUNTED[name]).list.mean()), status=status)
        for name in names
    }


def _known_shares(rows: pl.DataFrame, aspect: str, values: pl.Series) -> tuple[str, ...]:
    """The shares that follow from grades that no grader of ours gave."""
    graded = rows.drop_nulls("value")
    words = graded["source"].str.ends_with(IN_WORDS) | graded["source"].str.ends_with(MEAN_OF_WORDS)
    zero = bool((values == 0.0).any())
    if words.all() and len(words):
        return SHARES if zero else SHARES[:2]
    numbers = graded.filter(~words)["value"]
    binary = bool(numbers.is_in([0.0, 1.0]).all()) and len(values) > 0
    if _is_grade(aspect):
        return SHARES if (values == -1.0).any() else SHARES[:1] if binary else ()
    if binary:  # of numbers alone, the mean is the share
        return SHARES[:1] if words.any() else ()
    return SHARES[:2] if numbers.is_in([1.0, -1.0]).all() and not zero else ()


_COUNTED = {
    name: held.cast(pl.Float64)
    for name, held in zip(SHARES, (pl.element() >= 0.5, pl.element() == -1.0, pl.element() == 0.0), strict=True)
}
