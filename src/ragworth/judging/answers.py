"""Have a model answer queries from contexts: which answers to write, their requests, and their table.

A system for which nothing was retrieved still has to answer: it is asked with the same prompt, which then has no
passages, and how often that was so is in the notes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.calls.store import Store
from ragworth.core.errors import InputError, ModelError, format_count
from ragworth.data import ANSWERED_STATUSES, EMPTY_ANSWER, OK, TRUNCATED, Answers, Contexts
from ragworth.data.coercion import Data
from ragworth.data.collection import Collection
from ragworth.data.tokens import WORD_COUNTER, TokenCounter
from ragworth.formats.files import PathOrStr
from ragworth.formats.tables import read_answer_table
from ragworth.judging.contract import Task, option, options_by_name, resolve_model, run_task, validate_options
from ragworth.judging.findings import describe_source, frame_from_rows, missing_notes, require_abilities
from ragworth.judging.labels import DECLINING
from ragworth.judging.oracle import ORACLE_SOURCES, OracleSelector
from ragworth.judging.text_lookup import NO_PASSAGE, TextLookup, check_positive_count, sample_by_query
from ragworth.llm import prompts
from ragworth.llm.contract import LENGTH, Card, Generate, Generated, Model, Prompt
from ragworth.llm.prompts.template import Template
from ragworth.text_match.sentences import parse_citations

NO_CONTEXT_SYSTEM = "(none)"
"""The system without context: what the model knows by itself."""

ORACLE_SYSTEM = "(oracle)"
"""The system that shows the oracle context."""


class ShownPassage(NamedTuple):
    """A passage of a context, with its rank in the system's list."""

    id: str
    rank: int


class AnswerItem(NamedTuple):
    """An answer to write."""

    system: str
    query: str
    passages: tuple[ShownPassage, ...] = ()
    repeat: int = 0


class WrittenAnswer(NamedTuple):
    """What the model wrote, and how."""

    text: str
    status: str
    tokens: int | None
    finish: str
    cited: tuple[str, ...]
    strays: int
    cut: int
    prompt_tokens: int | None


DETAIL_COLUMNS = {
    "reason": pl.String,
    "finish": pl.String,
    "seed": pl.Int64,
    "shown": pl.List(pl.String),
    "cited": pl.List(pl.String),
    "strays": pl.Int64,
    "cut": pl.Int64,
    "prompt_tokens": pl.Int64,
}
"""Further columns of the frame: why there is no text, how generation ended, the seed, the ids of the
passages in the order shown, those that the text cites and how many of its citations name none, characters of
passages that were cut off, and the prompt's tokens if known."""


@dataclass(frozen=True)
class AnsweringResult:
    """Answers: the table that graders read, and a frame with details of each."""

    table: Answers
    frame: pl.DataFrame
    """The table's columns, then those of `DETAILS`; for answers from a file only ``shown``."""
    contexts: Contexts
    """The contexts shown, in order, including oracle contexts."""
    notes: tuple[str, ...] = ()

    @classmethod
    def of_table(cls, table: Answers, frame: pl.DataFrame) -> AnsweringResult:
        """Answers from a file; ``frame`` has them with the passages shown."""
        return cls(table, frame, shown_contexts(frame), table.notes)


