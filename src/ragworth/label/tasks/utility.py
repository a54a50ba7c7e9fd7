"""``utility``: what would a passage do for somebody who has to answer the question from it?"""

from __future__ import annotations

from ragworth.label.tasks.contract import LabelItem, TableRow
from ragworth.label.tasks.fields import ChoiceField, Requirement, ScaleOption, SpansField, Value
from ragworth.label.tasks.relevance import PassageTask

HELPFUL = ("answers", "partly")


class UtilityTask(PassageTask):
    """Whether a passage answers, partly answers, misleads or is useless, with the span that shows it."""

    kind = "utility"
    title = "What is the passage worth to somebody who answers the question from it?"
    instructions = """\
Imagine that you have to answer the question and this passage is all you have.

The passage …
1 Answers: has the answer; highlight it
2 Partly: has a part of the answer, or the answer with an important gap; highlight that part
3 Misleads: would lead you to a wrong answer: it looks like an answer and isn't one
4 Useless: neither helps nor misleads

Select text with the mouse to highlight it, or press h and use the arrow keys. Several highlights are fine.

Example. Question: Who designed the city's town hall?

"The town hall was designed by Ida Berg." → Answers; highlight "Ida Berg"
"The architect of the town hall was one of two sisters from Lund." → Partly; highlight "two sisters from Lund"
"The town hall of the neighbouring city was designed by Karl Holm." → Misleads
"The town hall square has a market on Fridays." → Useless
"""
    fields = (
        ChoiceField(
            "utility",
            "Utility",
            (
                ScaleOption("answers", "Answers", "1", "has the answer", 1.0),
                ScaleOption("partly", "Partly", "2", "has a part of the answer", 0.5),
                ScaleOption("misleads", "Misleads", "3", "would lead to a wrong answer", -1.0),
                ScaleOption("useless", "Useless", "4", "neither helps nor misleads", 0.0),
            ),
        ),
        SpansField("support", "Supporting text", ("passage",), help="the text that shows it"),
    )
    rules = (Requirement("utility", HELPFUL, "support", "Highlight the text that answers the question."),)

    def rows(self, item: LabelItem, value: Value) -> list[TableRow]:
        keys = self.keys(item)
        chosen = self.main.option(value["utility"])
        helps = float(chosen.value in HELPFUL)
        return [
            TableRow("judgments", "human-utility", keys, chosen.score, chosen.value),
            TableRow("judgments", "relevance", keys, helps),
        ]
