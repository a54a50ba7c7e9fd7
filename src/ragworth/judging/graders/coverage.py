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
from ragworth.judging.answerability import (
    DECLINING,
    RATED_ANSWERABILITY_NOTE,
    ask_answerability,
    declining_label,
)
from ragworth.judging.answers.answer_book import Answer
from ragworth.judging.answers.oracle import NO_ANSWERABLE, UNJUDGED, OracleSelector
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import AspectValues, describe_source, judgment_warnings, reject_cut_passage
from ragworth.judging.graders.contract import Grader
from ragworth.judging.labels import (
    RATING_SCALE,
    LabelMethod,
    LabelResult,
    LabelScale,
    ask_label,
    choose_label_method,
    label_method_option,
)
from ragworth.judging.text_lookup import NO_SUBQUESTIONS, Subquestion

NO_TOKENS = "no-tokens"
NO_REQUIRED = "no-required-subset"


@dataclass(frozen=True)
class CoverageGrader(Grader):
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
    how: str = label_method_option()
    length: int = option(32, "maximum tokens of what the model writes", low=1)
    keep_cut: bool = option(False, "keep values of answers that the judge could not see whole")
    _unrated: set[str] = field(default_factory=set, init=False, compare=False)
    """Queries without ratings that were met."""

    kind: ClassVar[str] = "coverage"
    version: ClassVar[int] = 2
    title: ClassVar[str] = "share of the sub-questions that it answers, and density, by the model as judge"
    aspects: ClassVar[tuple[str, ...]] = ("coverage", "density")
    asks_model: ClassVar[bool] = True
    single: ClassVar[bool] = False
    prompts: ClassVar[tuple[str, ...]] = ("rating",)
    details: ClassVar[Mapping[str, Any]] = {
        "subquestions": pl.List(pl.String),
        "ratings": pl.List(pl.Float64),
        "mass": pl.Float64,
        "tokens": pl.Int64,
        "required_tokens": pl.Int64,
        "cut": pl.Int64,
    }

    def check(self) -> None:
        _ = self.scale
        if not self.texts.collection.subquestions.height:
            raise InputError("coverage needs sub-questions", remedy=give_input("subquestions"))

    @property
    def _way(self) -> LabelMethod:
        return choose_label_method(self.model, self.how, "coverage", answerable=True, own_prompt=bool(self.prompt))

    @cached_property
    def scale(self) -> LabelScale:
        """The labels, as the prompt writes them."""
        return (DECLINING if self._way == "answerability" else RATING_SCALE).for_prompt(self.template)

    @property
    def prompt_name(self) -> str:
        """Name of the prompt, with these settings: a model that was taught to decline is asked whether it answers."""
        return "abstention" if self._way == "answerability" else self.prompts[0]

    @property
    def _counter(self) -> TokenCounter:
        """What counts tokens: the collection's counter."""
        return self.texts.collection.counter

    @property
    def source(self) -> str:
        return describe_source(self.model, [self.template], f"eta {self.eta:g}", f"w {self.w:g}", self._counter.name)

    def program(self, answer: Answer) -> Program[AspectValues]:
        text, questions = self.text(answer), self._answerable(answer.query)
        made = yield from combine_programs([self._rated(text, question) for question in questions])
        failed = next((one for one in made if isinstance(one, NoValue)), None)
        if failed is not None:
            raise failed
        found = [one for one in made if isinstance(one, LabelResult)]
        share = sum(one.value >= self.eta for one in found) / len(questions)
        tokens = self._counter.count(text)
        density = self._density(answer.query, share, tokens)
        required = None if isinstance(density, NoValue) else self._required_tokens(answer.query)
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

    def _rated(self, text: str, question: Subquestion) -> Program[LabelResult]:
        if self._way == "answerability":
            prompt = self.template.render({"passage": text, "query": question.text})
            found = yield from ask_answerability(prompt, RATING_SCALE, self.model, declining_label(self.template))
            found = found._replace(estimator=f"{found.estimator}, mapped to 0–5")
        else:
            prompt = self.template.render({"passage": text, "subquestion": question.text})
            found = yield from ask_label(prompt, self.scale, self.model, self._way, length=self.length)
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

    def warnings(self, frame: pl.DataFrame) -> list[str]:
        first = frame.filter(pl.col("aspect") == self.aspects[0])
        every = first.select(pl.col("ratings").drop_nulls().explode()).filter(pl.col("ratings").is_not_null())
        return [
            *judgment_warnings(first.select("mass", value=pl.lit(None, pl.Float64)), "answer"),
            *judgment_warnings(every, "rating", "ratings"),
        ]

    def notes(self, answers: Sequence[Answer], controls: Sequence[AspectValues | NoValue]) -> list[str]:
        notes = [f"tokens are counted as {self._counter.name}"]
        if self._way == "answerability":
            notes.append(RATED_ANSWERABILITY_NOTE)
        if self._unrated:
            number = format_count(len(self._unrated), "query", "queries")
            notes.append(f"{number} without ratings: all sub-questions count as answerable, and there is no density")
        return notes