@dataclass(frozen=True)
class AnswerWriter(Task[AnswerItem, WrittenAnswer, AnsweringResult]):
    """Writes answers. Its settings are options of ``ragworth answer``."""

    card: Card
    texts: TextLookup
    folder: str | Path | None = None
    """Folder with the user's own prompts."""
    k: int | None = None
    """Maximum number of passages shown."""
    counter: TokenCounter = WORD_COUNTER
    """Counts the tokens of the oracle context, if the length of answers is tied to it."""

    prompt: str = option(
        "answer", "prompt for a context: a name (answer, answer-cited, answer-long, papers/answer) or a file"
    )
    alone: str = option("", "prompt for no context; by default that of the same name with -alone, or answer-alone")
    order: str = option("rank", "order in which passages are shown", choices=("rank", "reversed", "shuffled"))
    length: int = option(256, "maximum tokens of an answer", low=1)
    temperature: float = option(0.0, "sampling temperature; 0 is greedy", low=0)
    top_p: float = option(1.0, "nucleus sampling threshold", low=0.0001, high=1)
    repeats: int = option(
        1, "answers to each question, each with a seed of its own (the seed, and one more each time)", low=1
    )
    seed: int = option(0, "seed of sampling and shuffling", low=0)
    tie_k: bool = option(False, "show as many passages as the oracle's context has")
    tie_length: bool = option(False, "let answers be as long as the oracle's context")
    oracle_by: str = option(
        "auto", "what makes the oracle's context: required subset by ratings, or relevance", choices=ORACLE_SOURCES
    )
    oracle_k: int = option(0, "maximum passages of the oracle's context; 0 for all", low=0)
    level: float = option(1.0, "lowest relevance that counts as relevant")
    eta: float = option(3.0, "lowest rating that counts as answered")

    def __post_init__(self) -> None:
        validate_options(self, "answer")
        if self.repeats > 1 and self.temperature == 0:
            raise InputError(
                f"{self.repeats} greedy answers to a question are all the same",
                expected="a temperature above 0 where repeats are more than 1",
                remedy="give a temperature, such as 0.3, or ask once",
            )
        if self.tie_k or self.tie_length:
            self.oracle.check()
        require_abilities(self.card, ("generate",), "an answer")

    @cached_property
    def oracle(self) -> OracleSelector:
        return OracleSelector(self.texts, self.oracle_by, self.level, self.eta, self.oracle_k or None)

    @cached_property
    def template(self) -> Template:
        return self._load(self.prompt)

    @cached_property
    def template_alone(self) -> Template:
        suffix = ".txt" if self.prompt.endswith(".txt") else ""
        counterpart = f"{self.prompt.removesuffix(suffix)}-alone{suffix}"
        known = prompts.find_prompt(counterpart, self.folder, self.card.prompts) is not None
        return self._load(self.alone or (counterpart if known else "answer-alone"))

    def _load(self, name: str) -> Template:
        template = prompts.load_prompt(name, self.folder, self.card.prompts)
        DECLINING.for_prompt(template)
        return template

    def shown(self, item: AnswerItem) -> tuple[ShownPassage, ...]:
        """Return the passages of an answer in the order shown; raises `NoValue` if unknown."""
        if item.system == NO_CONTEXT_SYSTEM:
            return ()
        if item.system == ORACLE_SYSTEM:
            passages = tuple(ShownPassage(name, rank) for rank, name in enumerate(self.oracle.passages(item.query), 1))
        else:
            most = len(self.oracle.passages(item.query)) if self.tie_k else self.k
            passages = tuple(each for each in item.passages if most is None or each.rank <= most)
            missing = sorted(set(range(1, len(passages) + 1)) - {each.rank for each in passages})
            if missing:
                raise NoValue(NO_PASSAGE, f"nothing says which passage has rank {missing[0]}")
        return self._ordered(passages, item.query)

    def _ordered(self, passages: tuple[ShownPassage, ...], query: str) -> tuple[ShownPassage, ...]:
        if self.order == "shuffled":
            # By query, so that all systems with the same passages show them in the same order.
            return tuple(random.Random(f"{self.seed} {query}").sample(passages, len(passages)))
        return passages[::-1] if self.order == "reversed" else passages

    def seed_of(self, item: AnswerItem) -> int | None:
        """The seed of an answer that is sampled."""
        return self.seed + item.repeat if self.temperature > 0 else None

    def most_tokens(self, query: str) -> int:
        """Maximum length of an answer to a query."""
        if not self.tie_length:
            return self.length
        texts = [self.texts.passage(name) for name in self.oracle.passages(query)]
        return max(1, sum(map(self.counter.count, texts)))

    def request(self, item: AnswerItem) -> Generate:
        """The request for one answer; raises `NoValue` if a text is unknown."""
        query, shown = self.texts.query(item.query), self.shown(item)
        template = self._template_of(item)
        values: dict[str, object] = {"query": query}
        if item.system != NO_CONTEXT_SYSTEM or "passages" in template.slots:
            values["passages"] = [{"text": self.texts.passage(p.id), "id": p.id, "rank": p.rank} for p in shown]
        return Generate(
            template.render(values),
            max_tokens=self.most_tokens(item.query),
            temperature=self.temperature,
            top_p=self.top_p if self.temperature > 0 else 1.0,
            stop=template.reply.stop,
            seed=self.seed_of(item) or 0,
        )

    def program(self, item: AnswerItem) -> Program[WrittenAnswer]:
        """Ask for one answer."""
        (outcome,) = yield [self.request(item)]
        return self.parse(item, require_response(outcome, Generated))

    def parse(self, item: AnswerItem, made: Generated) -> WrittenAnswer:
        """Read what the model wrote."""
        output = self._template_of(item).reply.trim(made.outputs[0])
        status = TRUNCATED if output.finish == LENGTH else OK
        cited = parse_citations(output.text, [each.id for each in self.shown(item)])
        return WrittenAnswer(
            output.text,
            status if output.text.strip() else EMPTY_ANSWER,
            made.tokens_written,
            output.finish,
            cited.passages,
            cited.strays,
            made.usage.cut,
            made.tokens_read,
        )

    def _template_of(self, item: AnswerItem) -> Template:
        return self.template_alone if item.system == NO_CONTEXT_SYSTEM else self.template

    @property
    def templates(self) -> dict[str, Template]:
        return {self.template.name: self.template}

    def collect(
        self,
        items: Sequence[AnswerItem],
        findings: Iterable[WrittenAnswer | NoValue],
        controls: Sequence[WrittenAnswer | NoValue],
    ) -> AnsweringResult:
        sources = {system: self.source(system) for system in {item.system for item in items}}
        rows = [_row(self, item, one, sources) for item, one in zip(items, findings, strict=True)]
        frame = frame_from_rows(rows, {**Answers.schema, **DETAIL_COLUMNS})
        notes = _notes(frame)
        if self.tie_k:
            notes.append("as many passages are shown as the oracle's context has")
        if self.tie_length:
            notes.append(f"answers may be as long as the oracle's context, counted in {self.counter.name}")
        return AnsweringResult(Answers.trusted(frame, tuple(notes)), frame, shown_contexts(frame), tuple(notes))

    def source(self, system: str) -> str:
        """Describe the source of a system's answers in one line."""
        template = self.template_alone if system == NO_CONTEXT_SYSTEM else self.template
        how = [f"temperature {self.temperature:g}" if self.temperature else ""]
        if system not in (NO_CONTEXT_SYSTEM, ORACLE_SYSTEM):
            how += ["k of the oracle" if self.tie_k else (f"k {self.k}" if self.k else "")]
        if system == ORACLE_SYSTEM:
            how += [f"oracle by {self.oracle.by}"]
        how += [self.order if self.order != "rank" and system != NO_CONTEXT_SYSTEM else ""]
        how += [f"length of the oracle in {self.counter.name}" if self.tie_length else ""]
        return describe_source(self.card, [template], *how)


