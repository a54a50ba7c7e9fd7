"""Options that scoring commands share, and the scoring itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import click

from ragworth.core.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class ScoringOptions:
    """What to score, by which files."""

    runs: tuple[str, ...]
    metrics: tuple[str, ...]
    qrels: tuple[str, ...]
    judgments: tuple[str, ...]
    ratings: str | None
    passages: str | None
    collection: str | None
    tokens: str
    incomplete: bool
    ties: str
    skip_bad_lines: bool
    judged_only: bool = False
    max_rank: int | None = None


def scoring_options(function: F) -> F:
    """The options that say what to score."""
    options = [
        click.argument("runs", nargs=-1, metavar="[NAME=]RUN..."),
        click.option(
            "-m",
            "--metric",
            "metrics",
            multiple=True,
            help="Metric, such as nDCG@10 or 'UDCG(gamma=0.33)@5'; repeat for more.  [default: nDCG@10]",
        ),
        click.option("-q", "--qrels", multiple=True, help="Relevance judgments: TREC qrels, BEIR folder or table."),
        click.option(
            "-j",
            "--judgments",
            multiple=True,
            help="Judgments of any aspects (abstention, downstream, …), as ragworth annotate writes them.",
        ),
        click.option("-r", "--ratings", help="Ratings of sub-questions: table or TREC sub-topic qrels."),
        click.option(
            "-p",
            "--passages",
            help="Passage texts, or lengths in a column 'tokens', for metrics that count tokens.",
        ),
        click.option(
            "--tokens",
            default="words",
            show_default=True,
            help="What metrics count as a token: words, hf:PATH/tokenizer.json or tiktoken:NAME.",
        ),
        click.option(
            "-c",
            "--collection",
            help="A whole collection, with runs if it has them: beir:FOLDER, exam:FILE, ir_datasets:ID; or "
            "conversations, whose turns aren't independent.",
        ),
        click.option(
            "--incomplete",
            is_flag=True,
            help="Leave out judged queries that a run has nothing for, instead of counting them as empty.",
        ),
        click.option(
            "--ties",
            type=click.Choice(["float64", "float32"]),
            default="float64",
            show_default=True,
            help="Precision in which run scores tie: trec_eval 10, or 9 and earlier.",
        ),
        click.option("--skip-bad-lines", is_flag=True, help="Leave out, count and report lines that cannot be read."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def narrowing_options(function: F) -> F:
    """The options of trec_eval that say which passages of a run count."""
    options = [
        click.option(
            "-J",
            "--judged-only",
            is_flag=True,
            help="Take passages that nobody judged out of the runs first, as trec_eval -J; those below move up.",
        ),
        click.option(
            "-M",
            "--max-rank",
            type=click.IntRange(1),
            metavar="N",
            help="Look at the first N passages of each context only, as trec_eval -M; goes before -J.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


class ScoringInputs(NamedTuple):
    """What the files of a scoring command hold."""

    contexts: Any
    judgments: list[Any]
    metrics: tuple[str, ...]
    ratings: Any
    tokens: Any
    notes: tuple[str, ...]
    conversations: dict[str, str]
    """The conversation of each turn; empty if queries are independent."""


def read_scoring_inputs(
    given: ScoringOptions, also: Sequence[Callable[[], Any]] = ()
) -> tuple[ScoringInputs, list[Any]]:
    """Read all inputs, and report all that can't be read together."""
    from ragworth.workspace.files import FileReader
    from ragworth.workspace.problems import Problems

    skip, problems = given.skip_bad_lines, Problems()
    reading = FileReader(problems, ties=given.ties, skip_bad_lines=skip)  # type: ignore[arg-type]
    reading.start(given.runs)
    # The rest of the program loads while threads read the runs.
    from ragworth import comparison, formats  # noqa: F401
    from ragworth.data import Contexts
    from ragworth.data.conversations import conversation_ids
    from ragworth.metrics.ground_truth import Tokens
    from ragworth.scoring import split_metrics

    metrics = given.metrics or ("nDCG@10",)
    ours, _ = problems.of(lambda: split_metrics(metrics)) or ([], [])
    loaded = reading.read("collection", given.collection) if given.collection else None
    runs = [log.contexts for log in reading.runs(given.runs) if log.contexts is not None]
    tables = [reading.read("judgments", path) for path in (*given.qrels, *given.judgments)]
    ratings = reading.read("ratings", given.ratings) if given.ratings else None
    lengths = None
    notes: tuple[str, ...] = ()
    if given.passages and any("tokens" in metric.needs for metric in ours):
        counted = reading.of(given.passages, partial(formats.read_lengths, tokens=given.tokens))
        if counted is not None:
            notes = counted.notes
            lengths = problems.of(partial(Tokens.of, counted.frame, counted.counter, given.passages))
    besides = [problems.of(read) for read in also]
    problems.done()
    if loaded is not None:
        texts, notes = loaded.collection, (*loaded.collection.notes, *notes)
        runs = runs or ([loaded.contexts] if loaded.contexts is not None else [])
        if texts.relevance is not None and not given.qrels:
            tables.append(texts.relevance)
        ratings = ratings or texts.ratings
        if lengths is None and texts.passages.height:
            lengths = Tokens.of(texts.counting(given.tokens).tokens())
    if not runs:
        raise InputError(
            "no run was given", expected="ragworth score --qrels QRELS RUN [RUN…]", remedy="name one or more runs"
        )
    contexts = Contexts.concat(runs)
    conversations: dict[str, str] = {}
    if loaded is not None:
        notes = (*notes, *loaded.collection.unknown(contexts))
        conversations = conversation_ids(loaded.collection)
    return ScoringInputs(contexts, tables, metrics, ratings, lengths, notes, conversations), besides


class ScoredInputs(NamedTuple):
    """Scores, and the conversation of each query that is a turn."""

    scores: Any
    conversations: dict[str, str]


def score_inputs(given: ScoringOptions) -> ScoredInputs:
    """Read everything and score it; the notes of the scores tell what did not match."""
    from ragworth.data import Judgments
    from ragworth.data.conversations import cluster_notes
    from ragworth.scoring import score

    found, _ = read_scoring_inputs(given)
    result = score(
        found.contexts,
        Judgments.concat(found.judgments) if found.judgments else None,
        found.metrics,
        ratings=found.ratings,
        tokens=found.tokens,
        complete=not given.incomplete,
        judged_only=given.judged_only,
        max_rank=given.max_rank,
    )
    result.notes = tuple(dict.fromkeys((*found.notes, *result.notes, *cluster_notes(found.conversations))))
    return ScoredInputs(result, found.conversations)


def read_conversations(collection: str | None, skip_bad_lines: bool) -> dict[str, str]:
    """The conversation of each turn of a collection; empty without one."""
    from ragworth import formats
    from ragworth.data.conversations import conversation_ids

    if collection is None:
        return {}
    return conversation_ids(formats.load(collection, skip_bad_lines=skip_bad_lines).collection)
