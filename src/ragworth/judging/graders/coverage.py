"""``coverage``: which sub-questions an answer answers, and with how little text.

Paper: Ju, Verberne, de Rijke and Yates, Controlled Retrieval-augmented Context Evaluation for Long-form RAG (CRUX).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program, combine_programs
from ragworth.core.errors import InputError, format_count, give_input
from ragworth.data import OK
from ragworth.data.tokens import TokenCounter
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import AspectValues, judgment_warnings, reject_cut_passage
from ragworth.judging.judge import Grader, LabelJudge
from ragworth.judging.labels import RATED_ANSWERABILITY_NOTE, RATING_SCALE, LabelResult, LabelScale, all_found
from ragworth.judging.oracle import NO_ANSWERABLE, UNJUDGED, OracleSelector
from ragworth.judging.text_lookup import NO_SUBQUESTIONS, Answer, Subquestion

NO_TOKENS = "no-tokens"
NO_REQUIRED = "no-required-subset"


@dataclass(frozen=True)
class CoverageGrader(LabelJudge[Answer], Grader):
    """Share of the answerable sub-questions that the answer answers, and its density against the required subset.

    Citations such as [2], [doc3] or (2) are removed first. The model rates the answer, 0 to 5, for each sub-question,
    as it rates passages; η and above is answered. The answerable sub-questions are those that some rated passage
    answers; where a query has no ratings, all of them are taken, and the notes say so. density = ((coverage / tokens) /
    (1 / tokens of the required subset))^w, which may exceed 1; it needs the ratings. One rating that failed leaves no
    value: it may have been the one that matters. ``ratings`` has them in the order of ``subquestions``, and ``mass`` is
    the least probability that the six hold together in any of them. The notes name the unit of the tokens.
    """

    citations: bool = option(
        False, "leave citations such as [2] or (2) in the answers: rate them and count them as tokens"
    )
    eta: float = option(3.0, "lowest rating that counts as answered")
    w: float = option(0.5, "weight of density; 1 is plain density", low=0)
    prompt: str = prompt_option("rating")
    keep_cut: bool = option(False, "keep values of answers that the judge could not see whole")
    _unrated: set[str] = field(default_factory=set, init=False, compare=False)
    """Queries without ratings that were met."""

    kind = "coverage"
    version = 2
    title = "share of the sub-questions that it answers, and density, by the model as judge"
    aspects = ("coverage", "density")
    single = False
    prompts = ("rating",)
    scales: ClassVar[Mapping[str, LabelScale]] = {"rating": RATING_SCALE}
    answerable = True
    details: ClassVar[Mapping[str, Any]] = {
        "subquestions": pl.List(pl.String),
        "ratings": pl.List(pl.Float64),
        "mass": pl.Float64,
        "tokens": pl.Int64,
        "required_tokens": pl.Int64,
        "cut": pl.Int64,
    }

    def check(self) -> None:
        super().check()
        if not self.texts.collection.subquestions.height:
            raise InputError("coverage needs sub-questions", remedy=give_input("subquestions"))

    @property
    def _counter(self) -> TokenCounter:
        """What counts tokens: the collection's counter."""
        return self.texts.collection.counter

    @property
    def source(self) -> str:
        return " · ".join([super().source, f"eta {self.eta:g}", f"w {self.w:g}", self._counter.name])

    def program(self, item: Answer) -> Program[AspectValues]:
        text, questions = self.text(item), self._answerable(item.query)
        found = all_found((yield from combine_programs([self._rated(text, each.text) for each in questions])))
        share = sum(one.value >= self.eta for one in found) / len(questions)
        tokens = self._counter.count(text)
        density = self._density(item.query, share, tokens)
        required = None if isinstance(density, NoValue) else self._required_tokens(item.query)
        detail = {
            "subquestions": [question.id for question in questions],
            "ratings": [one.value for one in found],
            "mass": min((one.mass for one in found if one.mass is not None), default=None),
            "raw": "\n".join(one.raw for one in found if one.raw is not None) or None,
            "tokens": tokens,
            "required_tokens": required,
            "cut": max(one.usage.cut for one in found),
        }
        return AspectValues({"coverage": share, "density": density}, detail, found[0].estimator)

    def _rated(self, text: str, question: str) -> Program[LabelResult]:
        found = yield from self.label(passage=text, query=question, subquestion=question)
        reject_cut_passage(found.usage, self.keep_cut, found.raw)
        return found

    def _answerable(self, query: str) -> list[Subquestion]:
        """The sub-questions that the required subset answers; all, where nothing was rated."""
        every = self.texts.subquestions(query)
        rated = self._best.get(query)
        if rated is None:
            self._unrated.add(query)
            return list(every)
        known = {name for name, best in rated.items() if best is not None and best >= self.eta}
        if any(best is None for best in rated.values()):
            raise NoValue(UNJUDGED, f"a rating of the query {query!r} failed; another sub-question may be answerable")
        if not known:
            raise NoValue(NO_ANSWERABLE, f"no passage answers any sub-question of the query {query!r}")
        found = [question for question in every if question.id in known]
        if len(found) < len(known):
            lost = min(known - {question.id for question in found})
            raise NoValue(NO_SUBQUESTIONS, f"the sub-question {lost!r} of the query {query!r} has ratings but no text")
        return found

    @cached_property
    def _best(self) -> Mapping[str, Mapping[str, float | None]]:
        """The best rating of each sub-question; None where a failed one leaves open whether it is answerable."""
        ratings = self.texts.collection.ratings
        found: dict[str, dict[str, float | None]] = {}
        if ratings is None:
            return found
        good = pl.col("status") == OK
        best = ratings.frame.group_by("query", "subquestion", maintain_order=True).agg(
            pl.col("value").filter(good).max().alias("best"), (~good).any().alias("failed")
        )
        for query, name, value, failed in best.iter_rows():
            sure = value is not None and (value >= self.eta or not failed)
            found.setdefault(query, {})[name] = value if sure else None
        return found

    @cached_property
    def _oracle(self) -> OracleSelector:
        return OracleSelector(self.texts, "ratings", eta=self.eta)

    def _required_tokens(self, query: str) -> int:
        return sum(self._counter.count(self.texts.passage(passage)) for passage in self._oracle.passages(query))

    def _density(self, query: str, share: float, tokens: int) -> float | NoValue:
        if query in self._unrated:
            return NoValue(NO_REQUIRED, f"no passage is rated for the query {query!r}, so there is no required subset")
        try:
            required = self._required_tokens(query)
        except NoValue as none:
            return none if none.status == UNJUDGED else NoValue(NO_TOKENS, none.detail)
        if not share:
            return 0.0
        if not tokens or not required:
            return NoValue(NO_TOKENS, "the answer, or the required subset, has no tokens")
        return float((share * required / tokens) ** self.w)

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        first = frame.filter(pl.col("aspect") == self.aspects[0])
        every = first.select(pl.col("ratings").drop_nulls().explode()).filter(pl.col("ratings").is_not_null())
        notes = judgment_warnings(first.select("mass", value=pl.lit(None, pl.Float64)), "answer")
        notes += judgment_warnings(every, "rating", "ratings")
        notes.append(f"tokens are counted as {self._counter.name}")
        if self.way == "answerability":
            notes.append(RATED_ANSWERABILITY_NOTE)
        if self._unrated:
            number = format_count(len(self._unrated), "query", "queries")
            notes.append(f"{number} without ratings: all sub-questions count as answerable, and there is no density")
        return notes
