"""Read and write nuggets, and write assignments, in the JSON lines of AutoNuggetizer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ragworth.core.errors import BadLine, FormatError, quote_short
from ragworth.formats.files import bad_lines_error, create_file
from ragworth.formats.values import WrongLineError, as_dict, as_id, as_list, as_text, read_objects

Importance = Literal["vital", "okay"]
IMPORTANCES = get_args(Importance)
ASSIGNMENTS = ("support", "partial_support", "not_support")
NUGGETS = '{"query": …, "qid": …, "nuggets": [{"text": …, "importance": "vital" or "okay"}]} on each line'


class Nugget(NamedTuple):
    text: str
    importance: str
    """``vital`` or ``okay``; empty if nobody could say."""


class NuggetList(NamedTuple):
    """The nuggets of a query."""

    query: str
    text: str
    nuggets: tuple[Nugget, ...]


class AssignedAnswer(NamedTuple):
    """An answer, and what it says of each nugget; an assignment that failed is empty."""

    system: str
    query: str
    text: str
    answer: str
    nuggets: tuple[Nugget, ...]
    assignments: tuple[str, ...]


def read_nuggets(path: str | Path) -> list[NuggetList]:
    lists: dict[str, NuggetList] = {}
    for number, item in read_objects(path, [], skip=False, expected=NUGGETS):
        try:
            query, text = as_id(item.get("qid"), "qid"), as_text(item.get("query") or "", "query")
            nuggets = tuple(_nugget(as_dict(each, "a nugget")) for each in as_list(item.get("nuggets"), "nuggets"))
        except WrongLineError as error:
            raise bad_lines_error(path, [BadLine(number, str(error))], NUGGETS) from error
        if query in lists:
            remedy = "join its nuggets in one line"
            raise FormatError(f"two lines have the qid {quote_short(query)}", file=str(path), remedy=remedy)
        lists[query] = NuggetList(query, text, nuggets)
    if not lists:
        raise FormatError("no rows: the file is empty", file=str(path), expected=NUGGETS)
    return list(lists.values())


def write_nuggets(lists: Iterable[NuggetList], path: str | Path) -> None:
    _write(
        path,
        ({"query": each.text, "qid": each.query, "nuggets": [n._asdict() for n in each.nuggets]} for each in lists),
    )


def write_assignments(answers: Iterable[AssignedAnswer], path: str | Path) -> None:
    """Write answers with their assignments. A failed one is ``null``, which other programs must not take for none."""
    _write(
        path,
        (
            {
                "query": each.text,
                "qid": each.query,
                "answer_text": each.answer,
                "response_length": len(each.answer.split()),
                "run_id": each.system,
                "nuggets": [
                    {**nugget._asdict(), "assignment": assignment or None}
                    for nugget, assignment in zip(each.nuggets, each.assignments, strict=True)
                ],
            }
            for each in answers
        ),
    )


def _write(path: str | Path, rows: Iterable[dict[str, Any]]) -> None:
    with create_file(path) as stream:
        for row in rows:
            stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "replace"))


def _nugget(item: dict[str, Any]) -> Nugget:
    text, importance = as_text(item.get("text"), "text"), as_text(item.get("importance") or "", "importance")
    if importance and importance not in IMPORTANCES:
        raise WrongLineError(f"the importance is {importance!r}, not vital or okay")
    return Nugget(text, importance)
