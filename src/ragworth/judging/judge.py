"""Judges: tasks that give values to passages, contexts or answers. Annotators and graders are judges.

They differ in what an item is, and in the table that the findings go to. A judge is a dataclass and a line in
`ANNOTATORS` or `GRADERS`. Its fields made with `option` are its settings, in Python and on the command line. A
`LabelJudge` asks for a label, and needs no more than a prompt that declares labels and scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import polars as pl

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.core.errors import (
    InputError,
    MissingInputError,
    PromptError,
    format_count,
    format_list,
    give_input,
)
from ragworth.data import OK, TRUNCATED, Judgments, Outcomes, Ratings, Table
from ragworth.judging.contract import ItemT, Task, option, validate_options
from ragworth.judging.findings import (
    UNFIT_MODEL,
    VALUE_COLUMNS,
    AspectValues,
    aspect_rows,
    describe_source,
    fold_repeats,
    frame_from_rows,
    judgment_warnings,
    missing_notes,
    repeat_notes,
    value_unless_cut,
)
from ragworth.judging.labels import (
    DECLINING,
    LABEL_METHODS,
    NO_LABELS,
    RATED_ANSWERABILITY_NOTE,
    RATING_SCALE,
    LabelMethod,
    LabelResult,
    LabelScale,
    ask_answerability,
    ask_label,
    choose_label_method,
    declining_label,
)
from ragworth.judging.text_lookup import UNKNOWN_CONTEXT, Answer, AnswerBook, TextLookup
from ragworth.llm import prompts
from ragworth.llm.contract import Card, Generate, Generated, Output, Prompt
from ragworth.llm.prompts.template import Template
from ragworth.text_match.sentences import without_citations

NO_MODEL = Card("none", "no model")
"""The card of a judge that asks no model."""

PROMPT_SLOTS = {
    "abstention": ("query", "passage"),
    "relevance": ("query", "passage", "answers?"),
    "relevance-graded": ("query", "passage"),
    "rating": ("subquestion", "passage"),
    "answer": ("query", "passages"),
    "reply": ("query", "passages"),
    "reply-alone": ("query",),
    "grade": ("query", "answers?", "answer"),
    "ideal": ("query", "answer", "ideal"),
    "support": ("query?", "passages", "statement"),
}
"""What prompts are filled with. A prompt may leave out a slot with a question mark."""

Unit = Literal["passage", "rating", "context", "answer"]
"""What is judged: a passage for a query, a passage for a sub-question, a whole context, or an answer."""


class UnitTable(NamedTuple):
    """The table that findings go to: its keys, its class, and what a row and a value are called."""

    keys: tuple[str, ...]
    table: type[Table]
    row: str
    value: str


UNITS: Mapping[Unit, UnitTable] = {
    "passage": UnitTable(("query", "passage"), Judgments, "judgment", "judgment"),
    "rating": UnitTable(("query", "passage", "subquestion"), Ratings, "rating", "rating"),
    "context": UnitTable(("system", "query"), Outcomes, "judgment", "judgment"),
    "answer": UnitTable(("system", "query", "repeat"), Outcomes, "outcome", "grade"),
}


class AnnotationItem(NamedTuple):
    """A passage or context to judge, by its ids."""

    query: str
    passage: str = ""
    subquestion: str = ""
    system: str = ""
    passages: tuple[str, ...] = ()
    """The passages of a context, in the order shown."""


@dataclass(frozen=True)
class JudgingResult:
    """The table that metrics and studies read, and frames with what is known of each value beside it."""

    table: Judgments | Ratings | Outcomes
    frame: pl.DataFrame
    """The table's columns; then ``reason``, ``raw`` and the details of the kind. Outcomes of answers also have
    ``repeats`` of ``of`` answers that have a value and the value of ``each``; their details are those of the only
    answer, or the mean over the answers for those that are averaged."""
    notes: tuple[str, ...] = ()
    answers: pl.DataFrame = field(default_factory=pl.DataFrame)
    """The same for every single answer, with its details; empty where passages or contexts were judged."""


@dataclass(frozen=True)
class Judge(Task[ItemT, AspectValues, JudgingResult]):
    """A kind of judgment, a model to ask (`card` says what it can do), and texts to judge."""

    card: Card
    texts: TextLookup
    folder: str | Path | None = None
    """Folder with the user's own prompts."""
    book: AnswerBook = field(default_factory=AnswerBook, kw_only=True)
    """Answers: those to grade, or those that were given."""

    kind: ClassVar[str]
    title: ClassVar[str]
    """A description in one line."""
    version: ClassVar[int] = 1
    """Incremented when the same items get other values, so that workspaces judge them again."""
    unit: ClassVar[Unit]
    aspects: ClassVar[tuple[str, ...]]
    """Names of the values."""
    asks_model: ClassVar[bool] = True
    """Whether it asks a model; one that only compares texts is built with `NO_MODEL`."""
    prompts: ClassVar[tuple[str, ...]] = ()
    """Names of its prompts, or files."""
    slots: ClassVar[tuple[str, ...]] = ()
    """What prompts without an entry in `PROMPT_SLOTS` are filled with."""
    scales: ClassVar[Mapping[str, LabelScale]] = {}
    """Labels of the replies, by the names of the prompts that ask for one."""
    rounds: ClassVar[int] = 1
    """Maximum rounds of calls for an item; each depends on the responses to the one before."""
    single: ClassVar[bool] = True
    """Whether it makes one call per round for an item."""
    details: ClassVar[Mapping[str, Any]] = {}
    """Columns of the frame in addition to the values, with their types."""
    averaged: ClassVar[tuple[str, ...]] = ()
    """Details that are averaged if a query has several answers."""
    compares: ClassVar[tuple[str, ...]] = ()
    """Parts of a collection that it requires: ``queries``, ``answers``, ``subquestions``."""
    labelled: ClassVar[bool] = False
    """Whether values are labels rather than measurements."""
    takes_answers: ClassVar[bool] = False
    """Whether an annotator can judge contexts by existing answers."""

    def __post_init__(self) -> None:
        validate_options(self, self.kind)
        self.check()
        for name in self.prompt_names:
            self._check_slots(name, self.template(name))

    def check(self) -> None:
        """Refuse a model that lacks an ability, and a collection that lacks a required part."""

    def value(self, item: ItemT) -> AspectValues:
        """Judge one item without a model."""
        raise NotImplementedError

    def program(self, item: ItemT) -> Program[AspectValues]:
        """Judge one item, asking the model. `NoValue`, raised anywhere in it, becomes the status of the item's rows."""
        yield from ()
        return self.value(item)

    def fill(self, item: ItemT, slot: str) -> object:
        """Return what fills a slot of a prompt for an item."""
        raise NotImplementedError

    def judged(self, item: ItemT) -> bool:
        """Return whether an item gets a row; answers that others are compared with don't, and count as controls."""
        return True

    def unfit_reason(self, rows: Sequence[Mapping[str, Any]], controls: Sequence[AspectValues | NoValue]) -> str:
        """Say why the model is unfit to judge, by the rows and the results of `controls`; empty if it is fit."""
        return ""

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        """Notes on the rows of all items, and on the controls."""
        return judgment_warnings(frame, UNITS[self.judged_unit].value) if self.labelled else []

    def plan_notes(self, items: Sequence[ItemT]) -> list[str]:
        """Notes on calls that a plan can't know yet."""
        return []

    @property
    def judged_unit(self) -> Unit:
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

    @property
    def expected_repeats(self) -> int:
        """Number of answers per query that an outcome should average; 0 for any."""
        return 0

    @property
    def source(self) -> str:
        """The source of its values, in one line."""
        return describe_source(self.card, list(map(self.template, self.prompt_names))) if self.asks_model else self.kind

    @property
    def key_sources(self) -> list[str]:
        """What identifies its values in the key of a stage: their source, and the version after the first."""
        return [self.source, *([f"version {self.version}"] if self.version > 1 else [])]

    def origin(self, item: ItemT) -> str:
        """Return what the source of an item's values ends with."""
        return ""

    def write(self, name: str, prompt: Prompt, length: int) -> Program[tuple[Output, Generated]]:
        """Have the model write a reply; return it up to the prompt's stop text, and all of the response."""
        reply = self.template(name).reply
        (outcome,) = yield [Generate(prompt, max_tokens=length, stop=reply.stop)]
        made = require_response(outcome, Generated)
        return reply.trim(made.outputs[0]), made

    @property
    def templates(self) -> dict[str, Template]:
        return {template.name: template for template in map(self.template, self.prompt_names)}

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
        return replace(prompts.load_prompt(own or name, self.folder, self.card.prompts), name=Path(name).stem)

    def _check_slots(self, name: str, template: Template) -> None:
        """Refuse a prompt that lacks a slot, has an unknown one, or declares another kind of reply."""
        slots = PROMPT_SLOTS.get(name, self.slots)
        known = [slot.removesuffix("?") for slot in slots]
        names = template.names | ({"passage"} if "passages" in template.names else set())
        lacking = [slot for slot in slots if not slot.endswith("?") and slot not in names]
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

    def collect(
        self,
        items: Sequence[ItemT],
        findings: Iterable[AspectValues | NoValue],
        controls: Sequence[AspectValues | NoValue],
    ) -> JudgingResult:
        keys, source, rows, controls = UNITS[self.judged_unit].keys, self.source, [], list(controls)
        for item, finding in zip(items, findings, strict=True):
            if self.judged(item):
                ids = {key: getattr(item, key) for key in keys}
                rows += aspect_rows(ids, self.value_names, finding, source, self.origin(item))
            else:
                controls.append(finding)
        if reason := self.unfit_reason(rows, controls):
            withdrawn = {"value": None, "status": UNFIT_MODEL, "reason": reason}
            rows = [row | withdrawn if row["status"] == OK else row for row in rows]
        key_types = {key: pl.Int64 if key == "repeat" else pl.String for key in (*keys, "aspect")}
        frame = frame_from_rows(rows, {**key_types, **VALUE_COLUMNS, **self.details})
        return self.result(items, rows, frame, self.notes(frame, controls))

    def result(
        self, items: Sequence[ItemT], rows: Sequence[Mapping[str, Any]], frame: pl.DataFrame, notes: list[str]
    ) -> JudgingResult:
        """Build the result from the rows of all items, and the frame of these."""
        raise NotImplementedError


