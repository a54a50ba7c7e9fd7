"""``answerability``: can a sub-question be answered from a report, or from a passage, and where? (CRUX, task 1)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ragworth.label.tasks.contract import ItemPart, LabelItem, LabelTask, TableRow
from ragworth.label.tasks.fields import ChoiceField, Requirement, ScaleOption, SpansField, Value

if TYPE_CHECKING:
    from ragworth.label.sources import LabelSource

REQUEST = ItemPart("question", "Request", "question", optional=True)
SUBQUESTION = ItemPart("subquestion", "Question", "subquestion")
INSTRUCTIONS = """\
Read the whole {text} first. Then decide whether it alone answers the question. The request above it is for \
reference only.

1 Answerable: the {text} has enough information to answer the question. Highlight the words that do: exact phrases \
or sentences, as many as it takes.
2 Not answerable: it has not. Nothing is highlighted.

You don't need to check whether the {text} is true, and don't use what you know yourself.

Example. Question: How many people lost their homes in the flood?

"The flood left about 1,200 people homeless." → Answerable; highlight "about 1,200 people homeless"
"The flood destroyed many houses." → Not answerable: it doesn't say how many people
"""
YES, NO = "answerable", "unanswerable"


class AnswerabilityTask(LabelTask):
    """Whether a system's answer, a report, answers each sub-question."""

    kind = "answerability"
    title = "Does the report answer the question?"
    instructions = INSTRUCTIONS.format(text="report")
    parts = (REQUEST, ItemPart("report", "Report", "report"), SUBQUESTION)
    fields = (
        ChoiceField(
            "answerable",
            "Answerable",
            (
                ScaleOption(YES, "Answerable", "1", "the text has enough information", 1.0),
                ScaleOption(NO, "Not answerable", "2", "it has not", 0.0),
            ),
        ),
        SpansField("nuggets", "Highlights", ("report",), help="the words that answer the question"),
    )
    rules = (
        Requirement("answerable", (YES,), "nuggets", "Highlight the words that answer the question."),
        Requirement("answerable", (NO,), "nuggets", "Remove the highlights, or choose “Answerable”.", empty=True),
    )
    names: tuple[str, ...] = ("system", "query", "repeat", "subquestion")
    optional_names: tuple[str, ...] = ("system", "repeat")

    def units(self, source: LabelSource) -> Iterator[dict[str, str]]:
        for answer in source.written_answers:
            for each in source.subquestions(answer.query):
                meta = {"system": answer.system, "query": answer.query, "repeat": answer.repeat}
                yield {**meta, "subquestion": each.id}

    def texts(self, meta: Mapping[str, str], source: LabelSource) -> dict[str, str]:
        request = source.texts.known_query(meta["query"])
        report = source.answer_text(meta["system"], meta["query"], meta["repeat"])
        asked = source.texts.subquestion(meta["query"], meta["subquestion"])
        return ({"question": request} if request else {}) | {"report": report, "subquestion": asked}

    def rows(self, item: LabelItem, value: Value) -> list[TableRow]:
        score = self.main.option(value["answerable"]).score
        return [TableRow("subquestions", "answerability", self.keys(item), score)]


class PassageAnswerabilityTask(AnswerabilityTask):
    """Whether a passage answers each sub-question."""

    kind = "passage-answerability"
    title = "Does the passage answer the question?"
    instructions = INSTRUCTIONS.format(text="passage")
    parts = (REQUEST, ItemPart("passage", "Passage", "passage"), SUBQUESTION)
    fields = (
        AnswerabilityTask.fields[0],
        SpansField("nuggets", "Highlights", ("passage",), help="the words that answer the question"),
    )
    names = ("query", "passage", "subquestion")
    optional_names = ()

    def units(self, source: LabelSource) -> Iterator[dict[str, str]]:
        for query, passage in source.pooled_passages():
            for each in source.subquestions(query):
                yield {"query": query, "passage": passage, "subquestion": each.id}

    def texts(self, meta: Mapping[str, str], source: LabelSource) -> dict[str, str]:
        request = source.texts.known_query(meta["query"])
        passage = source.texts.passage(meta["passage"])
        asked = source.texts.subquestion(meta["query"], meta["subquestion"])
        return ({"question": request} if request else {}) | {"passage": passage, "subquestion": asked}
