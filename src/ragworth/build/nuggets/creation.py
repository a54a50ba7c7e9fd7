"""Collect the nuggets of a query from its passages: a list that grows window by window, then the importance of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.build.crux.writing import tagged_texts
from ragworth.build.nuggets.files import Nugget, NuggetList
from ragworth.calls.programs import NoValue, Program, combine_programs, require_response
from ragworth.core.errors import format_count
from ragworth.data import OK, TRUNCATED
from ragworth.judging.contract import Task, option, validate_options
from ragworth.judging.findings import CUT, describe_source, frame_from_rows, missing_notes
from ragworth.judging.labels import UNPARSABLE, LabelResult, LabelScale, ask_label, choose_label_method
from ragworth.judging.text_lookup import EMPTY_PASSAGE, TextLookup
from ragworth.llm import prompts
from ragworth.llm.contract import LENGTH, Card, Generate, Generated
from ragworth.llm.prompts.template import Template

IMPORTANCE = LabelScale(("vital", "okay"), (1.0, 0.5))
TOKENS = 60
"""Most tokens of a nugget with its tags."""
_NONE = re.compile(r"<none\s*/?>", re.I)
SCHEMA = {
    "query": pl.String,
    "nugget": pl.String,
    "importance": pl.String,
    "p_vital": pl.Float64,
    "mass": pl.Float64,
    "status": pl.String,
    "reason": pl.String,
    "raw": pl.String,
    "source": pl.String,
}


class NuggetItem(NamedTuple):
    """A query and the passages that its nuggets come from."""

    query: str
    passages: tuple[str, ...]


class CreatedNuggets(NamedTuple):
    texts: tuple[str, ...]
    labels: tuple[LabelResult | NoValue, ...]


@dataclass(frozen=True)
class NuggetResult:
    """Nuggets of every query, and a row for each: query, nugget, importance, p_vital, mass, status, reason, raw."""

    lists: list[NuggetList]
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NuggetCreator(Task[NuggetItem, CreatedNuggets, NuggetResult]):
    """Updates a list of nuggets from one window of passages after another, then asks for the importance of each."""

    card: Card
    texts: TextLookup
    folder: str | Path | None = None
    most: int = option(30, "maximum nuggets of a query", low=1)
    window: int = option(10, "passages that are read at a time", low=1)
    windows: int = option(5, "maximum windows of a query; further passages are left out", low=1)
    how: str = option("auto", "importance by label probabilities, or parsed", choices=("auto", "labels", "parsed"))

    def __post_init__(self) -> None:
        validate_options(self, "nuggets")
        _ = self._way

    @property
    def max_rounds(self) -> int:
        return self.windows + 1

    @cached_property
    def templates(self) -> Mapping[str, Template]:
        names = ("nuggets-update", "nugget-importance")
        return {name: prompts.load_prompt(name, self.folder, self.card.prompts) for name in names}

    @cached_property
    def _way(self) -> Any:
        return choose_label_method(self.card, self.how, "importance")

    def program(self, item: NuggetItem) -> Program[CreatedNuggets]:
        query = self.texts.query(item.query)
        shown = self._with_text(item)[: self.window * self.windows]
        if item.passages and not shown:
            raise NoValue(EMPTY_PASSAGE, f"all passages of the query {item.query!r} are empty")
        texts: tuple[str, ...] = ()
        for start in range(0, len(shown), self.window):
            passages = [{"text": self.texts.passage(name)} for name in shown[start : start + self.window]]
            values = {"query": query, "passages": passages, "nuggets": list(texts), "count": self.most}
            prompt = self.templates["nuggets-update"].render(values)
            (outcome,) = yield [Generate(prompt, self.most * TOKENS)]
            texts = self._updated(require_response(outcome, Generated))
        labels = yield from combine_programs([self._importance(query, text) for text in texts])
        return CreatedNuggets(texts, tuple(labels))

    def _with_text(self, item: NuggetItem) -> tuple[str, ...]:
        return tuple(name for name in item.passages if not self.texts.is_empty(name))

    def _updated(self, response: Generated) -> tuple[str, ...]:
        output = response.outputs[0]
        if response.usage.cut:
            raise NoValue(CUT, f"{response.usage.cut:,} characters of passages did not fit into the model's context")
        if output.finish == LENGTH:
            raise NoValue(TRUNCATED, "the list ended at its greatest length", output.text)
        texts = tuple(dict.fromkeys(tagged_texts(output.text, "nugget")))[: self.most]
        if not texts and not _NONE.search(output.text):
            raise NoValue(UNPARSABLE, "expected nuggets between <nugget> and </nugget>, or <none/>", output.text)
        return texts

    def _importance(self, query: str, text: str) -> Program[LabelResult]:
        template = self.templates["nugget-importance"]
        prompt = template.render({"query": query, "nugget": text})
        return (yield from ask_label(prompt, IMPORTANCE.for_prompt(template), self.card, self._way))

    def collect(
        self,
        items: Sequence[NuggetItem],
        findings: Iterable[CreatedNuggets | NoValue],
        controls: Sequence[CreatedNuggets | NoValue],
    ) -> NuggetResult:
        source = describe_source(self.card, list(self.templates.values()))
        rows: list[dict[str, Any]] = []
        lists = []
        for item, found in zip(items, findings, strict=True):
            if isinstance(found, NoValue):
                rows.append({"query": item.query, "source": source} | _failure(found))
                continue
            mine = [
                {"query": item.query, "source": source} | _row(text, label) for text, label in zip(*found, strict=True)
            ]
            rows += mine
            nuggets = tuple(Nugget(row["nugget"], row["importance"] or "") for row in mine)
            lists.append(NuggetList(item.query, self.texts.known_query(item.query), nuggets))
        frame = frame_from_rows(rows, SCHEMA)
        empty = sum(not each.nuggets for each in lists)
        notes: tuple[str, ...] = (f"{empty:,} queries have no nugget in their passages",) if empty else ()
        shown = [self._with_text(item) for item in items]
        blank = sum(len(item.passages) - len(some) for item, some in zip(items, shown, strict=True))
        notes += (f"{format_count(blank, 'empty passage')} left out",) if blank else ()
        skipped = sum(len(some) > self.window * self.windows for some in shown)
        notes += (f"{skipped:,} queries have more than {self.window * self.windows} passages",) if skipped else ()
        return NuggetResult(lists, frame, (*missing_notes(frame, "nugget"), *notes))


def _row(text: str, label: LabelResult | NoValue) -> dict[str, Any]:
    if isinstance(label, NoValue):
        return {"nugget": text, "importance": None} | _failure(label)
    share = None if label.probabilities is None else label.probabilities[0] / (label.mass or 1.0)
    facts = {"p_vital": share, "mass": label.mass, "raw": label.raw}
    return {"nugget": text, "importance": label.label, "status": OK, **facts}


def _failure(none: NoValue) -> dict[str, Any]:
    return {"status": none.status, "reason": none.detail, "raw": none.raw}