@dataclass(frozen=True)
class Annotator(Judge[AnnotationItem]):
    """Judges passages, passages for sub-questions, or contexts."""

    unit: ClassVar[Unit] = "passage"
    slots: ClassVar[tuple[str, ...]] = ("query", "passage", "answers?")

    def fill(self, item: AnnotationItem, slot: str) -> object:
        if slot == "answers":
            return self.texts.known_answers(item.query)
        if slot == "subquestion":
            return self.texts.subquestion(item.query, item.subquestion)
        if slot == "passages":
            return [{"text": self.texts.passage(passage)} for passage in item.passages or (item.passage,) if passage]
        return self.texts.passage(item.passage) if slot == "passage" else self.texts.query(item.query)

    def result(
        self, items: Sequence[AnnotationItem], rows: Sequence[Mapping[str, Any]], frame: pl.DataFrame, notes: list[str]
    ) -> JudgingResult:
        unit = UNITS[self.judged_unit]
        frame = frame.drop("aspect") if unit.table is Ratings else frame
        table: Any = unit.table.trusted(frame)
        return JudgingResult(table, frame, (*missing_notes(frame, unit.row), *notes))


@dataclass(frozen=True)
class Grader(Judge[Answer]):
    """Grades answers. Those of one query (repeats) make one outcome: the mean of those that have a value."""

    citations: bool = option(True, "leave citations such as [2] in the answers; without, they are taken out first")

    unit: ClassVar[Unit] = "answer"
    asks_model: ClassVar[bool] = False
    slots: ClassVar[tuple[str, ...]] = ("query", "answer", "answers?")

    def items(self, answers: Sequence[Answer]) -> list[Answer]:
        """The answers to judge, controls among them; refused where none gets an outcome, or nothing is known of any."""
        judged = [each for each in answers if self.judged(each)]
        if not judged:
            raise InputError(
                "there are no answers to grade",
                expected="answers of a system that is not only there for others to be held against",
            )
        self.check_for(judged)
        return [each for each in answers if self.judged(each) or self.control(each)]

    def check_for(self, answers: Sequence[Answer]) -> None:
        """Refuse answers if nothing is known that any of them could be graded by."""
        if "queries" in self.compares:
            self.require_inputs(answers, self.texts.query, "texts of queries", "queries")
        if "answers" in self.compares:
            self.require_inputs(answers, self.texts.answers, "accepted answers", "answers")

    def control(self, answer: Answer) -> bool:
        """Return whether an answer without an outcome is judged anyway, as a control."""
        return False

    def require_inputs(
        self, answers: Sequence[Answer], lookup: Callable[[str], object], what: str, *inputs: str
    ) -> None:
        """Refuse answers if ``lookup`` finds nothing for any of their queries."""
        for query in dict.fromkeys(each.query for each in answers):
            try:
                lookup(query)
            except NoValue:
                continue
            return
        raise MissingInputError(self.kind, what, "no query of these answers has any", give_input(*inputs))

    def fill(self, item: Answer, slot: str) -> object:
        if slot == "answers":
            return self.texts.known_answers(item.query)
        return self.text(item) if slot == "answer" else self.texts.query(item.query)

    def text(self, answer: Answer) -> str:
        """The text of an answer; raises `NoValue` if there is none."""
        return answer.words if self.citations else without_citations(answer.words) or answer.words

    def shown_passages(self, answer: Answer) -> tuple[str, ...]:
        """The passages that an answer was written from; raises `NoValue` if unknown."""
        shown = self.book.shown(answer.system, answer.query)
        if shown is None:
            words = f"it is not known which passages {answer.system!r} showed for {answer.query!r}"
            raise NoValue(UNKNOWN_CONTEXT, words)
        return shown

    def origin(self, item: Answer) -> str:
        return f" ← {item.source}" if item.source != "given" else ""

    def result(
        self, items: Sequence[Answer], rows: Sequence[Mapping[str, Any]], frame: pl.DataFrame, notes: list[str]
    ) -> JudgingResult:
        outcomes = fold_repeats(rows, self.details, self.averaged, self.expected_repeats)
        ended = sum(each.status == TRUNCATED for each in items if self.judged(each))
        words = f"{format_count(ended, 'answer')} that ended at the greatest length, graded all the same"
        said = (*missing_notes(outcomes, "outcome"), *repeat_notes(outcomes), *([words] if ended else []), *notes)
        return JudgingResult(Outcomes.trusted(outcomes, said), outcomes, said, frame)


