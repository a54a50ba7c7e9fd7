"""Have a model write the texts of a collection: passages, sub-questions and requests, each between tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.data import OK, TRUNCATED
from ragworth.judging.contract import Task
from ragworth.judging.findings import CUT, describe_source, frame_from_rows, missing_notes, require_abilities
from ragworth.judging.labels import REFUSED, UNPARSABLE
from ragworth.llm import prompts
from ragworth.llm.contract import LENGTH, Card, Generate, Generated, Output
from ragworth.llm.prompts.template import Template
from ragworth.text_match.refusals import find_refusal

WORD_TOKENS = 2
"""Most tokens of an English word, to say how long a text may become."""

TOP_P = 0.95
"""Nucleus sampling threshold."""

SCHEMA = {
    "id": pl.String,
    "texts": pl.List(pl.String),
    "status": pl.String,
    "reason": pl.String,
    "raw": pl.String,
    "seed": pl.Int64,
    "attempts": pl.Int64,
    "source": pl.String,
}


class Sampling(NamedTuple):
    """How texts are sampled. An unusable text is written again with the next seed, ``attempts`` times in all."""

    temperature: float = 0.7
    seed: int = 0
    attempts: int = 2


DEFAULT_SAMPLING = Sampling()


class WritingItem(NamedTuple):
    """A text to write, and what its prompt is filled with."""

    id: str
    values: Mapping[str, Any]


class WrittenTexts(NamedTuple):
    texts: tuple[str, ...]
    raw: str
    seed: int
    attempts: int


@dataclass(frozen=True)
class TaggedWritingResult:
    """Everything that was written: id, texts, status, reason, raw, seed, attempts, source."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaggedWriter(Task[WritingItem, WrittenTexts, TaggedWritingResult]):
    """Writes texts between ``<tag>`` and ``</tag>``. Output without a complete pair of tags has no value."""

    card: Card
    prompt: str
    tag: str
    words: int
    """Words of everything that it writes for an item, about."""
    folder: str | Path | None = None
    """A user's own prompts."""
    sampling: Sampling = DEFAULT_SAMPLING

    def __post_init__(self) -> None:
        require_abilities(self.card, ("generate",), f"writing ({self.prompt})")

    @property
    def max_rounds(self) -> int:
        return self.sampling.attempts

    @cached_property
    def template(self) -> Template:
        return prompts.load_prompt(self.prompt, self.folder, self.card.prompts)

    @property
    def templates(self) -> Mapping[str, Template]:
        return {self.prompt: self.template}

    def program(self, item: WritingItem) -> Program[WrittenTexts]:
        prompt = self.template.render(item.values)
        way, problem = self.sampling, NoValue(UNPARSABLE, "nothing was written")
        for attempt in range(way.attempts):
            seed = way.seed + attempt
            request = Generate(prompt, self.words * WORD_TOKENS, way.temperature, TOP_P, seed=seed)
            (outcome,) = yield [request]
            response = require_response(outcome, Generated)
            if response.usage.cut:
                raise NoValue(CUT, f"{response.usage.cut:,} characters did not fit into the model's context")
            output = response.outputs[0]
            try:
                return WrittenTexts(self.parse(output), output.text, seed, attempt + 1)
            except NoValue as none:
                problem = none
        raise problem

    def parse(self, output: Output) -> tuple[str, ...]:
        """The texts between tags; `NoValue` if there is none."""
        texts = tagged_texts(output.text, self.tag)
        if texts:
            return texts
        if find_refusal(output.text) is not None:
            raise NoValue(REFUSED, "the model declined to write", output.text)
        if output.finish == LENGTH:
            raise NoValue(TRUNCATED, "the text ended at its greatest length before a tag was closed", output.text)
        raise NoValue(UNPARSABLE, f"expected texts between <{self.tag}> and </{self.tag}>", output.text)

    def collect(
        self,
        items: Sequence[WritingItem],
        findings: Iterable[WrittenTexts | NoValue],
        controls: Sequence[WrittenTexts | NoValue],
    ) -> TaggedWritingResult:
        source = describe_source(self.card, [self.template], f"temperature {self.sampling.temperature:g}")
        rows = [{"id": item.id, "source": source} | _facts(found) for item, found in zip(items, findings, strict=True)]
        frame = frame_from_rows(rows, SCHEMA)
        return TaggedWritingResult(frame, missing_notes(frame, self.prompt))


def _facts(found: WrittenTexts | NoValue) -> dict[str, Any]:
    if isinstance(found, NoValue):
        return {"status": found.status, "reason": found.detail, "raw": found.raw}
    return {**found._asdict(), "texts": list(found.texts), "status": OK}


def tagged_texts(text: str, tag: str) -> tuple[str, ...]:
    """Texts between ``<tag>`` and ``</tag>``, whatever is around them, with single blanks and without empty ones.

    A tag that is opened again before it is closed begins anew, so an unclosed text never swallows the next.
    """
    pattern = rf"<{tag}>((?:(?!</?{tag}>).)*)</{tag}>"
    found = (" ".join(match.split()) for match in re.findall(pattern, text, re.S | re.I))
    return tuple(each for each in found if each)
