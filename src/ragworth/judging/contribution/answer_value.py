"""The value of a set of passages: the log-probability of an answer, sentence by sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.data import EMPTY_ANSWER
from ragworth.judging.contribution.design import Contributions, Design, Floats, SubsetAsker, contributions, full_subset
from ragworth.judging.findings import reject_cut_passage
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
        trace = scored.trace
        if not trace.logprobs:
            raise NoValue("empty-continuation", "the answer has no tokens")
        if sum(trace.logprobs) > 0:
            raise NoValue("malformed", "a log-probability is above 0")
        if not self.tokens:
            self.tokens, self.starts = trace.tokens, _first_tokens(trace, self.answer)
        elif len(trace.tokens) != len(self.tokens):
            raise NoValue("tokens-differ", "the answer falls into other tokens after other passages")
        return np.add.reduceat(np.array(trace.logprobs), self.starts)


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

    def prompt(self, numbers: Sequence[int]) -> Prompt:
        """The prompt with some of the passages."""
        values = self._values(numbers)
        return self.template.render(values, fenced_for=self._values(range(len(self.passages))))

    def _values(self, numbers: Sequence[int]) -> Mapping[str, object]:
        return {"query": self.query, "passages": [{"text": self.passages[i]} for i in numbers]}


@dataclass(frozen=True)
class GroupPrompts(ContextPrompts):
    """Prompts with some of several groups of passages, such as those that each search of an agent found."""

    groups: Sequence[Sequence[int]]
    """Numbers of the passages of each group."""

    def prompt(self, numbers: Sequence[int]) -> Prompt:
        return super().prompt([passage for group in numbers for passage in self.groups[group]])


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
