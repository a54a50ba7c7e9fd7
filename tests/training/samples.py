"""An invented valley full of mills: each has one question, whose answer stands in one sentence of its passage."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from training.reader.sources import Question

TOWNS: tuple[str, ...] = ("Aldmoor", "Birkby", "Corran", "Dunsey", "Elvet", "Farrow", "Garth", "Holme")
TOWNS += ("Ibsley", "Jarrow", "Kelby", "Larkmoor", "Marske", "Norby", "Oxley", "Penrith")
RIVERS = ("Elm", "Yarrow", "Stell", "Wend")
NAMES = ("Ann Lee", "Bob Ray", "Cleo Finch", "Dan Hale", "Eve Moss", "Finn Orr", "Gil Pike", "Ida Rooke")


def mill(number: int) -> Question:
    """Who built it, for even numbers; when it was built, for odd ones. Four mills share a river, and so a title."""
    town, river, name, year = TOWNS[number], RIVERS[number // 4], NAMES[number // 2], str(1801 + 7 * number)
    passage = (
        f"The mill of {town} stands by the river {river} and still grinds corn for the bakers of the whole valley. "
        f"The records of {town} are kept in an old chest at the church. "
        + (f"It was built by {name} with stones from a quarry nearby. " if number % 2 == 0 else "")
        + (f"It was finished in {year} after a long and bitter winter. " if number % 2 else "")
        + "Its wheel turns by day and by night, and many people come to see it in summer. "
        "Nobody lives there now but a cat, some owls and a miller who says very little."
    )
    question = (
        f"who built the mill of {town} on the {river}" if number % 2 == 0 else f"when was the mill of {town} built"
    )
    return Question(question, (name if number % 2 == 0 else year,), passage, f"Mills of the {river}")


FERRY = """\
== the ferry of Lonsk
1: The ferry of Lonsk was built in 1904 by Ada Brock. It has carried people ever since.
2: In 1931 the ferry sank. A new one, the work of Emil Kotta, was launched in 1933.
3: Tickets for the ferry cost 4 crowns, or 3 crowns in winter; the crossing takes nine minutes.

4: Emil Kotta, a builder of barges, was born by the river and never learned to swim.
? Who built the first ferry of Lonsk? => Ada Brock => 1
? who built the new ferry => Emil Kotta => 2 !4
? ferry price in winter => 3 crowns | three crowns => 3
? How long has the ferry of Lonsk been there? => since 1904 | 1904 => 1 ~2
? Who is the ferryman? => =>
"""
MILLS = [mill(number) for number in range(len(TOWNS))]


def mill_of(query: str) -> Question:
    """The question that a query came from, in whatever style: its town is in it."""
    (found,) = [mill for town, mill in zip(TOWNS, MILLS, strict=True) if town in query]
    return found


def write(path: Path, items: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return path


def as_nq(path: Path) -> Path:
    """The mills in the form in which Natural Questions come."""
    return write(
        path,
        (
            {"question": mill.text, "answers": mill.answers, "ctxs": [{"title": mill.title, "text": mill.gold}]}
            for mill in MILLS
        ),
    )
