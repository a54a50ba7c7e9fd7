"""``question-soundness``: is a question of a test collection, such as one that a model wrote, fit to be asked?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ragworth.label.tasks.contract import ItemPart, LabelItem, LabelTask, TableRow
from ragworth.label.tasks.fields import ChoiceField, Requirement, ScaleOption, TextField, Value

if TYPE_CHECKING:
    from ragworth.label.sources import LabelSource


class QuestionSoundnessTask(LabelTask):
    """Whether a question, or the sub-question of a request, is sound; and what is wrong with it if not."""

    kind = "question-soundness"
    title = "Is this a sound question?"
    instructions = """\
Would a person ask this, and could two experts agree on its answer? The request, accepted answers and passage, where \
shown, are for reference: a question must make sense without them.

The question …
1 Sound: is clear, stands alone, and has one answer
2 Unclear: can't be understood without seeing the text it came from ("What did he say then?")
3 Several: asks several things, or has several right answers
4 Wrong premise: assumes something that isn't so
5 Trivial: can be answered without any document, or answers itself

Add what is wrong in a few words, if it isn't obvious.

Example.

"Who won the 1932 regatta in Kiel?" → Sound
"What happened on that day?" → Unclear
"When did the bridge, which was never built, open?" → Wrong premise
"""
    parts = (
        ItemPart("request", "Request", "question", optional=True),
        ItemPart("question", "Question", "subquestion"),
        ItemPart("accepted", "Accepted answers", "accepted", optional=True),
        ItemPart("passage", "Passage", "passage", optional=True),
    )
    fields = (
        ChoiceField(
            "soundness",
            "Soundness",
            (
                ScaleOption("sound", "Sound", "1", "clear, stands alone, one answer", 1.0),
                ScaleOption("unclear", "Unclear", "2", "needs the text it came from", 0.0),
                ScaleOption("several", "Several", "3", "asks several things", 0.0),
                ScaleOption("wrong-premise", "Wrong premise", "4", "assumes what isn't so", 0.0),
                ScaleOption("trivial", "Trivial", "5", "needs no document", 0.0),
            ),
        ),
        TextField("problem", "What is wrong?", max_length=2000),
    )
    rules = (
        Requirement("soundness", ("sound",), "problem", "A sound question has no problem: clear the text.", empty=True),
    )
    ordered = False
    names = ("query", "subquestion")
    optional_names = ("subquestion",)

    def units(self, source: LabelSource) -> Iterator[dict[str, str]]:
        """Sub-questions where a query has some, otherwise the query itself."""
        for query in source.queries:
            asked = source.subquestions(query)
            yield from ({"query": query, "subquestion": each.id} for each in asked)
            if not asked:
                yield {"query": query}

    def texts(self, meta: Mapping[str, str], source: LabelSource) -> dict[str, str]:
        query = source.texts.query(meta["query"])
        if "subquestion" in meta:
            return {"request": query, "question": source.texts.subquestion(meta["query"], meta["subquestion"])}
        accepted = source.texts.known_answers(meta["query"])
        passage = source.relevant_passage(meta["query"])
        return {
            "question": query,
            **({"accepted": "\n".join(accepted)} if accepted else {}),
            **({"passage": passage} if passage else {}),
        }

    def rows(self, item: LabelItem, value: Value) -> list[TableRow]:
        chosen = self.main.option(value["soundness"])
        return [TableRow("questions", "soundness", self.keys(item), chosen.score, chosen.value)]
