"""``answer-grade``: is a system's answer correct, next to the accepted answers?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ragworth.formats.grades import THREE_WAY
from ragworth.label.tasks.contract import ItemPart, LabelItem, LabelTask, TableRow
from ragworth.label.tasks.fields import ChoiceField, ScaleOption, TextField, Value
from ragworth.label.tasks.relevance import QUESTION

if TYPE_CHECKING:
    from ragworth.label.sources import LabelSource

GRADES = {
    "correct": ("Correct", "says what an accepted answer says, in whatever words"),
    "partially-correct": ("Partly correct", "has a part of it, or adds something wrong"),
    "abstained": ("Abstained", "declines to answer"),
    "wrong": ("Wrong", "says something else"),
}


class AnswerGradeTask(LabelTask):
    """The grade of an answer: correct, partly correct, abstained or wrong."""

    kind = "answer-grade"
    title = "Is the answer correct?"
    instructions = """\
Compare the answer with the accepted answers. Its words, length and style don't matter.

The answer …
1 Correct: says what one of the accepted answers says; further true details do no harm
2 Partly correct: has a part of the accepted answer, or has all of it and something wrong beside it
3 Abstained: says that it doesn't know or that the documents don't say it, or is only NO-RESPONSE
4 Wrong: says something else, or several things one of which may be right

Without accepted answers, use what you know or can look up, and skip the item if you can't tell.

Example. Question: Which river flows through the town? Accepted: the Ilm

"It lies on the river Ilm, in Thuringia." → Correct
"The Ilm and the Danube." → Partly correct
"The documents don't mention a river." → Abstained
"The Saale." → Wrong
"""
    parts = (
        QUESTION,
        ItemPart("accepted", "Accepted answers", "accepted", optional=True),
        ItemPart("answer", "Answer", "answer"),
    )
    fields = (
        ChoiceField(
            "grade",
            "Grade",
            tuple(
                ScaleOption(value, label, str(key), anchor, THREE_WAY[value])
                for key, (value, (label, anchor)) in enumerate(GRADES.items(), 1)
            ),
        ),
        TextField("reason", "Why?", max_length=2000),
    )
    names = ("system", "query", "repeat")
    optional_names = ("repeat",)

    def units(self, source: LabelSource) -> Iterator[dict[str, str]]:
        for answer in source.written_answers:
            yield {"system": answer.system, "query": answer.query, "repeat": answer.repeat}

    def texts(self, meta: Mapping[str, str], source: LabelSource) -> dict[str, str]:
        accepted = source.texts.known_answers(meta["query"])
        return {
            "question": source.texts.query(meta["query"]),
            **({"accepted": "\n".join(accepted)} if accepted else {}),
            "answer": source.answer_text(meta["system"], meta["query"], meta["repeat"]),
        }

    def rows(self, item: LabelItem, value: Value) -> list[TableRow]:
        chosen = self.main.option(value["grade"])
        return [TableRow("outcomes", "human", self.keys(item), chosen.score, chosen.value)]
