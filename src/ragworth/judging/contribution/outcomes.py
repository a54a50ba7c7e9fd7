"""The value of a set of passages, the log-probability of an answer sentence by sentence; and what a context comes to.

========================== ======================================================================= =======
outcome                    value                                                                   range
========================== ======================================================================= =======
``gain`` or ``reliance``   what the context adds to the answer's log-probability, in nats          any
``contributing``           share of the passages that contribute more than `threshold`             0 to 1
``harm`` or ``opposition`` share of all contribution, positive or not, that goes against it        0 to 1
``effective``              effective number of passages behind the answer: (Σφ⁺)² / Σ(φ⁺)²         1 to k
``redundancy``             share of the contribution that the others would make up for             0 to 1
``cited-contributing``     share of the cited passages that contribute                             0 to 1
========================== ======================================================================= =======

``gain`` and ``harm`` are for accepted answers: what goes against an accepted answer does harm. For what a model
answered, which may be wrong, the same numbers are called ``reliance`` and ``opposition``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.data import EMPTY_ANSWER
from ragworth.judging.contribution.design import (
    Contributions,
    Design,
    Floats,
    SubsetAsker,
    contributions,
    full_subset,
)
from ragworth.judging.findings import NO_CITATIONS, answer_logprobs, reject_cut_passage
from ragworth.llm.contract import Failure, Prompt, Response, Score, Scored, Trace
from ragworth.llm.prompts.template import Template
from ragworth.text_match.refusals import find_refusal
from ragworth.text_match.sentences import parse_citations, sentence_starts, without_citations

DECLINED = "declined"
"""Status of an answer that declines: no passage can contribute to a statement that isn't made."""


class SplitAnswer(NamedTuple):
    """An answer and what each passage contributes to each of its sentences."""

    answer: str
    sentences: tuple[str, ...]
    cited: tuple[str, ...]
    """Ids of the passages that the answer cites, before its citations were removed."""
    tokens: int
    found: Contributions
    growing: tuple[float, ...] = ()
    """The answer's log-probability with none, the first, the first two, … of the players, if asked for."""


@dataclass
class AnswerReading:
    """Reads the log-probability of each sentence of one answer from the tokens of a scored continuation."""

    answer: str
    keep_cut: bool = False
    tokens: tuple[str, ...] = ()
    """Of the first response; all others must have the same."""
    starts: list[int] = field(default_factory=list)
    """The first token of each sentence."""

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        places = sentence_starts(self.answer)
        found = [self.answer[start:end].strip() for start, end in pairwise([*places, len(self.answer)])]
        return tuple(found) if len(found) == len(self.starts) else (self.answer,)

    def read(self, outcome: Response | Failure) -> Floats:
        """The log-probability of each sentence, in nats; raises `NoValue` if it can't be known."""
        scored = require_response(outcome, Scored)
        reject_cut_passage(scored.usage, self.keep_cut)
        logs, trace = answer_logprobs(scored), scored.trace
        if not self.tokens:
            self.tokens, self.starts = trace.tokens, _first_tokens(trace, self.answer)
        elif len(trace.tokens) != len(self.tokens):
            raise NoValue("tokens-differ", "the answer falls into other tokens after other passages")
        return np.add.reduceat(np.array(logs), self.starts)


def _first_tokens(trace: Trace, answer: str) -> list[int]:
    """The first token of each sentence; if tokens can't be found in the text, the answer counts as one sentence."""
    places, at, begins = [], 0, sentence_starts(answer)
    for token in trace.tokens:
        text = token.strip()
        found = answer.find(text, at) if text else at
        if found < 0:
            return [0]
        places.append(found)
        at = found + len(text)
    firsts = [next((n for n, place in enumerate(places) if place + 1 > begin), None) for begin in begins]
    known = [first for first in firsts if first is not None]
    return known if known == sorted(set(known)) and len(known) == len(begins) and known[:1] == [0] else [0]


@dataclass(frozen=True)
class ContextPrompts:
    """Prompts for one query and any of the passages of its context, which differ in nothing else."""

    template: Template
    query: str
    passages: Sequence[str]
    """Texts, in the order shown."""
    groups: Sequence[Sequence[int]] | None = None
    """Numbers of the passages of each player, such as those that each search of an agent found; by default one each."""

    @property
    def players(self) -> int:
        """How many passages, or groups of them, may be left out."""
        return len(self.passages if self.groups is None else self.groups)

    def prompt(self, players: Sequence[int]) -> Prompt:
        """The prompt with some of the players."""
        numbers = players if self.groups is None else [number for player in players for number in self.groups[player]]
        return self.template.render(self._values(numbers), fenced_for=self._values(range(len(self.passages))))

    def _values(self, numbers: Sequence[int]) -> Mapping[str, object]:
        return {"query": self.query, "passages": [{"text": self.passages[i]} for i in numbers]}