@dataclass(frozen=True)
class LabelJudge(Judge[ItemT]):
    """Asks for one of the labels in `scales`, or one that its prompt declares with its score.

    Such a prompt has ``labels: GOOD = 1, BAD = 0`` in its section ``[reply]``.

    With `Annotator` or `Grader` as the second base, a class needs no more than names and the option ``prompt``.
    """

    how: str = option(
        "auto", "by label probabilities, by what the model writes, or by whether it declines", choices=LABEL_METHODS
    )
    length: int = option(32, "maximum tokens of what the model writes", low=1)

    asks_model: ClassVar[bool] = True
    labelled: ClassVar[bool] = True
    answerable: ClassVar[bool] = False
    """Whether a model that was taught to decline is asked instead whether it answers from the passage."""
    details: ClassVar[Mapping[str, Any]] = {
        "p": pl.Float64,
        "expected": pl.Float64,
        "mass": pl.Float64,
        "cut": pl.Int64,
    }

    def check(self) -> None:
        _ = self.way

    @cached_property
    def way(self) -> LabelMethod:
        """The method for this model."""
        own_prompt = bool(getattr(self, "prompt", ""))
        return choose_label_method(self.card, self.how, self.kind, answerable=self.answerable, own_prompt=own_prompt)

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return ("abstention",) if self.way == "answerability" else self.prompts[:1]

    @property
    def answerability_scale(self) -> LabelScale:
        """The scale that the probability of an answer is mapped to."""
        return self.scales[self.prompts[0]]

    def scale(self, name: str) -> LabelScale:
        return super().scale(name) if name in (*self.scales, "abstention") else LabelScale.declared(self.template(name))

    def program(self, item: ItemT) -> Program[AspectValues]:
        (name,) = self.prompt_names
        slots = [slot.removesuffix("?") for slot in PROMPT_SLOTS.get(name, self.slots)]
        return self.finding((yield from self.label(**{slot: self.fill(item, slot) for slot in slots})))

    def label(self, **values: object) -> Program[LabelResult]:
        """Ask for the label of one item, by what fills the prompt."""
        (name,) = self.prompt_names
        prompt = self.ask(name, **values)
        if self.way == "answerability":
            word = declining_label(self.template(name))
            return (yield from ask_answerability(prompt, self.answerability_scale, self.card, word))
        return (yield from ask_label(prompt, self.scale(name), self.card, self.way, length=self.length))

    def finding(self, found: LabelResult, source: str = "") -> AspectValues:
        """Return the value with its details; ``source``: what to add to the source of the value."""
        shares = found.probabilities
        facts = {
            "raw": found.raw,
            "label": found.label.lower(),
            "p": shares[0] / (found.mass or 1.0) if shares is not None and len(shares) == 2 else None,
            "expected": found.expected if shares is None or len(shares) != 2 else None,
            "mass": found.mass,
            "probabilities": list(shares) if shares is not None else None,
            "cut": found.usage.cut,
        }
        detail = {name: facts[name] for name in ("raw", *self.details) if name in facts}
        value = value_unless_cut(found.value, found.usage, getattr(self, "keep_cut", False))
        return AspectValues({self.aspects[0]: value}, detail, " · ".join(filter(None, (found.estimator, source))))

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        mapped = self.way == "answerability" and self.answerability_scale is RATING_SCALE
        return [*([RATED_ANSWERABILITY_NOTE] if mapped else []), *super().notes(frame, controls)]
