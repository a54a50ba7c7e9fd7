"""Candidate rewrites of turns: by rule, from a model, or given; equal ones are merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import InputError, MissingInputError, format_count, format_list, give_input, quote_short
from ragworth.data import OK
from ragworth.data.collection import Collection, plain_text
from ragworth.data.conversations import Message, Turn
from ragworth.judging.rewriter import BASELINES
from ragworth.retrieval.words import add_history_terms
from ragworth.rewriting.tables import CANDIDATES

TERMS = "history-terms"
RULES = (*BASELINES, TERMS)

SAME = "same text as another candidate"
EMPTY = "empty"
NO_REWRITE = "no human rewrite"


class Proposal(NamedTuple):
    """A rewrite before duplicates are merged."""

    query: str
    name: str
    text: str
    source: str


@dataclass(frozen=True)
class CandidateSet:
    """Candidates of all turns, and how many proposals were dropped, by reason."""

    frame: pl.DataFrame
    dropped: Mapping[str, int]
    single: int
    """Turns with only one candidate, which can't make a pair."""

    def __str__(self) -> str:
        turns = self.frame["query"].n_unique()
        reasons = ", ".join(f"{reason}: {number:,}" for reason, number in self.dropped.items())
        words = f"{format_count(self.frame.height, 'candidate')} of {format_count(turns, 'turn')}"
        words += f"; dropped: {reasons}" if reasons else ""
        return f"{words}; {format_count(self.single, 'turn')} with only one" if self.single else words


def check_turns(turns: Sequence[Turn], *, first: bool = False) -> list[Turn]:
    """The turns to rewrite: those with a history. Without any, there is nothing to rewrite, which is an error."""
    if not turns:
        raise InputError("there are no conversations", expected="a collection whose queries are turns of conversations")
    kept = [turn for turn in turns if turn.history or first]
    if not kept:
        raise InputError(
            f"none of {format_count(len(turns), 'turn')} has a history",
            expected="turns that follow others",
            remedy="give each turn what was said before it, in 'history'",
        )
    repeats = sum(bool(turn.history) and turn.history[-1] == Message("user", turn.question) for turn in kept)
    if 2 * repeats > len(kept):
        raise InputError(
            f"the history of {repeats:,} of {format_count(len(kept), 'turn')} ends with the turn itself",
            expected="what was said before the turn",
            remedy="leave the turn's own question out of 'history'",
        )
    return kept


def by_rules(turns: Sequence[Turn], rules: Sequence[str], collection: Collection) -> list[Proposal | None]:
    """Candidates by rule; None where a turn has no human rewrite."""
    found: list[Proposal | None] = []
    for rule in rules:
        if rule not in RULES:
            raise InputError(f"the rule is {rule!r}", expected=f"some of {', '.join(RULES)}")
        if rule == TERMS:
            if not collection.passages.height:
                raise MissingInputError(TERMS, "passages", "there are none", give_input("passages"))
            texts: Iterable[str | None] = add_history_terms(turns, collection.passages["text"])
        else:
            texts = map(BASELINES[rule], turns)
        for turn, text in zip(turns, texts, strict=True):
            found.append(None if text is None else Proposal(turn.query, rule, text, rule))
    return found


def from_samples(frame: pl.DataFrame, name: str) -> list[Proposal | str]:
    """Candidates from the rows of `ragworth.judging.rewriter`; the status where there is no text."""
    return [
        Proposal(row["query"], f"{name}-{row['sample'] + 1}", row["text"], row["source"])
        if row["status"] == OK
        else str(row["status"])
        for row in frame.iter_rows(named=True)
    ]


def from_table(frame: pl.DataFrame, turns: Sequence[Turn], name: str) -> list[Proposal]:
    """Given candidates (query, text); those of unknown turns are an error."""
    known = {turn.query for turn in turns}
    unknown = [query for query in frame["query"].unique(maintain_order=True) if query not in known]
    if unknown:
        few = format_list([quote_short(query, 24) for query in unknown], 3)
        raise InputError(
            f"candidates of {format_count(len(unknown), 'query', 'queries')} that aren't turns with a history ({few})",
            file=name,
            expected="ids of turns",
        )
    numbers: Counter[str] = Counter()
    found = []
    for query, text in frame.select("query", "text").iter_rows():
        numbers[query] += 1
        found.append(Proposal(query, f"{name}-{numbers[query]}", text, name))
    return found


def merge_candidates(turns: Sequence[Turn], proposals: Sequence[Proposal | str | None]) -> CandidateSet:
    """Merge proposals whose texts are equal apart from case, blanks and Unicode form; the first one's text stays."""
    dropped: Counter[str] = Counter()
    merged: dict[str, dict[str, Proposal]] = {turn.query: {} for turn in turns}
    for proposal in proposals:
        if not isinstance(proposal, Proposal):
            dropped[proposal or NO_REWRITE] += 1
            continue
        text = plain_text(proposal.text)
        same = merged[proposal.query]
        if not text:
            dropped[EMPTY] += 1
        elif (key := text.casefold()) in same:
            dropped[SAME] += 1
            if proposal.source not in same[key].source.split(", "):
                same[key] = same[key]._replace(source=f"{same[key].source}, {proposal.source}")
        else:
            same[key] = proposal._replace(text=text)
    rows = [each for same in merged.values() for each in same.values()]
    if not rows:
        reasons = "; ".join(f"{reason}: {number:,}" for reason, number in dropped.items())
        raise InputError(f"there is no candidate ({reasons or 'nothing was proposed'})", expected="at least one")
    single = sum(len(same) == 1 for same in merged.values())
    return CandidateSet(pl.DataFrame(rows, schema=dict(CANDIDATES), orient="row"), dict(dropped), single)
