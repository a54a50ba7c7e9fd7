"""``relevance``: how relevant is a passage to a question, on a scale of 0 to 3?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ragworth.label.tasks.contract import ItemPart, LabelItem, LabelTask, TableRow
from ragworth.label.tasks.fields import ChoiceField, ScaleOption, Value

if TYPE_CHECKING:
    from ragworth.label.sources import LabelSource

QUESTION = ItemPart("question", "Question", "question")
PASSAGE = ItemPart("passage", "Passage", "passage")


class PassageTask(LabelTask):
    """Base of tasks about a question and a passage that some system showed."""

    parts = (QUESTION, PASSAGE)
    names = ("query", "passage")

    def units(self, source: LabelSource) -> Iterator[dict[str, str]]:
        for query, passage in source.pooled_passages():
            yield {"query": query, "passage": passage}

    def texts(self, meta: Mapping[str, str], source: LabelSource) -> dict[str, str]:
        return {"question": source.texts.query(meta["query"]), "passage": source.texts.passage(meta["passage"])}


class RelevanceTask(PassageTask):
    """Graded relevance of a passage, as in TREC's passage tracks."""

    kind = "relevance"
    title = "How relevant is the passage to the question?"
    instructions = """\
Read the question, then the whole passage. Judge only what the passage says. You don't need to check whether it is true.

The passage …
3 Perfect: answers the question fully and is about it
2 Good: answers the question, but the answer is hidden among other things or incomplete
1 Related: is about the topic and doesn't answer the question
0 Not relevant: has nothing to do with the question

Example. Question: When was the bridge opened?

"The bridge was opened on 3 May 1931." → 3
"After two years of repairs, the bridge, open since the early thirties, got a new deck." → 2
"The bridge is 420 metres long and has six lanes." → 1
"The museum opens at nine." → 0
"""
    fields = (
        ChoiceField(
            "relevance",
            "Relevance",
            (
                ScaleOption("0", "Not relevant", "0", "has nothing to do with the question", 0.0),
                ScaleOption("1", "Related", "1", "is about the topic and doesn't answer the question", 1.0),
                ScaleOption("2", "Good", "2", "answers the question partly, or among other things", 2.0),
                ScaleOption("3", "Perfect", "3", "answers the question fully and is about it", 3.0),
            ),
        ),
    )

    def rows(self, item: LabelItem, value: Value) -> list[TableRow]:
        return [TableRow("judgments", "relevance", self.keys(item), self.main.option(value["relevance"]).score)]
