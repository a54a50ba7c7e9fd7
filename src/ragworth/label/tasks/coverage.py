"""``coverage``: how well does a passage answer a sub-question, from 0 to 5, and why? (CRUX, task 2)"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ragworth.label.tasks.answerability import REQUEST, SUBQUESTION, YES
from ragworth.label.tasks.contract import LabelItem, LabelTask, TableRow
from ragworth.label.tasks.fields import ChoiceField, ScaleOption, SpansField, TextField, Value
from ragworth.label.tasks.relevance import PASSAGE

if TYPE_CHECKING:
    from ragworth.label.sources import LabelSource

PASSAGES_PER_QUERY = 2
"""Passages of a query that are rated, drawn at random."""
ANCHORS = (
    ("No answer", "nothing in the passage has to do with the question"),
    ("Hardly", "the passage is about the topic, and only a guess would lead from it to an answer"),
    ("Slightly", "it hints at an answer, and the main part is missing"),
    ("Partly", "it answers the question, and something important is missing or unclear"),
    ("Mostly", "it answers the question, and only details are missing"),
    ("Fully", "it answers the question completely and clearly"),
)


class CoverageTask(LabelTask):
    """Ratings of passages by sub-question; each annotator gets two sub-questions a passage."""

    kind = "coverage"
    title = "How well does the passage answer the question?"
    instructions = (
        """\
Read the passage, then rate how well it alone answers the question. Use the whole scale.

"""
        + "".join(f"{at} {name}: {text}\n" for at, (name, text) in enumerate(ANCHORS))
        + """
Write in a few words why, or highlight the words that decided it.

Example. Question: Why was the launch delayed?

"The launch was moved to June because a valve leaked." → 5
"The launch was moved to June after problems with the tank." → 3: which problems?
"The launch is planned for June." → 0
"""
    )
    parts = (REQUEST, PASSAGE, SUBQUESTION)
    fields = (
        ChoiceField(
            "rating",
            "Rating",
            tuple(ScaleOption(str(at), name, str(at), text, float(at)) for at, (name, text) in enumerate(ANCHORS)),
        ),
        TextField("rationale", "Why?", max_length=2000),
        SpansField("support", "Highlights", ("passage",), help="the words that decided it"),
    )
    after = "answerability"
    names = ("query", "passage", "subquestion")

    def units(self, source: LabelSource) -> Iterator[dict[str, str]]:
        for query, passages in source.passages_by_query().items():
            drawn = _random(source.seed, query).sample(passages, min(PASSAGES_PER_QUERY, len(passages)))
            for passage in sorted(drawn, key=passages.index):
                for each in source.subquestions(query):
                    yield {"query": query, "passage": passage, "subquestion": each.id}

    def texts(self, meta: Mapping[str, str], source: LabelSource) -> dict[str, str]:
        request = source.texts.known_query(meta["query"])
        passage = source.texts.passage(meta["passage"])
        asked = source.texts.subquestion(meta["query"], meta["subquestion"])
        return ({"question": request} if request else {}) | {"passage": passage, "subquestion": asked}

    def rows(self, item: LabelItem, value: Value) -> list[TableRow]:
        return [TableRow("ratings", "rating", self.keys(item), self.main.option(value["rating"]).score)]

    def open_items(
        self, annotator: str, candidates: Sequence[LabelItem], earlier: Sequence[tuple[LabelItem, Value]], seed: int
    ) -> list[LabelItem]:
        """For each passage one sub-question that the annotator marked answerable in some report, and one that isn't.

        Where all or none are answerable, the passage has one item.
        """
        yes = {item.meta["subquestion"] for item, value in earlier if value["answerable"] == YES}
        no = {item.meta["subquestion"] for item, _ in earlier} - yes
        by_passage: dict[str, list[LabelItem]] = {}
        for item in candidates:
            by_passage.setdefault(item.meta["passage"], []).append(item)
        opened: list[LabelItem] = []
        for passage, mine in by_passage.items():
            draw = _random(seed, annotator, passage)
            for wanted in (yes, no):
                fitting = sorted((one for one in mine if one.meta["subquestion"] in wanted), key=lambda one: one.id)
                opened += [draw.choice(fitting)] if fitting else []
        return opened


def _random(*seed: object) -> random.Random:
    return random.Random(repr(seed))