def _row(
    writer: AnswerWriter, item: AnswerItem, one: WrittenAnswer | NoValue, sources: dict[str, str]
) -> dict[str, Any]:
    row: dict[str, Any] = {"system": item.system, "query": item.query, "repeat": item.repeat}
    row |= {"source": sources[item.system], "seed": writer.seed_of(item)}
    if isinstance(one, NoValue):
        row |= {"status": one.status, "reason": one.detail}
    else:
        row |= one._asdict() | {"cited": list(one.cited)}
    try:
        row["shown"] = [each.id for each in writer.shown(item)]
    except NoValue:
        row["shown"] = None
    return row


def shown_contexts(frame: pl.DataFrame) -> Contexts:
    """Build a table of contexts from the ``shown`` column of answers."""
    known = frame.filter(pl.col("shown").is_not_null()).unique(["system", "query"], keep="first", maintain_order=True)
    empty = known.filter(pl.col("shown").list.len() == 0).select("system", "query").rows()
    rows = (
        known.filter(pl.col("shown").list.len() > 0)
        .select("system", "query", pl.col("shown").alias("passage"))
        .explode("passage")
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("system", "query").cast(pl.UInt32))
    )
    made = Contexts.trusted(rows.with_columns(score=pl.lit(None, pl.Float64)))
    made.empty = frozenset((system, query) for system, query in empty)
    return made


