"""Rewrite turns of conversations into questions that can be searched for alone: by a model, or by rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.core.errors import InputError, PromptError, format_count, format_list
from ragworth.data import OK, TRUNCATED
from ragworth.data.conversations import Turn, cut_messages, recent_messages, spoken_messages
from ragworth.judging.contract import Task, option, validate_options
from ragworth.judging.findings import describe_source, frame_from_rows, missing_notes, require_abilities
from ragworth.judging.labels import REFUSED
from ragworth.llm import prompts
from ragworth.llm.contract import LENGTH, REWRITE, Card, Generate, Generated, Output, Prompt
from ragworth.llm.prompts.template import Template
from ragworth.text_match.refusals import find_refusal

EMPTY_REWRITE = "empty-rewrite"
_MARK = re.compile(r"</?message [0-9a-f]{6,8}>")
"""A mark of the prompt that small models repeat. It is no part of a rewrite."""

NO_HISTORY = "no-history"
"""Status of a turn that nothing was said before: it isn't rewritten."""

REWRITE_COLUMNS = {
    "query": pl.String,
    "sample": pl.Int64,
    "text": pl.String,
    "status": pl.String,
    "source": pl.String,
    "reason": pl.String,
    "raw": pl.String,
    "cut_messages": pl.Int64,
}


class TurnRewrites(NamedTuple):
    """The rewrites of a turn in the order of the samples, each a text or the reason why there is none."""

    rewrites: tuple[str | NoValue, ...]
    cut_messages: int


@dataclass(frozen=True)
class RewritingResult:
    """A row for each sample of each turn."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryRewriter(Task[Turn, TurnRewrites, RewritingResult]):
    """Rewrites turns. Its settings are options of ``ragworth rewrite candidates``."""

    card: Card
    folder: str | Path | None = None
    """A user's own prompts."""

    prompt: str = option("rewrite", "prompt: a name or a file")
    history: int = option(
        6000, "maximum characters of the history shown; the oldest messages are left out first", low=0
    )
    length: int = option(64, "maximum tokens of a rewrite", low=1)
    samples: int = option(1, "rewrites of each turn", low=1)
    temperature: float = option(0.0, "temperature of sampling; 0 is greedy", low=0)
    top_p: float = option(1.0, "nucleus of sampling", low=0.0001, high=1)
    seed: int = option(0, "seed of sampling", low=0)

    def __post_init__(self) -> None:
        validate_options(self, "rewrite")
        if self.samples > 1 and self.temperature == 0:
            raise InputError(
                f"{self.samples} greedy rewrites of a turn are all the same",
                expected="a temperature above 0 for several samples",
                remedy="give a temperature, such as 0.8, or one sample",
            )
        if lacking := {"query", "history"} - set(self.template.names):
            raise PromptError(
                f"it has no slot for {format_list(sorted(lacking))}", file=self.template.file, expected="query, history"
            )
        require_abilities(self.card, ("generate",), REWRITE)

    @cached_property
    def template(self) -> Template:
        return prompts.load_prompt(self.prompt, self.folder, self.card.prompts)

    @property
    def templates(self) -> Mapping[str, Template]:
        return {self.template.name: self.template}

    @property
    def source(self) -> str:
        """Where its rewrites come from, in one line."""
        how = f"temperature={self.temperature:g} seed={self.seed}" if self.temperature else "greedy"
        return describe_source(self.card, [self.template], how)

    def request(self, turn: Turn) -> Generate:
        """The request for a turn, which must have a history."""
        prompt, stop = render_turn(self.template, turn, self.history), self.template.reply.stop
        return Generate(prompt, self.length, self.temperature, self.top_p, stop, self.seed, self.samples)

    def program(self, item: Turn) -> Program[TurnRewrites]:
        if not item.history:
            raise NoValue(NO_HISTORY, "nothing was said before this turn, so there is nothing to add to it")
        (outcome,) = yield [self.request(item)]
        made = require_response(outcome, Generated)
        outputs = [self.template.reply.trim(output) for output in made.outputs]
        return TurnRewrites(tuple(map(_read_rewrite, outputs)), cut_messages(item.history, self.history))

    def collect(
        self,
        items: Sequence[Turn],
        findings: Iterable[TurnRewrites | NoValue],
        controls: Sequence[TurnRewrites | NoValue],
    ) -> RewritingResult:
        rows = []
        for turn, finding in zip(items, findings, strict=True):
            texts = (finding,) if isinstance(finding, NoValue) else finding.rewrites
            for number, text in enumerate(texts):
                row = {"query": turn.query, "sample": number, "source": self.source, "status": OK}
                row |= {"cut_messages": 0 if isinstance(finding, NoValue) else finding.cut_messages}
                if isinstance(text, NoValue):
                    row |= {"status": text.status, "reason": text.detail, "raw": text.raw}
                else:
                    row["text"] = text
                rows.append(row)
        frame = frame_from_rows(rows, REWRITE_COLUMNS)
        return RewritingResult(frame, (*missing_notes(frame, "rewrite"), *self._cut_notes(items)))

    def _cut_notes(self, turns: Sequence[Turn]) -> list[str]:
        cut = Counter({turn.query: cut_messages(turn.history, self.history) for turn in turns})
        number = sum(1 for messages in cut.values() if messages)
        if not number:
            return []
        return [
            f"the histories of {format_count(number, 'turn')} are too long for {self.history:,} characters: "
            f"{format_count(cut.total(), 'message')} left out or shortened, the oldest first"
        ]


def render_turn(template: Template, turn: Turn, characters: int) -> Prompt:
    """The prompt that asks for a rewrite. Training and use call this function alone, so they agree byte for byte."""
    shown = spoken_messages(recent_messages(turn.history, characters))
    return template.render({"query": turn.question, "history": shown})


def _read_rewrite(output: Output) -> str | NoValue:
    """A rewrite on one line, or why there is none."""
    line = " ".join(_MARK.sub(" ", output.text).split())
    if not line:
        return NoValue(EMPTY_REWRITE, "the model wrote nothing", output.text)
    if find_refusal(line) is not None:
        return NoValue(REFUSED, "the model declined to rewrite the turn", output.text)
    if output.finish == LENGTH:
        return NoValue(TRUNCATED, "the rewrite ended at its greatest length", output.text)
    return line


def _first_and_last(turn: Turn) -> str:
    """The first turn of the conversation, which often names its topic, and this one."""
    said = turn.user_messages
    return " ".join(said if len(said) < 2 else (said[0], said[-1]))


BASELINES: Mapping[str, Callable[[Turn], str | None]] = {
    "last": lambda turn: turn.question,
    "all": lambda turn: " ".join(turn.user_messages),
    "first+last": _first_and_last,
    "human": lambda turn: turn.rewrite,
}
"""Rules that need nothing but the turn. `ragworth.retrieval.words` needs the passages too."""
