"""``preference`` and ``context-preference``: which of two answers, or of two contexts, is better?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING

from ragworth.label.tasks.contract import ItemPart, LabelItem, LabelTask, TableRow
from ragworth.label.tasks.fields import ChoiceField, ScaleOption, TextField, Value
from ragworth.label.tasks.relevance import QUESTION

if TYPE_CHECKING:
    from ragworth.label.sources import LabelSource

IDENTICAL = "both sides are the same"
SIDES = ("first", "second")
SCORES = {"first": 1.0, "tie": 0.5, "second": 0.0}


class PreferenceTask(LabelTask):
    """Two systems' answers to a question, side by side in random order."""

    kind = "preference"
    title = "Which answer is better?"
    instructions = """\
Which answer would you rather have got? Judge in this order: is it correct, is it complete, is it clear. Length and \
style alone don't count. Which side a system is on is random.

1 First or 2 Second if one is better
3 No difference if you can't tell, or they say the same

Example. Question: How long does the battery last?

First: "About ten hours." Second: "Long enough for a day, and it charges fast!" → First: it says how long.
"""
    parts = (
        QUESTION,
        ItemPart("first", "First", "answer"),
        ItemPart("second", "Second", "answer"),
    )
    fields = (
        ChoiceField(
            "better",
            "Better",
            (
                ScaleOption("first", "First", "1", "the first is better", 1.0),
                ScaleOption("second", "Second", "2", "the second is better", 0.0),
                ScaleOption("tie", "No difference", "3", "neither is better", 0.5),
            ),
        ),
        TextField("reason", "Why?", max_length=2000),
    )
    names = ("query", "first", "second")

    def units(self, source: LabelSource) -> Iterator[dict[str, str]]:
        """Pairs of systems by query, the one that comes first drawn by the seed."""
        for query, systems in self.sides(source).items():
            for pair in combinations(sorted(systems), 2):
                if systems[pair[0]] == systems[pair[1]]:
                    source.left_out[IDENTICAL] += 1
                    continue
                sides = list(pair)
                random.Random(repr((source.seed, query, pair))).shuffle(sides)
                yield {"query": query, "first": sides[0], "second": sides[1]}

    def sides(self, source: LabelSource) -> dict[str, dict[str, str]]:
        """What is compared, by query and system."""
        answers = source.first_answers.items()
        return {query: {name: one.text.strip() for name, one in mine.items()} for query, mine in answers}

    def texts(self, meta: Mapping[str, str], source: LabelSource) -> dict[str, str]:
        question = source.texts.query(meta["query"])
        return {"question": question, **{side: self.side(meta[side], meta["query"], source) for side in SIDES}}

    def side(self, system: str, query: str, source: LabelSource) -> str:
        return source.first_answers[query][system].text

    def keys(self, item: LabelItem) -> dict[str, str]:
        """The pair in the order of the names, so that its sides don't matter."""
        first, second = sorted((item.meta["first"], item.meta["second"]))
        return {"query": item.meta["query"], "system": first, "other": second}

    def rows(self, item: LabelItem, value: Value) -> list[TableRow]:
        """The share of the preference that the pair's first system by name gets, whichever side it was on."""
        keys = self.keys(item)
        score = SCORES[value["better"]]
        score = score if item.meta["first"] == keys["system"] else 1 - score
        label = {1.0: keys["system"], 0.0: keys["other"]}.get(score, "tie")
        return [TableRow("preferences", self.kind, keys, score, label)]


class ContextPreferenceTask(PreferenceTask):
    """Two systems' contexts of a question, side by side in random order."""

    kind = "context-preference"
    title = "From which passages would you rather answer the question?"
    instructions = """\
From which list of passages could you answer the question better? Judge in this order: does it have the answer, how \
much of it, and how much else you have to read, or could be misled by. Which side a system is on is random.

1 First or 2 Second if one is better
3 No difference if you can't tell

Example. Question: When does the library close?

First: one passage with the opening hours. Second: the same passage, and four about the library's history. → First: \
the same answer in less text.
"""
    parts = (
        QUESTION,
        ItemPart("first", "First", "passage"),
        ItemPart("second", "Second", "passage"),
    )

    def sides(self, source: LabelSource) -> dict[str, dict[str, str]]:
        shown = source.shown_passages.items()
        return {query: {name: repr(passages) for name, passages in mine.items()} for query, mine in shown}

    def side(self, system: str, query: str, source: LabelSource) -> str:
        return source.context_text(system, query)
