"""A small source, and people who label it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragworth.data import Answers, Contexts, Judgments
from ragworth.data.collection import Collection
from ragworth.label.labels import Label, Labels
from ragworth.label.sources import LabelSource
from ragworth.label.tasks import LabelItem, LabelTask
from ragworth.label.tasks.fields import ChoiceField, SpansField, make_span

CONTEXTS = [("bm25", "q1", 1, "p1"), ("bm25", "q1", 2, "p2"), ("bm25", "q2", 1, "p3"), ("dense", "q1", 1, "p2")]
CONTEXTS += [("dense", "q1", 2, "p4"), ("dense", "q2", 1, "p1")]
ANSWERS = [
    ("bm25", "q1", "The Ilm."),
    ("dense", "q1", "No idea."),
    ("bm25", "q2", "In 1931"),
    ("dense", "q2", "In 1931"),
]


def small_source(**facts: Any) -> LabelSource:
    """Two queries, four passages, two systems with answers, and two sub-questions of each query."""
    queries = {"query": ["q1", "q2"], "text": ["Which river?", "When was it opened?"]}
    passages = {
        "passage": ["p1", "p2", "p3", "p4"],
        "text": ["It lies on the Ilm 🙂.", "A river.", "In 1931.", "הנהר 川"],
    }
    subquestions = [(query, str(at), f"Part {at} of {query}?") for query in ("q1", "q2") for at in (0, 1)]
    collection = Collection.of(
        queries=queries,
        passages=passages,
        answers={"query": ["q1", "q1"], "text": ["the Ilm", "Ilm"]},
        subquestions=dict(
            zip(("query", "subquestion", "text"), map(list, zip(*subquestions, strict=True)), strict=True)
        ),
        relevance=Judgments({"query": ["q2"], "passage": ["p3"], "relevance": [1]}),
    )
    columns = dict(zip(("system", "query", "rank", "passage"), map(list, zip(*CONTEXTS, strict=True)), strict=True))
    answers = [
        {"system": s, "query": q, "repeat": 0, "text": text, "tokens": None, "status": "ok", "source": "test"}
        for s, q, text in ANSWERS
    ]
    return LabelSource(collection, Contexts(columns), Answers(answers), **facts)


def any_value(task: LabelTask, item: LabelItem, choice: int) -> dict[str, Any]:
    """A valid answer with the n-th option of the scale."""
    value: dict[str, Any] = {task.main.name: task.main.options[choice].value}
    for field in task.fields:
        if isinstance(field, SpansField):
            part = field.parts[0]
            value[field.name] = [make_span(part, item.parts[part], 0, len(item.parts[part]))]
    return value if not task.validate(value, item) else {task.main.name: value[task.main.name]}


def labels_of(task: LabelTask, items: Sequence[LabelItem], choices: Mapping[str, Sequence[int]]) -> Labels:
    """Each person's choice for each item, by number of the option."""
    return Labels(
        Label(person, item.id, any_value(task, item, choice), seconds=2.0)
        for person, mine in choices.items()
        for item, choice in zip(items, mine, strict=True)
    )


def scale_size(task: LabelTask) -> int:
    field = task.main
    assert isinstance(field, ChoiceField)
    return len(field.options)
