"""Options that the commands of ``ragworth rewrite`` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ragworth.cli.collection_options import CollectionOptions, read_collection
from ragworth.cli.model_options import CallOptions
from ragworth.errors import FormatError

F = TypeVar("F", bound=Callable[..., Any])


def conversation_options(function: F) -> F:
    """Where turns, passages and labels come from."""
    options = [
        click.option(
            "-c",
            "--collection",
            required=True,
            help="Conversations: JSONL with one turn per line, QReCC, CAsT, MT-RAG, …",
        ),
        click.option("-p", "--passages", help="Texts of passages: JSONL, Parquet, CSV or TSV."),
        click.option("-a", "--answers", help="Accepted answers: JSONL, Parquet, CSV or TSV."),
        click.option("-q", "--qrels", multiple=True, help="Relevance judgments: TREC qrels, BEIR folder or table."),
        click.option(
            "--turns",
            type=click.Choice(["conversation", "rewrite", "turn"]),
            default="conversation",
            show_default=True,
            help="What the reader is asked: the turn after its conversation, its human rewrite, or the turn alone.",
        ),
        click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N turns with a history."),
        click.option("--skip-bad-lines", is_flag=True, help="Leave out, count and report lines that cannot be read."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def prompts_option(function: F) -> F:
    """The user's own prompts."""
    return click.option(
        "--prompts",
        type=click.Path(file_okay=False),
        help="Folder with your own prompts; they replace the built-in ones.",
    )(function)


def take_conversations(given: dict[str, Any]) -> tuple[Any, int | None]:
    """What `conversation_options` name, taken out of all that were given, and how many turns are wanted."""
    names = ("collection", "passages", "answers", "qrels", "turns", "skip_bad_lines")
    known = {name: given.pop(name) for name in names}
    empty: dict[str, Any] = {"queries": None, "subquestions": None, "ratings": None, "runs": (), "k": None}
    empty |= {"limit": None, "sample": None}
    try:
        return read_collection(CollectionOptions(**known, **empty)), given.pop("limit")
    except FormatError as error:
        if error.hint.option != "columns":
            raise
        from ragworth.formats.conversations import EXPECTED

        # Columns of logs can be mapped; those of conversations can't.
        raise error.copy(expected=EXPECTED, remedy="") from error


def take_calls(given: dict[str, Any]) -> CallOptions:
    """The options of `call_options`, taken out of all that were given."""
    return CallOptions(**{name: given.pop(name) for name in CallOptions.__dataclass_fields__})


def turns_to_rewrite(collection: Any, limit: int | None) -> list[Any]:
    """The turns with a history, or the first of them."""
    from ragworth.conversations import turns_of
    from ragworth.rewriting.candidates import check_turns

    return check_turns(turns_of(collection))[:limit]
