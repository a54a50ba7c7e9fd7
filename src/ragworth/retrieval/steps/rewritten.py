"""``rewritten("MODEL") >> bm25 % 10``: search with a rewrite of a conversation's last turn instead of the turn itself.

A rewrite comes from a model, a file, a person (``by="human"``), or a rule that a rewriter has to beat: ``last`` (the
turn as it is), ``all`` (all that the user said), ``first+last``, and ``history-terms`` (the turn and the terms of the
history with the highest tf · idf; `add_history_terms`). All steps behind it see the rewrite alone:
they search and re-rank with it. What the reader is asked doesn't change.

Several samples (``n``) are searched one by one with all the steps behind, and the lists are fused by reciprocal ranks
(k = 60). A turn that nothing was said before is searched as it is, without a call. Where a model writes nothing or
declines, the turn is searched as it is, and a note counts such turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program
from ragworth.calls.serialization import model_digest
from ragworth.core.errors import BadLine, InputError, ModelError, format_count, format_list, quote_short
from ragworth.data.conversations import Turn, turns_digest, turns_of
from ragworth.formats.files import bad_lines_error
from ragworth.formats.values import WrongLineError, as_id, as_text, read_objects
from ragworth.judging.contract import option as named
from ragworth.judging.rewriter import BASELINES, QueryRewriter, TurnRewrites
from ragworth.llm.contract import Card
from ragworth.llm.embedded import find_rewriter
from ragworth.llm.local.adapter import is_adapter_folder
from ragworth.llm.prompts.template import Template
from ragworth.retrieval.pipeline import Need, Place, SearchTexts, Step, StepContext, argument
from ragworth.retrieval.words import HISTORY_TERMS, add_history_terms

HUMAN = "human"
TERMS = "history-terms"
FILE_FORM = '{"query": …, "text": …} on each line, each query once'


@dataclass(frozen=True)
class Rewritten(Step):
    """Rewrites of the turns for the steps behind it."""

    model: str = argument(
        "",
        "model that rewrites, or the folder of an adapter; by default the evaluation's, or embedded:rewriter if that "
        "is the embedded reader",
    )
    by: str = named("", "a rule, or the human rewrite, instead of a model", choices=("", *BASELINES, TERMS))
    file: str = named("", "file of rewrites instead of a model: JSON lines with query and text")
    terms: int = named(HISTORY_TERMS, "terms of the history that history-terms adds", low=1)
    n: int = named(1, "rewrites of each turn, whose results are fused", low=1, high=100)
    temperature: float = named(0.0, "temperature of sampling; 0 is greedy", low=0)
    seed: int = named(0, "seed of sampling", low=0)
    history: int = named(6000, "maximum characters of the history that the model sees, the latest messages", low=0)
    length: int = named(64, "maximum tokens of a rewrite", low=1)
    prompt: str = named("rewrite", "prompt: a name or a file")

    kind: ClassVar[str] = "rewritten"
    title: ClassVar[str] = "a rewrite of the conversation's last turn, for the steps behind it"
    place: ClassVar[Place] = "first"
    needs: ClassVar[tuple[Need, ...]] = ("query texts",)
    rewrites: ClassVar[bool] = True

    def check(self) -> None:
        chosen = [name for name in ("model", "by", "file") if getattr(self, name)]
        if len(chosen) > 1:
            raise InputError(
                f"rewritten has {format_list(chosen)}", expected="one of a model, a rule (by) and a file of rewrites"
            )
        if chosen and chosen != ["model"] and (self.n > 1 or self.temperature):
            raise InputError(f"rewritten: {chosen[0]} gives one rewrite, so it takes no samples", expected="no n")
        if self.n > 1 and not self.temperature:
            raise InputError(
                f"rewritten: {self.n} greedy rewrites of a turn are all the same",
                expected="a temperature above 0, such as temperature=0.8",
            )
        object.__setattr__(self, "control", self.by == HUMAN)
        object.__setattr__(self, "asks_model", self._by_model)

    @property
    def _by_model(self) -> bool:
        return not self.by and not self.file

    def models(self) -> tuple[str, ...]:
        return (self.model,) if self._by_model else ()

    def _spec(self, context: StepContext) -> str:
        """The written form of the model; the folder of an adapter may be relative to the workspace."""
        if not self.model:
            return find_rewriter(context.model_access.card("")) if context.model_access is not None else ""
        folder = (context.folder or Path()) / self.model
        return str(folder) if is_adapter_folder(folder) else self.model

    def problems(self, context: StepContext) -> list[str]:
        problems = super().problems(context)
        if self.file:
            return problems + [
                f"rewritten: there is no file {path}" for path in self.files(context) if not path.is_file()
            ]
        if not context.collection.turns.height:
            return [*problems, "rewritten needs conversations, and no query is a turn of one"]
        if self.by == HUMAN:
            problems += _without_rewrites(_turns(context))
        if self.by == TERMS and (lack := context.why_missing("passages")):
            problems.append(f"rewritten lacks an input: {lack}")
        if self._by_model:
            if context.model_access is None:
                return [*problems, "rewritten needs a model, but there is none"]
            self.templates(context)
        return problems

    def files(self, context: StepContext) -> tuple[Path, ...]:
        return ((context.folder or Path()) / self.file,) if self.file else ()

    def templates(self, context: StepContext) -> dict[str, Template]:
        if context.model_access is None or not self._by_model:
            return {}
        card = context.model_access.card(self._spec(context))
        return dict(self._rewriter(card, context.model_access.prompts).templates)

    def sources(self, context: StepContext) -> tuple[str, ...]:
        turns = () if self.file else (f"turns {turns_digest(context.collection.turns)}",)
        if context.model_access is None or not self._by_model:
            return turns
        card = context.model_access.card(self._spec(context))
        versions = (f"{name}@{each.version}" for name, each in self.templates(context).items())
        return (*turns, model_digest(card).hex(), *versions)

    def search_texts(self, context: StepContext) -> SearchTexts:
        if self.file:
            return SearchTexts((self._read_file(context),))
        turns = _turns(context)
        if self._by_model:
            return self._ask(turns, context)
        if self.by == TERMS:
            texts = add_history_terms(turns, context.collection.passages["text"], self.terms)
        else:
            texts = [BASELINES[self.by](turn) or turn.question for turn in turns]  # `problems` refused missing rewrites
        return SearchTexts((dict(zip(context.ids, texts, strict=True)),))

    def _read_file(self, context: StepContext) -> dict[str, str]:
        """Read rewrites by query; a query without one is an error."""
        (path,) = self.files(context)
        rewrites: dict[str, str] = {}
        for line, row in read_objects(path, [], skip=False, expected=FILE_FORM):
            try:
                query, text = as_id(row.get("query"), "query"), as_text(row.get("text"), "text")
                if query in rewrites or not text.strip():
                    problem = "occurs twice" if query in rewrites else "is empty"
                    raise WrongLineError(f"{quote_short(query, 40)} {problem}")
            except WrongLineError as error:
                raise bad_lines_error(path, [BadLine(line, str(error))], FILE_FORM) from error
            rewrites[query] = text
        if missing := [query for query in context.ids if query not in rewrites]:
            few = format_list([quote_short(query, 24) for query in missing], 10)
            raise InputError(
                f"no rewrite of {format_count(len(missing), 'query', 'queries')} ({few})",
                file=str(path),
                expected=FILE_FORM,
                remedy="write the rewrites of these queries too, or leave these queries out",
            )
        return {query: rewrites[query] for query in context.ids}

    def _rewriter(self, card: Card, prompts: Path | None) -> QueryRewriter:
        names = ("prompt", "history", "length", "temperature", "seed")
        return QueryRewriter(card, prompts, samples=self.n, **{name: getattr(self, name) for name in names})

    def _ask(self, turns: Sequence[Turn], context: StepContext) -> SearchTexts:
        model_access = context.model_access
        assert model_access is not None
        later = [turn for turn in turns if turn.history]

        def work(card: Card) -> list[Program[TurnRewrites]]:
            rewriter = self._rewriter(card, model_access.prompts)
            return [rewriter.program(turn) for turn in later]

        outcomes = model_access.ask(self._spec(context), work, step=str(self), max_calls=len(later))
        rewrites = dict(zip((turn.query for turn in later), outcomes, strict=True))
        texts = [{turn.query: _nth_rewrite(rewrites.get(turn.query), turn, k) for turn in turns} for k in range(self.n)]
        return SearchTexts(tuple(texts), tuple(self._notes(outcomes)))

    def _notes(self, outcomes: Sequence[TurnRewrites | NoValue | None]) -> list[str]:
        """How many turns are searched as they are because there is no rewrite, and how many histories were cut."""
        known = [outcome for outcome in outcomes if outcome is not None]
        each = [
            one for outcome in known for one in (outcome.rewrites if isinstance(outcome, TurnRewrites) else (outcome,))
        ]
        failed = Counter(one.status for one in each if isinstance(one, NoValue))
        notes = []
        if failed:
            reasons = ", ".join(f"{status} {number:,}" for status, number in failed.most_common())
            number = format_count(len(each), "rewrite")
            if failed.total() == len(each):
                raise ModelError(
                    f"{self}: none of {number} succeeded: {reasons}",
                    remedy="fix the cause and run the same command again, or use another model",
                )
            notes.append(f"{self}: {failed.total():,} of {number} failed; the turn is searched as it is ({reasons})")
        cut = [outcome.cut_messages for outcome in known if isinstance(outcome, TurnRewrites) and outcome.cut_messages]
        if cut:
            messages, turns = format_count(sum(cut), "message"), format_count(len(cut), "turn")
            notes.append(
                f"{self}: the oldest {messages} of the histories of {turns} are left out or shortened to fit the prompt"
            )
        return notes


def _turns(context: StepContext) -> list[Turn]:
    """The turn of each query; a query outside of conversations is a turn without a history."""
    known = {turn.query: turn for turn in turns_of(context.collection)}
    texts = context.queries.select("query", pl.col("text").fill_null("")).iter_rows()
    return [known.get(query) or Turn(query, query, 1, text) for query, text in texts]


def _without_rewrites(turns: Sequence[Turn]) -> list[str]:
    lacking = [turn.query for turn in turns if turn.rewrite is None and turn.history]
    if not lacking:
        return []
    few = format_list([quote_short(query, 24) for query in lacking], 3)
    return [f"rewritten: there is no human rewrite of {format_count(len(lacking), 'turn')} ({few})"]


def _nth_rewrite(found: TurnRewrites | NoValue | None, turn: Turn, number: int) -> str:
    """One rewrite of a turn, or the turn as it is."""
    text = found.rewrites[number] if isinstance(found, TurnRewrites) else None
    return text if isinstance(text, str) else turn.question