def check_answer(text: str) -> None:
    """Raise `NoValue` for an answer of a model that has nothing to contribute to."""
    if not text.strip():
        raise NoValue(EMPTY_ANSWER, "the answer is empty")
    if find_refusal(text) is not None:
        raise NoValue(DECLINED, "the answer declines: there is no statement that a passage could contribute to", text)


def split_answer(
    prompts: ContextPrompts,
    shown: Sequence[str],
    answer: str,
    design: Design,
    seed: str,
    keep_cut: bool = False,
    *,
    growing: bool = False,
) -> Program[SplitAnswer]:
    """Split the log-probability of an answer among the passages of its context, whose ids are ``shown``.

    Citations such as [2] are removed first: their numbers mean nothing once passages are removed. ``growing``: also ask
    about none, the first, the first two, … of them.
    """
    text = without_citations(answer) or answer.strip()
    reading = AnswerReading(text, keep_cut)
    asker = SubsetAsker(len(shown), lambda numbers: Score(prompts.prompt(numbers), text), reading.read)
    steps = [full_subset(n) for n in range(len(shown) + 1)] if growing else []
    yield from asker.ask(steps)
    found = yield from contributions(asker, design, seed)
    cited = parse_citations(answer, shown).passages
    values = tuple(float(asker.values[mask].sum()) for mask in steps)
    return SplitAnswer(text, reading.sentences, cited, len(reading.tokens), found, values)


LEAST = 0.1
"""Nats from which a passage contributes: it makes the answer about 10 % likelier."""

SHARE = 0.05
"""Share of all contributions of a context, positive or not, from which one counts: next to 30 nats, 0.2 are nothing."""

NO_CONTRIBUTION = "no-contribution"
EMPTY_CONTEXT = "empty-context"


def threshold(totals: Floats, least: float) -> float:
    """Nats above which a passage of a context contributes, and below minus which it goes against the answer."""
    return max(least, SHARE * float(np.abs(totals).sum()))


def outcome_names(*, accepted: bool, shapley: bool, cited: bool) -> tuple[str, ...]:
    """Names of the outcomes.

    ``accepted``: whether the answers are known to be right. ``shapley``: whether there are Shapley values beside
    leave-one-out. ``cited``: whether answers may have citations.
    """
    names = ("gain", "contributing", "harm") if accepted else ("reliance", "contributing", "opposition")
    return (*names, "effective", *(("redundancy",) if shapley else ()), *(("cited-contributing",) if cited else ()))


def outcome_values(
    split: SplitAnswer, shown: tuple[str, ...], least: float, *, accepted: bool
) -> dict[str, float | NoValue]:
    """All outcomes of one context, each a number or the reason why it has none."""
    found, totals = split.found, split.found.totals
    bound, positive = threshold(totals, least), np.maximum(totals, 0)
    empty = NoValue(EMPTY_CONTEXT, "the context has no passages")
    none = NoValue(NO_CONTRIBUTION, f"no passage makes the answer likelier by more than {least:g} nats")
    opposition: float | NoValue = empty
    effective: float | NoValue = empty
    redundancy: float | NoValue = empty
    if len(totals):
        opposition = effective = redundancy = none
    if np.abs(totals).max(initial=0.0) > least:
        opposition = float(np.maximum(-totals, 0).sum() / np.abs(totals).sum())
    if positive.max(initial=0.0) > least:
        effective = float(positive.sum() ** 2 / (positive**2).sum())
        redundancy = float(1 - np.minimum(positive, np.maximum(found.alone, 0)).sum() / positive.sum())
    cited: float | NoValue = NoValue(NO_CITATIONS, "the answer cites no passage")
    if split.cited:
        by_passage = dict(zip(shown, totals.tolist(), strict=True))
        cited = sum(by_passage[passage] > bound for passage in split.cited) / len(split.cited)
    return {
        "gain" if accepted else "reliance": found.gain,
        "contributing": float((totals > bound).mean()) if len(totals) else empty,
        "harm" if accepted else "opposition": opposition,
        "effective": effective,
        "redundancy": redundancy,
        "cited-contributing": cited,
    }
