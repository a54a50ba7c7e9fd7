"""``contribution``: what each passage of a context does for the answer, next to all the others.

Shapley values or leave-one-out of the answer's log-probability: see `ragworth.judging.contribution`. The annotator
splits what the model answers, or an accepted answer; the grader splits answers that exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.core.errors import format_count
from ragworth.judging.contract import ItemT, option, prompt_option
from ragworth.judging.contribution.design import METHODS, MOST_EXACT, Design
from ragworth.judging.contribution.hops import Hop, HopTable, hops_needed
from ragworth.judging.contribution.outcomes import (
    LEAST,
    ContextPrompts,
    check_answer,
    outcome_names,
    outcome_values,
    split_answer,
)
from ragworth.judging.contribution.rows import DETAIL_COLUMNS, contribution_notes, details
from ragworth.judging.findings import AspectValues, reject_cut_passage, require_abilities
from ragworth.judging.judge import AnnotationItem, Annotator, Grader, Judge
from ragworth.judging.text_lookup import Answer
from ragworth.llm.contract import Score, Scored

GIVEN = "given"


@dataclass(frozen=True)
class ContributionJudge(Judge[ItemT]):
    """What the annotator and the grader share."""

    method: str = option(
        "auto", "how the answer is split among passages; auto depends on their number", choices=METHODS
    )
    subsets: int = option(256, "maximum subsets of a context to ask about, if not all", low=8)
    least: float = option(LEAST, "lowest contribution, in nats, that counts", low=0)
    seed: int = option(0, "seed of random orders and subsets", low=0)
    prompt: str = prompt_option("reply")
    keep_cut: bool = option(False, "keep values of contexts that did not fit whole")

    kind = "contribution"
    prompts = ("reply",)
    asks_model = True
    single = False
    details: ClassVar[Mapping[str, Any]] = DETAIL_COLUMNS

    @cached_property
    def design(self) -> Design:
        return Design(self.method, self.subsets, self.seed)

    @property
    def splits_by_shapley(self) -> bool:
        """Whether there are contributions beside those of leaving one passage out."""
        return self.method != "leave-one-out"

    @property
    def max_rounds(self) -> int:
        return 1 + self.subsets if self.method in ("auto", "permutations") else 1

    def context(
        self, query: str, passages: Sequence[str], groups: Sequence[Sequence[int]] | None = None
    ) -> ContextPrompts:
        """The prompts with some of these passages, or of groups of them; raises `NoValue` if there are too many."""
        players = len(passages if groups is None else groups)
        if self.method == "exact" and players > MOST_EXACT:
            words = f"{players} passages have 2^{players} subsets"
            raise NoValue("too-many-passages", f"{words}; exact takes {MOST_EXACT} passages at most")
        texts = [self.texts.passage(passage) for passage in passages]
        return ContextPrompts(self.template("reply"), self.texts.query(query), texts, groups)

    def split(
        self, prompts: ContextPrompts, names: tuple[str, ...], answer: str, query: str, hops: Sequence[Hop] = ()
    ) -> Program[AspectValues]:
        """Split an answer among passages, or hops, of these names."""
        split = yield from split_answer(prompts, names, answer, self.design, query, self.keep_cut, growing=bool(hops))
        detail = details(split, names, self.least)
        if hops:
            split = split._replace(cited=())
            detail |= {"growing": list(split.growing), "searches": [hop.search for hop in hops], "cited": []}
        values = outcome_values(split, names, self.least, accepted="gain" in self.value_names)
        if hops:
            values["hops-needed"] = float(hops_needed(split.growing, self.least))
        if not self.splits_by_shapley:
            values["redundancy"] = NoValue("no-shapley", "leave-one-out alone can't tell what is redundant")
        return AspectValues(values, detail, split.found.method)

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        return contribution_notes(frame)


@dataclass(frozen=True)
class ContributionAnnotator(ContributionJudge[AnnotationItem], Annotator):
    """How much of the answer's log-probability each passage of a context carries, in nats.

    The answer is what the model answers from the whole context, an accepted answer (the likeliest where there are
    several), or that of a file (--given). It is then scored with subsets of the passages. Contexts of up to 6 passages
    get exact Shapley values; larger ones Shapley values from random orders, until the ranking is certain enough.
    Outcomes of each context come first; --each writes a row for each passage, and --pairs-output one for each two
    passages.
    """

    answer: str = option(
        "generated", "whose log-probability is split: the model's own answer, or an accepted one",
        choices=("generated", "accepted"),
    )  # fmt: skip
    length: int = option(64, "maximum tokens of an answer that the model writes", low=1)

    title = "how much each passage of a context does for the answer, next to the others"
    unit = "context"
    aspects = outcome_names(accepted=False, shapley=True, cited=False)
    takes_answers = True

    def check(self) -> None:
        asks = ("score",) if self.answer == "accepted" or self.is_given else ("generate", "score")
        require_abilities(self.card, asks, "contribution")

    @property
    def value_names(self) -> tuple[str, ...]:
        return outcome_names(accepted=self.is_accepted, shapley=self.splits_by_shapley, cited=self.is_given)

    @property
    def max_rounds(self) -> int:
        return super().max_rounds + (not self.is_given)

    @property
    def is_given(self) -> bool:
        """Whether the answers to split are given."""
        return bool(self.book.answers)

    @property
    def is_accepted(self) -> bool:
        """Whether the answers are known to be right."""
        return self.answer == "accepted" and not self.is_given

    @property
    def source(self) -> str:
        whose = GIVEN if self.is_given else self.answer
        return " · ".join([super().source, f"{whose} answer", self.method])

    def plan_notes(self, items: Sequence[AnnotationItem]) -> list[str]:
        most = sum(self.design.most_subsets(len(item.passages)) for item in items)
        every = sum(1 << len(item.passages) for item in items)
        return [
            f"the answers of {format_count(len(items), 'context')} are scored with {most:,} subsets of their passages "
            f"at most, of {every:,}; equal ones are asked about once"
        ]

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        prompts = self.context(item.query, item.passages)
        answer = yield from self.find_answer(item, prompts)
        return (yield from self.split(prompts, item.passages, answer, item.query))

    def find_answer(self, item: AnnotationItem, prompts: ContextPrompts) -> Program[str]:
        """The answer to split."""
        if self.is_given:
            given = self.book.partner(item.system, item.query, 0)
            if given is None:
                raise NoValue("no-answer", f"no answer of {item.system!r} to the query {item.query!r} is given")
            check_answer(given.words)
            return given.words
        everything = prompts.prompt(range(prompts.players))
        if self.answer == "accepted":
            accepted = self.texts.answers(item.query)
            if len(accepted) == 1:
                return accepted[0]
            outcomes = yield [Score(everything, answer.strip()) for answer in accepted]
            traces = [require_response(outcome, Scored).trace.logprobs for outcome in outcomes]
            means = [sum(logs) / len(logs) if logs else float("-inf") for logs in traces]
            return accepted[means.index(max(means))]
        output, made = yield from self.write("reply", everything, self.length)
        reject_cut_passage(made.usage, self.keep_cut)
        answer = output.text.strip()
        check_answer(answer)
        return answer

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        notes = super().notes(frame, controls)
        if self.is_given and any(each.repeat for each in self.book.answers):
            notes.append("of several answers to a query, only the first is split")
        return notes


@dataclass(frozen=True)
class HopContribution(ContributionAnnotator):
    """Splits answers among the hops of an agent instead of single passages.

    ``hops-needed`` is the number of hops after which the others together add no more than ``least`` nats.
    """

    hops: HopTable = field(kw_only=True)

    @classmethod
    def of(cls, annotator: ContributionAnnotator, hops: HopTable) -> HopContribution:
        """The same settings, for hops."""
        own = {each.name: getattr(annotator, each.name) for each in fields(annotator)}
        return cls(**own, hops=hops)

    @property
    def value_names(self) -> tuple[str, ...]:
        return (*(name for name in super().value_names if name != "cited-contributing"), "hops-needed")

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        hops = self.hops.get((item.system, item.query))
        if not hops:
            raise NoValue("no-hops", f"nothing says in which hop {item.system!r} found passages for {item.query!r}")
        passages = [passage for hop in hops for passage in hop.passages]
        groups = [[passages.index(passage) for passage in hop.passages] for hop in hops]
        prompts = self.context(item.query, passages, groups)
        answer = yield from self.find_answer(item, prompts)
        return (yield from self.split(prompts, tuple(hop.name for hop in hops), answer, item.query, hops))


def split_by_hops(annotator: Any, hops: HopTable) -> Any:
    """An annotator that splits answers among hops, if it splits them at all."""
    return HopContribution.of(annotator, hops) if isinstance(annotator, ContributionAnnotator) else annotator


@dataclass(frozen=True)
class ContributionGrader(ContributionJudge[Answer], Grader):
    """How much of an answer's log-probability each passage that was shown carries.

    Citations are removed from the answer, which is then scored with subsets of the passages, in the prompt reply. An
    answer that declines has no value: there is no statement that a passage could contribute to.
    """

    title = "how much each passage did for the answer, next to the others"
    compares = ("queries",)
    aspects = outcome_names(accepted=False, shapley=True, cited=True)

    def check(self) -> None:
        require_abilities(self.card, ("score",), "contribution")

    @property
    def source(self) -> str:
        return f"{super().source} · {self.method}"

    def program(self, item: Answer) -> Program[AspectValues]:
        shown = self.shown_passages(item)
        prompts = self.context(item.query, shown)
        check_answer(item.words)
        return (yield from self.split(prompts, shown, item.words, item.query))
