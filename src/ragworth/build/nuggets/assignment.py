"""``nuggets``: which nuggets an answer supports, by the probabilities of the labels, and its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from ragworth.build.nuggets.files import ASSIGNMENTS, AssignedAnswer, Nugget, NuggetList
from ragworth.calls.programs import NoValue, Program, combine_programs
from ragworth.core.errors import InputError
from ragworth.judging.contract import option
from ragworth.judging.findings import AspectValues, reject_cut_passage
from ragworth.judging.judge import Grader, JudgingResult, LabelJudge
from ragworth.judging.labels import LabelResult, LabelScale
from ragworth.judging.text_lookup import Answer

SCORES = (
    "strict_vital_score",
    "vital_score",
    "strict_all_score",
    "all_score",
    "strict_weighted_score",
    "weighted_score",
)
CREDIT = dict(zip(ASSIGNMENTS, (1.0, 0.5, 0.0), strict=True))
OKAY_WEIGHT = 0.5
NO_NUGGETS, NO_VITAL, UNASSIGNED, NO_IMPORTANCE = "no-nuggets", "no-vital-nuggets", "unassigned", "no-importance"


def nugget_scores(nuggets: Sequence[Nugget], assignments: Sequence[str]) -> Mapping[str, float | NoValue]:
    """The six scores of TREC 2024 RAG. Support counts 1, partial support 0.5, or 0 in the strict variants.

    ``all`` is the mean over all nuggets, ``vital`` over the vital ones, and ``weighted`` over all with weight 1 for
    vital and 0.5 for okay ones. A failed assignment or unknown importance leaves the scores that depend on it without
    a value (nuggetizer counts them as no support and as okay). No nuggets, or no vital ones, is no value either
    (nuggetizer: 0).
    """
    groups = {
        "vital": [(nugget, said, 1.0) for nugget, said in zip(nuggets, assignments, strict=True) if _vital(nugget)],
        "all": [(nugget, said, 1.0) for nugget, said in zip(nuggets, assignments, strict=True)],
        "weighted": [
            (nugget, said, 1.0 if _vital(nugget) else OKAY_WEIGHT)
            for nugget, said in zip(nuggets, assignments, strict=True)
        ],
    }
    unknown = sum(not nugget.importance for nugget in nuggets)
    scores: dict[str, float | NoValue] = {}
    for name in SCORES:
        strict, kind = name.startswith("strict_"), name.removeprefix("strict_").removesuffix("_score")
        if unknown and kind != "all":
            scores[name] = NoValue(NO_IMPORTANCE, f"the importance of {unknown:,} nuggets is unknown")
        else:
            scores[name] = _mean([(said, weight) for _, said, weight in groups[kind]], strict, bool(nuggets))
    return scores


def _vital(nugget: Nugget) -> bool:
    return nugget.importance == "vital"


def _mean(rows: Sequence[tuple[str, float]], strict: bool, some: bool) -> float | NoValue:
    if not rows:
        return NoValue(NO_VITAL if some else NO_NUGGETS, "there is no nugget to score by")
    failed = sum(not said for said, _ in rows)
    if failed:
        return NoValue(UNASSIGNED, f"{failed:,} of {len(rows):,} assignments failed")
    credit = [CREDIT[said] * weight for said, weight in rows if not strict or CREDIT[said] == 1]
    return sum(credit) / sum(weight for _, weight in rows)


SUPPORT = LabelScale(("support", "partial", "none"), (1.0, 0.5, 0.0))
"""How far a text supports a nugget, as a model writes it."""


@dataclass(frozen=True)
class NuggetGrader(LabelJudge[Answer], Grader):
    """Which nuggets an answer supports, fully, in part or not, and the six scores of TREC 2024 RAG.

    The assignment is the likeliest label. One that fails is missing, with its reason, and leaves the scores that depend
    on it without a value; it never counts as no support.
    """

    lists: Sequence[NuggetList] = field(default=(), kw_only=True)
    citations: bool = option(False, "leave citations such as [2] in the answers")
    keep_cut: bool = option(False, "keep values of answers that the judge could not see whole")

    kind: ClassVar[str] = "nuggets"
    title: ClassVar[str] = "share of the nuggets that it supports"
    aspects: ClassVar[tuple[str, ...]] = SCORES
    single: ClassVar[bool] = False
    prompts: ClassVar[tuple[str, ...]] = ("nugget-support",)
    slots: ClassVar[tuple[str, ...]] = ("query", "answer", "nugget")
    scales: ClassVar[Mapping[str, LabelScale]] = {"nugget-support": SUPPORT}
    details: ClassVar[Mapping[str, Any]] = {
        "nuggets": pl.List(pl.String),
        "importances": pl.List(pl.String),
        "assignments": pl.List(pl.String),
        "p_support": pl.List(pl.Float64),
        "failures": pl.List(pl.String),
        "mass": pl.Float64,
    }

    def check(self) -> None:
        super().check()
        if not self.lists:
            raise InputError("there are no nuggets", expected="a list of nuggets for each query")

    @cached_property
    def _nuggets(self) -> Mapping[str, tuple[Nugget, ...]]:
        return {each.query: each.nuggets for each in self.lists}

    def program(self, item: Answer) -> Program[AspectValues]:
        text, query = self.text(item), self.texts.known_query(item.query) or self._query(item.query)
        nuggets = self._nuggets.get(item.query, ())
        if not nuggets:
            raise NoValue(NO_NUGGETS, f"the query {item.query!r} has no nuggets")
        found = yield from combine_programs([self._assign(query, text, nugget) for nugget in nuggets])
        assignments = [_assignment(one) for one in found]
        detail = {
            "nuggets": [nugget.text for nugget in nuggets],
            "importances": [nugget.importance for nugget in nuggets],
            "assignments": assignments,
            "p_support": [_p_support(one) for one in found],
            "failures": [one.status if isinstance(one, NoValue) else "" for one in found],
            "mass": min(
                (one.mass for one in found if not isinstance(one, NoValue) and one.mass is not None), default=None
            ),
        }
        return AspectValues(nugget_scores(nuggets, assignments), detail)

    def _query(self, query: str) -> str:
        return next((each.text for each in self.lists if each.query == query), "")

    def _assign(self, query: str, text: str, nugget: Nugget) -> Program[LabelResult]:
        found = yield from self.label(query=query, answer=text, nugget=nugget.text)
        reject_cut_passage(found.usage, self.keep_cut, found.raw)
        return found

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        """Warn if every assignment is the same."""
        said = frame["assignments"].explode().drop_nulls().unique().to_list()
        return [f"all assignments are the same: {said[0]}"] if len(said) == 1 and frame.height > len(SCORES) else []


def assigned_answers(grader: NuggetGrader, result: JudgingResult) -> list[AssignedAnswer]:
    """The answers with their assignments, for `write_assignments`. Answers that couldn't be graded are left out."""
    rows = result.answers.filter((pl.col("aspect") == SCORES[0]) & pl.col("assignments").is_not_null())
    texts = {(each.system, each.query, each.repeat): each.text or "" for each in grader.book.answers}
    queries = {each.query: each.text for each in grader.lists}
    return [
        AssignedAnswer(
            row["system"],
            row["query"],
            queries.get(row["query"], ""),
            texts[row["system"], row["query"], row["repeat"]],
            tuple(Nugget(*pair) for pair in zip(row["nuggets"], row["importances"], strict=True)),
            tuple(row["assignments"]),
        )
        for row in rows.iter_rows(named=True)
    ]


def _assignment(found: LabelResult | NoValue) -> str:
    return "" if isinstance(found, NoValue) else ASSIGNMENTS[SUPPORT.labels.index(found.label)]


def _p_support(found: LabelResult | NoValue) -> float | None:
    if isinstance(found, NoValue) or found.probabilities is None:
        return None
    return found.probabilities[0] / (found.mass or 1.0)
