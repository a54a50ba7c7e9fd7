"""What a labelling task is.

A task says what an annotator sees (`parts`), what they fill in (`fields`, `rules`), which items come from a source, and
what a label means in ragworth's tables. To add one, write a file like `relevance.py` and a line in `LABEL_TASKS`, or an
entry point in the group ``ragworth.label_tasks``. Nothing here knows about the web site.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ragworth.calls.programs import NoValue
from ragworth.core.errors import quote_short
from ragworth.label.tasks.fields import TABLE_CONFIG, ChoiceField, LabelField, Requirement, Value, text_hash

if TYPE_CHECKING:
    from ragworth.label.sources import LabelSource

Role = Literal["question", "subquestion", "passage", "report", "answer", "accepted", "other"]
TableName = Literal["judgments", "ratings", "outcomes", "subquestions", "preferences", "questions", "custom"]


@dataclass(frozen=True)
class ItemPart:
    """A text of an item: ``name`` is its key in :attr:`LabelItem.parts`, ``role`` says how to show it.

    Optional parts may be missing from an item.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = TABLE_CONFIG

    name: str
    title: str
    role: Role = "other"
    optional: bool = False


@dataclass(frozen=True)
class LabelItem:
    """One screen.

    Attributes
    ----------
    id: unique in a project; the same input gives the same id.
    task: kind of the task.
    parts: texts shown, by name, in the task's order.
    group: what belongs together, mostly the query: agreement is resampled by group, and a task that opens after
        another one opens group by group.
    meta: hidden from annotators: query, passage, subquestion, system, … as strings; exports need it.
    gold: the right answer of an item that checks annotators; or None. Hidden.
    suggestion: a model's answer, which a project may show; or None.
    repeat_of: id of the item that this one repeats, to measure how far a person agrees with themselves. It is for those
        who labelled that item, later; or empty.
    stratum, probability: how the item was selected (`ragworth.label.selection`); a probability of None was not
        recorded, and such an item can't be used in unbiased estimates.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = TABLE_CONFIG

    id: str
    task: str
    parts: Mapping[str, str]
    group: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)
    gold: Value | None = None
    suggestion: Value | None = None
    repeat_of: str = ""
    stratum: str = ""
    probability: float | None = None

    @property
    def is_control(self) -> bool:
        """Whether the item checks annotators: it never counts in exported tables."""
        return self.gold is not None or bool(self.repeat_of)


@dataclass(frozen=True)
class TableRow:
    """What one label says in one of ragworth's tables.

    ``keys`` has the columns that name the judged thing (query, passage, subquestion, system, repeat, …), ``value`` its
    number, ``label`` its word where there is one.
    """

    table: TableName
    aspect: str
    keys: Mapping[str, str]
    value: float | None
    label: str | None = None


class LabelTask:
    """Base of all tasks. Subclasses set the attributes and implement `units`, `texts` and `rows`.

    Attributes
    ----------
    kind: short name, as in ``ragworth label new --task KIND``.
    title: one line.
    instructions: plain text with examples, shown beside the item with its line breaks.
    parts: what an item shows, in order.
    fields: what the annotator fills in, in order; the first one is the main one, of which agreement is computed.
    rules: what one field requires of another.
    after: kind of the task that has to be finished for a group before this one opens there; or empty. Such a task
        chooses each annotator's items by `open_items`.
    ordered: whether the values of the main field have an order.
    names: facts of `LabelItem.meta` that name the judged thing in tables, in order.
    optional_names: those of them that an item may lack.
    """

    kind: str
    title: str
    instructions: str
    parts: tuple[ItemPart, ...]
    fields: tuple[LabelField, ...]
    rules: tuple[Requirement, ...] = ()
    after: str = ""
    ordered: bool = True
    names: tuple[str, ...] = ()
    optional_names: tuple[str, ...] = ()

    @property
    def main(self) -> ChoiceField:
        """The field of which agreement is computed."""
        return next(each for each in self.fields if isinstance(each, ChoiceField))

    def validate(self, value: Any, item: LabelItem) -> list[str]:
        """Everything that is wrong with an answer to an item, in words for the annotator; empty if it is valid."""
        return self.field_problems(value, item) or [text for rule in self.rules for text in rule.problems(value)]

    def field_problems(self, value: Any, item: LabelItem) -> list[str]:
        """What is wrong with single fields, whatever the rules say: imported labels may lack highlights."""
        if not isinstance(value, Mapping):
            return [f"{quote_short(value)} is not an answer"]
        names = [each.name for each in self.fields]
        unknown = [f"there is no field {quote_short(name)}" for name in value if name not in names]
        return unknown + [text for each in self.fields for text in each.problems(value.get(each.name), item.parts)]

    def item_problems(self, item: LabelItem) -> list[str]:
        """Everything that is wrong with an item itself."""
        known = [part.name for part in self.parts]
        found = [f"no text {part.name!r}" for part in self.parts if not part.optional and part.name not in item.parts]
        found += [
            f"a text {quote_short(name)} that {self.kind} doesn't show" for name in item.parts if name not in known
        ]
        if not found:
            for name, value in (("gold", item.gold), ("suggestion", item.suggestion)):
                found += [f"{name}: {text}" for text in (self.validate(value, item) if value is not None else ())]
        return found

    def keys(self, item: LabelItem) -> dict[str, str]:
        """The columns that name the judged thing in tables."""
        return {name: item.meta[name] for name in self.names if name in item.meta}

    def missing_names(self, item: LabelItem) -> list[str]:
        """Facts without which a label of the item would be about nothing; items that check annotators need none."""
        needed = () if item.is_control else self.names
        return [name for name in needed if name not in self.optional_names and not item.meta.get(name)]

    def items(self, source: LabelSource) -> Iterator[LabelItem]:
        """The items that a source has for this task, in a fixed order; what lacks a text is counted as left out."""
        for meta in self.units(source):
            try:
                yield self.make_item(meta, self.texts(meta, source))
            except NoValue as missing:
                source.left_out[missing.status] += 1

    def make_item(self, meta: Mapping[str, str], parts: Mapping[str, str]) -> LabelItem:
        """An item of this task; the same ``meta`` gives the same id."""
        facts = json.dumps([self.kind, sorted(meta.items())], ensure_ascii=False)
        return LabelItem(text_hash(facts)[:16], self.kind, parts, meta.get("query", ""), meta)

    def units(self, source: LabelSource) -> Iterator[dict[str, str]]:
        """What there is to label, as `LabelItem.meta`."""
        raise NotImplementedError

    def texts(self, meta: Mapping[str, str], source: LabelSource) -> dict[str, str]:
        """The texts that an item shows; raises `NoValue` if one is missing."""
        raise NotImplementedError

    def rows(self, item: LabelItem, value: Value) -> list[TableRow]:
        """What a valid answer to an item says in ragworth's tables."""
        raise NotImplementedError

    def open_items(
        self, annotator: str, candidates: Sequence[LabelItem], earlier: Sequence[tuple[LabelItem, Value]], seed: int
    ) -> list[LabelItem]:
        """The items of a group that open for an annotator who has answered all ``earlier`` items of the group.

        ``candidates`` are the group's items of this task, ``earlier`` the items of the task `after` with this
        annotator's answers. The same arguments give the same items.
        """
        return list(candidates)

    def describe(self) -> dict[str, Any]:
        """The task as JSON, for the page."""
        return {
            "kind": self.kind,
            "title": self.title,
            "parts": [asdict(part) for part in self.parts],
            "fields": [asdict(each) for each in self.fields],
            "rules": [asdict(rule) for rule in self.rules],
            "after": self.after,
        }
