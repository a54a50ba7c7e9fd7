"""Texts and ground truth of a test collection."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from ragworth.core.errors import TableError, format_count, format_list, quote_short
from ragworth.data import Contexts, Judgments, Ratings, coercion
from ragworth.data.coercion import Data
from ragworth.data.conversations import TURN_SCHEMA, TurnForm, check_turns
from ragworth.data.tables import Note
from ragworth.data.tokens import WORD_COUNTER, WORD_PATTERN, WORD_UNIT, TokenCounter, token_counter

PLAIN_SIGNS = {**dict.fromkeys("’‘`´", "'"), **dict.fromkeys("“”„«»", '"'), **dict.fromkeys("‐‑–—", "-")}
"""Quotes and dashes, and how keyboards write them."""


def _first_texts(texts: pl.Series, width: int = 24) -> str:
    """List the first three texts or ids and count the rest."""
    first = ", ".join(quote_short(each, width) for each in texts.head(3))
    return f"{first} and {len(texts) - 3:,} more" if len(texts) > 3 else first


TEXT_KEYS = {
    "queries": ["query"],
    "passages": ["passage"],
    "answers": ["query", "text"],
    "subquestions": ["query", "subquestion"],
}
"""The columns that tell the texts of a kind apart."""


def _text_table(kind: str, data: Data, source: str) -> pl.DataFrame:
    """Check a table of texts with their ids. Only an answer may be there twice."""
    frame, key = coercion.to_frame(data, source=source), TEXT_KEYS[kind]
    ids = [coercion.id_column(frame, name, table=kind, source=source) for name in key if name != "text"]
    if "text" not in frame.columns:
        raise TableError(f"{kind} need a 'text' column", expected=", ".join([*key, "text"]), file=source)
    texts = pl.DataFrame([*ids, coercion.to_text(frame["text"], source=source)])
    if kind != "answers":
        coercion.refuse_duplicates(texts, key, source, noun="text")
    return texts


def empty_text_frame(*names: str) -> pl.DataFrame:
    return pl.DataFrame(schema=dict.fromkeys(names, pl.String))


@dataclass(frozen=True, eq=False)
class Collection:
    """Queries, passages, accepted answers, relevance, sub-questions and ratings, all optional.

    Attributes
    ----------
    queries: query, text.
    passages: passage, text; with another counter than words also tokens and counter, the name of what was counted.
    answers: query, text; several rows of a query are alternatives.
    subquestions: query, subquestion, text.
    relevance: judgments of relevance.
    ratings: ratings of sub-questions.
    turns: query, conversation, number, history, rewrite, for queries that are turns of conversations; see
        :mod:`ragworth.data.conversations`.
    notes: problems found while reading.
    counter: what counts the tokens of passages and answers; see :meth:`counting`.
    turn_form: what the reader is asked in a conversation: the turn with the ``conversation`` before it, the human
        ``rewrite``, or the ``turn`` alone.
    """

    queries: pl.DataFrame = field(default_factory=lambda: empty_text_frame("query", "text"))
    passages: pl.DataFrame = field(default_factory=lambda: empty_text_frame("passage", "text"))
    answers: pl.DataFrame = field(default_factory=lambda: empty_text_frame("query", "text"))
    subquestions: pl.DataFrame = field(default_factory=lambda: empty_text_frame("query", "subquestion", "text"))
    relevance: Judgments | None = None
    ratings: Ratings | None = None
    turns: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=TURN_SCHEMA))
    notes: tuple[str, ...] = ()
    counter: TokenCounter = WORD_COUNTER
    turn_form: TurnForm = "conversation"

    @classmethod
    def of(
        cls,
        *,
        queries: Data | None = None,
        passages: Data | None = None,
        answers: Data | None = None,
        subquestions: Data | None = None,
        relevance: Judgments | Data | None = None,
        ratings: Ratings | Data | None = None,
        turns: Data | None = None,
        source: str = "",
        notes: tuple[str, ...] = (),
    ) -> Collection:
        """Check data frames or dicts of columns and collect them."""
        data_by_kind = {"queries": queries, "passages": passages, "answers": answers, "subquestions": subquestions}
        tables: dict[str, Any] = {
            kind: _text_table(kind, data, source) for kind, data in data_by_kind.items() if data is not None
        }
        if relevance is not None:
            tables["relevance"] = relevance if isinstance(relevance, Judgments) else Judgments(relevance, source=source)
        if ratings is not None:
            tables["ratings"] = ratings if isinstance(ratings, Ratings) else Ratings(ratings, source=source)
        if turns is not None:
            tables["turns"] = check_turns(turns, source)
        checked = cls(**tables, notes=notes)
        checked._require_turn_texts(source)
        return replace(checked, notes=(*notes, *checked._missing_text_notes()))

    def _require_turn_texts(self, source: str) -> None:
        """Refuse turns without a text in ``queries``: nothing could be asked or searched for them."""
        unknown = self.turns.join(self.queries, on="query", how="anti", maintain_order="left")["query"]
        if len(unknown):
            few = format_list([quote_short(query, 24) for query in unknown[:4]], 3)
            raise TableError(
                f"{format_count(len(unknown), 'turn')} without a text ({few})",
                expected="the text of every turn in the queries",
                file=source,
            )

    def _missing_text_notes(self) -> list[str]:
        """Note ids that are judged, rated or answered but have no text, if texts were given."""
        notes: list[str] = []
        tables = {
            "judged": self.relevance.frame if self.relevance else None,
            "rated": self.ratings.frame if self.ratings else None,
            "answered": self.answers,
        }
        for kind, texts in (("query", self.queries), ("passage", self.passages)):
            for verb, table in tables.items():
                if table is None or kind not in table.columns or not texts.height:
                    continue
                unknown = table.select(kind).unique(maintain_order=True).join(texts, on=kind, how="anti")[kind]
                if len(unknown):
                    plural = "queries" if kind == "query" else "passages"
                    few = format_list([quote_short(s, 24) for s in unknown[:3]], 3)
                    notes.append(f"{format_count(len(unknown), kind, plural)} {verb} but without text ({few})")
        return notes

    def doubtful_text_notes(self) -> list[str]:
        """Note passages without words, and questions that differ only in spelling but count as several."""
        notes: list[str] = []
        words = pl.col("text").str.strip_chars()
        blank = self.passages.filter(words == "")["passage"]
        if n := len(blank):
            passages = format_count(self.passages.height, "passage")
            notes.append(f"{n:,} of {passages} {'has' if n == 1 else 'have'} an empty text ({_first_texts(blank)})")
        plain = words.str.normalize("NFC").str.replace_many(PLAIN_SIGNS)
        key = plain.str.replace_all(r"\s+", " ").str.to_lowercase()
        alone = self.queries.join(self.turns, on="query", how="anti")  # turns may well repeat: "Why?"
        texts = alone.select("text", key=key).unique("text", maintain_order=True)
        again = texts.filter(~pl.col("key").is_first_distinct())["text"]
        if n := len(again):
            differ, count = ("differs", "counts") if n == 1 else ("differ", "count")
            questions, few = format_count(n, "question"), _first_texts(again, 60)
            only = "only in case, spaces, quotes or dashes"
            notes.append(f"{questions} {differ} from another {only}, and {count} as different ({few})")
        return notes

    def unknown(self, contexts: Contexts) -> tuple[str, ...]:
        """Note queries and passages of runs that have no text in the collection."""
        notes: list[str] = []
        for kind, plural, texts in (("query", "queries", self.queries), ("passage", "passages", self.passages)):
            if not texts.height:
                continue
            pairs = contexts.frame.select("system", kind)
            missing = pairs.join(texts, on=kind, how="anti", maintain_order="left").unique(maintain_order=True)
            for (system,), part in missing.group_by("system", maintain_order=True):
                number, few = format_count(part.height, kind, plural), _first_texts(part[kind])
                notes.append(Note(f"{system}: {number} not in the collection ({few})", system=str(system)))
        return tuple(notes)

    def counting(self, tokens: str) -> Collection:
        """The collection with lengths in other tokens: ``words``, ``hf:PATH/tokenizer.json`` or ``tiktoken:NAME``."""
        plain = replace(self, passages=self.passages.select("passage", "text"), counter=token_counter(tokens))
        return plain.with_passages(plain.passages.clear())

    def with_passages(self, more: pl.DataFrame) -> Collection:
        """The collection with more passages (passage, text), and their lengths."""
        passages = pl.concat([self.passages, more], how="diagonal") if more.height else self.passages
        if self.counter is not WORD_COUNTER:
            lengths = passages["tokens"] if "tokens" in passages.columns else [None] * passages.height
            pairs = zip(lengths, passages["text"], strict=True)
            counts = [self.counter.count(text) if length is None else length for length, text in pairs]
            tokens = pl.Series("tokens", counts, dtype=pl.UInt32)
            passages = passages.with_columns(tokens, pl.lit(self.counter.name).alias("counter"))
        return replace(self, passages=passages)

    def tokens(self) -> pl.DataFrame:
        """Length of each passage: passage, tokens, and counter, the name of what was counted."""
        if "counter" in self.passages.columns:
            return self.passages.select("passage", "tokens", "counter")
        words = pl.col("text").str.count_matches(WORD_PATTERN).alias("tokens")
        return self.passages.select("passage", words, pl.lit(WORD_UNIT).alias("counter"))

    def equals(self, other: Collection) -> bool:
        """Return whether both have the same tables."""
        frames = ("queries", "passages", "answers", "subquestions", "turns")
        return (
            all(getattr(self, name).equals(getattr(other, name)) for name in frames)
            and self.relevance == other.relevance
            and self.ratings == other.ratings
        )


def merge_collections(parts: Sequence[Collection]) -> Collection:
    """Merge collections. Repeated texts are fine; different texts for the same id are an error."""
    texts: dict[str, Any] = {}
    for kind, keys in {**TEXT_KEYS, "turns": ["query"]}.items():
        frames = [frame for part in parts if (frame := getattr(part, kind)).height]
        if len(frames) < 2:
            texts |= {kind: frames[0]} if frames else {}
            continue
        every = pl.concat(frames).unique(maintain_order=True)
        if kind == "queries":  # blanks and forms of Unicode don't make another question
            blank = every["text"].str.normalize("NFC").str.replace_all(r"\s+", " ").str.strip_chars()
            every = every.filter(pl.struct("query", blank.alias("plain")).is_first_distinct())
        duplicates = coercion.duplicate_rows(every, keys)
        if len(duplicates):
            row = every.row(int(duplicates[0]), named=True)
            name = ", ".join(f"{key} {quote_short(row[key], 24)}" for key in keys)
            what = "turns" if kind == "turns" else "texts"
            raise TableError(f"two {what} for {name}", expected="one for each id", remedy="give it in one place")
        texts[kind] = every
    relevance = [part.relevance for part in parts if part.relevance is not None]
    ratings = [part.ratings for part in parts if part.ratings is not None]
    if len(ratings) > 1:
        raise TableError("ratings come from more than one place", expected="one table of ratings")
    return Collection(
        **texts,
        relevance=Judgments.concat(relevance) if relevance else None,
        ratings=ratings[0] if ratings else None,
        notes=tuple(dict.fromkeys((*(note for part in parts for note in part.notes), *_differing_answers(parts)))),
    )


def _differing_answers(parts: Sequence[Collection]) -> tuple[str, ...]:
    """A note on queries whose accepted answers are not the same in all parts that have some."""
    accepted: dict[str, set[frozenset[str]]] = {}
    for part in parts if len(parts) > 1 else []:
        for query, texts in part.answers.group_by("query", maintain_order=True).agg("text").iter_rows():
            accepted.setdefault(query, set()).add(frozenset(map(plain_text, texts)))
    differing = [query for query, versions in accepted.items() if len(versions) > 1]
    if not differing:
        return ()
    questions = {query: text for part in parts for query, text in part.queries.select("query", "text").iter_rows()}
    few = format_list([quote_short(questions.get(query, query), 24) for query in differing], 3)
    number = format_count(len(differing), "query", "queries")
    return (f"different files have different accepted answers to {number} ({few}); an answer may be any of them",)


def plain_text(text: str) -> str:
    """A text in NFC and with single blanks: other blanks don't make another text."""
    return " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())


def match_questions(rows: pl.DataFrame, queries: pl.DataFrame) -> pl.DataFrame:
    """Rows about questions by their text, with the ids that these questions have."""
    ids = dict(queries.select("query", "text").iter_rows())
    first = reversed(ids.items())  # of questions with the same text
    queries_by_text = {name: query for query, text in first for name in (plain_text(text), text_id(plain_text(text)))}
    wanted = {query: queries_by_text.get(plain_text(query)) for query in rows["query"].unique() if query not in ids}
    renames = {query: name for query, name in wanted.items() if name is not None and name != query}
    return rows.with_columns(pl.col("query").replace(renames)) if renames else rows


TEXT_ID = "text:"
"""The beginning of ids that are derived from texts."""


def text_id(text: str) -> str:
    """Derive an id from a text, so that equal texts are the same passage."""
    return TEXT_ID + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
