"""Options and output of ``ragworth annotate contribution``, and of graders that split answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ragworth.cli.task_output import check_rows_file, write_rows

F = TypeVar("F", bound=Callable[..., Any])


def contribution_options(function: F) -> F:
    """Answers that exist, and files for passages and pairs of passages."""
    options = [
        click.option(
            "--given",
            "given_answers",
            metavar="FILE",
            help="Split the answers in this file (of ragworth answer) instead; it says what was shown for each.",
        ),
        click.option(
            "--hops",
            metavar="FILE",
            help="Split answers among the searches of an agent: a table with system, query, hop, passage and search.",
        ),
        click.option(
            "--each",
            "passages_output",
            type=click.Path(dir_okay=False),
            callback=check_rows_file,
            help="Write a row for each passage, or hop.",
        ),
        click.option(
            "--pairs-output",
            type=click.Path(dir_okay=False),
            callback=check_rows_file,
            help="Write a row for each two passages: below 0 they are redundant, above 0 they need each other.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def with_given_answers(found: Any, path: str | None, wanted: Any) -> tuple[Any, Any]:
    """What was read, with the contexts that the given answers were written from; and these answers."""
    if path is None:
        return found, None
    from ragworth.core.errors import InputError
    from ragworth.judging.answers import read_answers
    from ragworth.judging.runner import to_answer_book

    if wanted.k is not None:
        raise InputError("the passages of given answers are those that were shown", remedy="leave out --depth")
    answers = read_answers(path, skip_bad_lines=wanted.skip_bad_lines)
    book = to_answer_book(answers, found.contexts)
    if book.contexts is None or not (len(book.contexts) or book.contexts.empty):
        raise InputError(
            "it is not known which passages these answers were written from",
            file=path,
            expected="a column 'shown', which ragworth answer writes, or a run",
        )
    return found._replace(contexts=book.contexts), book


def with_hops(found: Any, path: str | None) -> tuple[Any, Any]:
    """What was read, with all that the hops of a file found as contexts unless runs were named; and these hops."""
    if path is None:
        return found, None
    from ragworth.judging.contribution.hops import hop_contexts, read_hops

    hops = read_hops(path)
    return (found if found.contexts is not None else found._replace(contexts=hop_contexts(hops))), hops


def write_contributions(frame: Any, each: str | None, pairs: str | None, hops: Any) -> None:
    """Write a row for each passage, or hop, and for each two."""
    from ragworth.judging.contribution.hops import hop_rows
    from ragworth.judging.contribution.rows import pair_rows, passage_rows

    if each:
        write_rows(passage_rows(frame) if hops is None else hop_rows(frame), each)
    if pairs:
        write_rows(pair_rows(frame), pairs)


def print_profile(frame: Any, collection: Any) -> None:
    """Print the mean contribution at each position, or of each hop, by system."""
    from ragworth.data.conversations import conversation_ids
    from ragworth.judging.contribution.rows import position_profile
    from ragworth.report.render import render

    profile = position_profile(frame, conversations=conversation_ids(collection))
    if profile.height:
        click.echo("\nBy position:")
        click.echo(render(profile, "text").decode(), nl=False)
