"""From contexts to answers: which to write, the job that asks for them, and their table.

A system for which nothing was retrieved still has to answer: it is asked with the same prompt, which then has no
passages, and how often that was so is in the notes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.core.errors import InputError
from ragworth.data import Contexts
from ragworth.data.coercion import Data
from ragworth.data.collection import Collection
from ragworth.judging.answers.writer import (
    NO_CONTEXT_SYSTEM,
    ORACLE_SYSTEM,
    AnsweringResult,
    AnswerItem,
    AnswerWriter,
    ShownPassage,
)
from ragworth.judging.contract import options_by_name, resolve_model, run_task
from ragworth.judging.text_lookup import TextLookup, check_positive_count, sample_by_query
from ragworth.llm.contract import Model
from ragworth.text_match.sentences import counter_for


def answer(
    contexts: Contexts | Data | None,
    collection: Collection,
    model: Model | str | None = None,
    *,
    store: Store | str | Path | None = None,
    k: int | Literal["oracle"] | None = None,
    length: int | Literal["oracle"] = 256,
    without: bool = False,
    oracle: bool = False,
    prompts: str | Path | None = None,
    limit: int | None = None,
    sample: int | None = None,
    sample_seed: int = 0,
    **settings: Any,
) -> AnsweringResult:
    """Answer every query from the passages that each system shows.

    Parameters
    ----------
    contexts: what systems show; None where only ``without`` or ``oracle`` is wanted, for all queries.
    collection: texts of queries and passages.
    model: from `ragworth.llm`, or in its written form; the embedded one by default.
    store: file in which every answer of the model is kept, so that it is never asked twice.
    k: passages shown; ``oracle`` for as many as the oracle's context of the query has.
    length: most tokens of an answer; ``oracle`` for as many as the oracle's context of the query has.
    without: also answer without any context, as the system ``(none)``.
    oracle: also answer from the oracle's context, as the system ``(oracle)``: the required subset where the
        collection has ratings, else all relevant passages.
    prompts: folder of own prompts.
    limit, sample: only the first queries, or some drawn at random.
    settings: the others of `Writer`; ``ragworth answer --help`` lists them.
    """
    for name, number in (("k", None if k == "oracle" else k), ("limit", limit), ("sample", sample)):
        check_positive_count(name, number)
    settings |= {"tie_k": True} if k == "oracle" else {}
    settings |= {"tie_length": True} if length == "oracle" else {"length": length}
    depth = None if k == "oracle" else k
    if contexts is not None and not isinstance(contexts, Contexts):
        contexts = Contexts(contexts)
    with Job(resolve_model(model), store) as job:
        writer = build_writer(job, collection, prompts, depth, settings)
        things = answer_items(writer, contexts, collection, without=without, oracle=oracle)
        return run_task(writer, sample_by_query(things, limit, sample, sample_seed), job)


def build_writer(
    job: Job,
    collection: Collection,
    prompts: str | Path | None,
    k: int | None,
    settings: dict[str, Any],
    *,
    plan: bool = False,
) -> AnswerWriter:
    """Build a writer with these settings. For a plan, an endpoint isn't even asked to count tokens."""
    check_positive_count("k", k)
    writer = AnswerWriter(
        job.card, TextLookup(collection), prompts, k, **options_by_name(AnswerWriter, settings, "answer")
    )
    if writer.tie_length and not (plan and job.card.endpoint):
        writer = replace(writer, counter=counter_for(job.model))
    return writer


def answer_items(
    writer: AnswerWriter,
    contexts: Contexts | None,
    collection: Collection,
    *,
    without: bool = False,
    oracle: bool = False,
) -> list[AnswerItem]:
    """List the answers to write: for each system, every query of any system."""
    if contexts is None and not (without or oracle):
        raise InputError(
            "there is nothing to answer from",
            expected="a run",
            remedy="name a run, or ask --without or --oracle contexts",
        )
    if oracle:
        writer.oracle.check()
    shown: dict[tuple[str, str], list[ShownPassage]] = {}
    systems: list[str] = []
    if contexts is not None:
        systems = contexts.systems
        taken = [
            name
            for name, wanted in ((NO_CONTEXT_SYSTEM, without), (ORACLE_SYSTEM, oracle))
            if wanted and name in systems
        ]
        if taken:
            raise InputError(f"a system is called {taken[0]!r} already", remedy="give it another name")
        for system, query, passage, rank in contexts.frame.select("system", "query", "passage", "rank").iter_rows():
            shown.setdefault((system, query), []).append(ShownPassage(passage, rank))
        queries = [query for _, query in [*shown, *sorted(contexts.empty)]]
    else:
        queries = collection.queries["query"].to_list()
    queries = list(dict.fromkeys(queries))
    made = [AnswerItem(system, query, tuple(shown.get((system, query), ()))) for system in systems for query in queries]
    extra = [name for name, wanted in ((NO_CONTEXT_SYSTEM, without), (ORACLE_SYSTEM, oracle)) if wanted]
    made += [AnswerItem(name, query) for name in extra for query in queries]
    return [item._replace(repeat=repeat) for item in made for repeat in range(writer.repeats)]