def _notes(frame: pl.DataFrame) -> list[str]:
    """Notes on how many answers have a text, and on how they ended."""
    notes = list(missing_notes(frame, "answer", of="text", good=ANSWERED_STATUSES))
    good = frame.filter(pl.col("status").is_in(ANSWERED_STATUSES))
    bare = frame.filter((pl.col("system") != NO_CONTEXT_SYSTEM) & (pl.col("shown").list.len() == 0))
    ended = good.filter(pl.col("status") == TRUNCATED).height
    cut = good.filter(pl.col("cut") > 0)
    strays = good.filter(pl.col("strays") > 0)
    if bare.height:
        notes.append(
            f"{format_count(bare.height, 'answer')} from contexts that have no passages, asked with the same prompt"
        )
    if ended:
        notes.append(f"{format_count(ended, 'answer')} ended at the greatest length (truncated)")
    if cut.height:
        lost_signs = format_count(int(cut["cut"].sum()), "character")
        notes.append(f"{format_count(cut.height, 'answer')} from passages that were cut to fit ({lost_signs} in all)")
    if strays.height:
        number = format_count(int(strays["strays"].sum()), "citation")
        notes.append(f"{number} in {format_count(strays.height, 'answer')} of a passage that was not shown")
    return notes


def read_answers(path: PathOrStr, *, skip_bad_lines: bool = False) -> AnsweringResult:
    """Read answers from Parquet, CSV, TSV or JSONL, with the passages shown if the file lists them.

    The file is one of ``ragworth answer``, or any with system, query and text. `ragworth.grade` takes what comes of it.
    """
    return AnsweringResult.of_table(*read_answer_table(path, skip_bad_lines=skip_bad_lines))


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


def counter_for(model: Model) -> TokenCounter:
    """Count a model's tokens if it can, otherwise words and punctuation marks."""
    if model.count(Prompt.text("one")) is None:
        return WORD_COUNTER

    def count(text: str) -> int:
        tokens = model.count(Prompt.text(text))
        # An endpoint that counted a moment ago may be too busy now; mixing in lengths in words would be worse.
        if tokens is None:
            raise ModelError(f"{model.card.name} stopped counting tokens", remedy="run the same command again")
        return tokens

    return TokenCounter(f"tokens of {model.card.name}", count)


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
    extra = [name for name, wanted in ((NO_CONTEXT_SYSTEM, without), (ORACLE_SYSTEM, oracle)) if wanted]
    shown: dict[tuple[str, str], list[ShownPassage]] = {}
    systems: list[str] = []
    if contexts is not None:
        systems = contexts.systems
        if taken := [name for name in extra if name in systems]:
            raise InputError(f"a system is called {taken[0]!r} already", remedy="give it another name")
        for system, query, passage, rank in contexts.frame.select("system", "query", "passage", "rank").iter_rows():
            shown.setdefault((system, query), []).append(ShownPassage(passage, rank))
        queries = [query for _, query in [*shown, *sorted(contexts.empty)]]
    else:
        queries = collection.queries["query"].to_list()
    queries = list(dict.fromkeys(queries))
    made = [AnswerItem(system, query, tuple(shown.get((system, query), ()))) for system in systems for query in queries]
    made += [AnswerItem(name, query) for name in extra for query in queries]
    return [item._replace(repeat=repeat) for item in made for repeat in range(writer.repeats)]
