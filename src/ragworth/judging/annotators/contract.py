"""The interface of annotators.

An annotator is a dataclass in one file here and one line in `ANNOTATORS`. Its fields made with `option` are its
options, in Python and on the command line. `program` asks the model about one item and returns `AspectValues`;
`NoValue`, raised anywhere in it, becomes the status of the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.core.errors import PromptError, format_list
from ragworth.data import Judgments, Outcomes, Ratings, Table
from ragworth.judging.answerability import DECLINING
from ragworth.judging.contract import Task, validate_options
from ragworth.judging.findings import (
    VALUE_COLUMNS,
    AspectValues,
    aspect_rows,
    describe_source,
    frame_from_rows,
    judgment_warnings,
    missing_notes,
)
from ragworth.judging.labels import NO_LABELS, LabelScale
from ragworth.judging.text_lookup import TextLookup
from ragworth.llm import prompts
from ragworth.llm.contract import Card, Prompt
from ragworth.llm.prompts.template import Template

PROMPT_SLOTS = {
    "abstention": ("query", "passage"),
    "relevance": ("query", "passage", "answers"),
    "relevance-graded": ("query", "passage"),
    "rating": ("subquestion", "passage"),
    "answer": ("query", "passages"),
    "reply": ("query", "passages"),
    "reply-alone": ("query",),
    "grade": ("query", "answers", "answer"),
}
"""What prompts are filled with."""

NO_MODEL = Card("none", "no model")
"""The card of an annotator that asks no model."""

AnnotationUnit = Literal["passage", "rating", "context"]
"""What is judged: a passage for a query, a passage for a sub-question, or a whole context."""


class AnnotationItem(NamedTuple):
    """One thing to judge, by its ids."""

    query: str
    passage: str = ""
    subquestion: str = ""
    system: str = ""
    passages: tuple[str, ...] = ()
    """The passages of a context, in the order shown."""


UNIT_KEYS = {
    "passage": ("query", "passage"),
    "rating": ("query", "passage", "subquestion"),
    "context": ("system", "query"),
}
UNIT_TABLES: dict[str, type[Table]] = {"passage": Judgments, "rating": Ratings, "context": Outcomes}


@dataclass(frozen=True)
class AnnotationResult:
    """Judgments: the table that metrics read, and a frame with the model's output and details."""

    table: Judgments | Ratings | Outcomes
    frame: pl.DataFrame
    """The table's columns, then ``reason``, ``raw`` and the details of the kind."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Annotator(Task[AnnotationItem, AspectValues, AnnotationResult]):
    """A kind of judgment, a model to ask (`card` says what it can do), and texts to judge."""

    card: Card
    texts: TextLookup
    folder: str | Path | None = None
    """Folder with the user's own prompts."""

    kind: ClassVar[str]
    title: ClassVar[str]
    """A description in one line."""
    unit: ClassVar[AnnotationUnit] = "passage"
    aspects: ClassVar[tuple[str, ...]]
    """Names of the values."""
    prompts: ClassVar[tuple[str, ...]]
    """Names of its prompts."""
    scales: ClassVar[Mapping[str, LabelScale]] = {}
    """Labels of the replies, by the names of the prompts that ask for one."""
    asks_model: ClassVar[bool] = True
    """Whether it asks a model; one that only compares texts is built with `NO_MODEL`."""
    rounds: ClassVar[int] = 1
    """Maximum rounds of calls for an item; each depends on the responses to the one before."""
    details: ClassVar[Mapping[str, Any]] = {}
    """Columns of the frame in addition to the values, with their types."""
    slots: ClassVar[tuple[str, ...]] = ("query", "passage")
    """Slots that its prompts must have; other values are optional."""
    compares: ClassVar[tuple[str, ...]] = ()
    """Parts of a collection that it requires: ``answers``, ``subquestions``."""
    labelled: ClassVar[bool] = False
    """Whether values are labels rather than measurements."""
    takes_answers: ClassVar[bool] = False
    """Whether it can judge contexts by existing answers (its field ``book``)."""

    def __post_init__(self) -> None:
        validate_options(self, self.kind)
        self.check()
        for name in self.prompt_names:
            self._check_slots(name, self.template(name))

    def _check_slots(self, name: str, template: Template) -> None:
        """Refuse a prompt that lacks a slot, has an unknown one, or declares another kind of reply."""
        known = PROMPT_SLOTS.get(name, self.slots)
        names = template.names | ({"passage"} if "passages" in template.names else set())
        lacking = [slot for slot in self.slots if slot in known and slot not in names]
        fillable = {*known, *(["passages"] if "passage" in known else [])}
        strange = [slot for slot, what in template.slots.items() if slot not in fillable and what != "optional list"]
        if lacking or strange:
            words = [f"it has no slot for {format_list(lacking)}"] if lacking else []
            words += [f"nothing is known to fill {format_list(strange)} with"] if strange else []
            raise PromptError("; ".join(words), file=template.file, expected=f"slots for {', '.join(known)}")
        self.scale(name)

    def scale(self, name: str) -> LabelScale:
        """The labels of replies to a prompt, as the prompt writes them."""
        known = {"abstention": DECLINING, "answer": DECLINING, **self.scales}
        return known.get(name, NO_LABELS).for_prompt(self.template(name))

    def ask(self, name: str, **values: object) -> Prompt:
        """A prompt of this name with its slots filled. One passage can also fill the list of a prompt for several."""
        template = self.template(name)
        if "passage" in values:
            values.setdefault("passages", [{"text": values["passage"]}])
        return template.render({slot: value for slot, value in values.items() if slot in template.names})

    def check(self) -> None:
        """Refuse a model that lacks an ability."""

    @property
    def judged_unit(self) -> AnnotationUnit:
        """What is judged, with these settings."""
        return self.unit

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the values, with these settings."""
        return self.aspects

    @property
    def max_rounds(self) -> int:
        """Maximum rounds of calls for an item, with these settings."""
        return self.rounds

    @property
    def prompt_names(self) -> tuple[str, ...]:
        """Names of the prompts, with these settings."""
        return self.prompts

    def plan_notes(self, items: Sequence[AnnotationItem]) -> list[str]:
        """Notes on calls that a plan can't know yet."""
        return []

    def conclude(
        self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]
    ) -> tuple[pl.DataFrame, list[str]]:
        """Adjust all rows together, and return them with notes."""
        return frame, []

    def collect(
        self,
        items: Sequence[AnnotationItem],
        findings: Iterable[AspectValues | NoValue],
        controls: Sequence[AspectValues | NoValue],
    ) -> AnnotationResult:
        keys, table, source = UNIT_KEYS[self.judged_unit], UNIT_TABLES[self.judged_unit], self.source
        rows = [
            row
            for item, finding in zip(items, findings, strict=True)
            for row in aspect_rows({key: getattr(item, key) for key in keys}, self.value_names, finding, source)
        ]
        schema = {**dict.fromkeys([*keys, "aspect"], pl.String), **VALUE_COLUMNS, **self.details}
        frame, notes = self.conclude(frame_from_rows(rows, schema), controls)
        if table is Ratings:
            frame = frame.drop("aspect")
        what = "rating" if table is Ratings else "judgment"
        doubtful = judgment_warnings(frame, what) if self.labelled else []
        return AnnotationResult(table.trusted(frame), frame, (*missing_notes(frame, what), *notes, *doubtful))  # type: ignore[arg-type]

    @property
    def templates(self) -> dict[str, Template]:
        return {template.name: template for template in map(self.template, self.prompt_names)}

    @property
    def source(self) -> str:
        """The source of its values, in one line."""
        return describe_source(self.card, [self.template(name) for name in self.prompt_names])

    def template(self, name: str) -> Template:
        """A prompt by name; it is read once."""
        if name not in self._templates:
            self._templates[name] = self._load(name)
        return self._templates[name]

    @cached_property
    def _templates(self) -> dict[str, Template]:
        return {}

    def _load(self, name: str) -> Template:
        """A prompt from its file. The setting ``prompt``, where a kind has it, replaces the first prompt."""
        own: str = getattr(self, "prompt", "") if name == self.prompt_names[0] else ""
        return replace(prompts.load_prompt(own or name, self.folder, self.card.prompts), name=name)
