"""Build the tables of a RAG log. Every format of logs turns its rows into records, and all records come here.

A record says what one system showed and answered for one question. Nothing of it is dropped without a note: an answer
that is missing has a status, a context without passages is an empty context, and passage ids that mean different texts
in different queries are made unique.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, ValuesView
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import FormatError, Hint, format_count, quote_short
from ragworth.data import OK, Answers, Contexts, Judgments
from ragworth.data.collection import Collection, plain_text, text_id
from ragworth.data.ranking import rising_notes
from ragworth.formats.contract import LoadedCollection
from ragworth.formats.grades import LogGrades
from ragworth.formats.logs.collector import LogCollector
from ragworth.formats.logs.records import LoggedPassage

NO_ANSWER = "no-answer"
"""Status of an answer that the log does not have."""

MIN_RISING_SHARE = 0.1
"""Share of the contexts whose scores contradict the order of their passages, from which on that is noted."""
MIN_CONTAINED = 30
"""Characters of the shorter of two texts at least, if one is said to be part of the other."""


class LogBuilder(LogCollector):
    """Collects records, and makes tables of them."""

    def build(self, notes: tuple[str, ...] = ()) -> LoadedCollection:
        """Make the tables."""
        if not self.seen:
            raise FormatError("no rows: the file is empty", file=self.source)
        made = [*notes]
        check_questions(self)
        note_repeated_texts(self, made)
        make_ids_unique(self, made)
        relevance = self._relevance(made)
        contexts = self._contexts(made)
        answers = self._answer_table(made)
        answered = dict.fromkeys((row[0], row[1]) for row in self.answers)
        grades = LogGrades(self.source, self.unit, self.columns, self.grades)
        outcomes = grades.table(self.outcomes, answered, made)
        if self.duplicates:
            again = format_count(self.duplicates, "record equals an earlier one", "records equal earlier ones")
            made.append(f"{self.source}: {again}; each counts once")
        if self.no_references:
            which = self.places(self.no_references)
            made.append(f"{self.source}: {which} with an accepted answer such as 'N/A'; read as none")
        every = tuple(note.removeprefix(": ") for note in made)  # data in memory has no name
        pairs = [(query, text) for query, texts in self.accepted.items() for text in texts]
        collection = Collection.of(
            queries={"query": list(self.queries), "text": list(self.queries.values())} if self.queries else None,
            passages={"passage": list(self.texts), "text": list(self.texts.values())} if self.texts else None,
            answers={"query": [p[0] for p in pairs], "text": [p[1] for p in pairs]} if pairs else None,
            relevance=relevance,
            source=self.source,
            notes=() if contexts or answers else every,
        )
        if contexts is not None:
            contexts.notes = every
        elif answers is not None:
            answers.notes = every
        return LoadedCollection(collection, contexts, answers, outcomes)

    def _relevance(self, notes: list[str]) -> Judgments | None:
        """Labels of the passages shown, and passages known to be relevant."""
        values: dict[tuple[str, str], float] = {}
        for (row, query), value in self.judged.items():
            key = query, self.rows[row][3]
            if values.setdefault(key, value) != value:
                raise FormatError(
                    f"passage {quote_short(key[1], 24)} of query {quote_short(query, 24)} has two relevance labels",
                    file=self.source,
                )
        values |= self._match_relevant(values, notes)
        if not values:
            return None
        return Judgments(
            {
                "query": [query for query, _ in values],
                "passage": [passage for _, passage in values],
                "value": list(values.values()),
                "source": [self.source or "given"] * len(values),
            },
            source=self.source,
        )

    def _match_relevant(self, known: Mapping[tuple[str, str], float], notes: list[str]) -> dict[tuple[str, str], float]:
        """Find the passages known to be relevant among those shown; the others become passages too."""
        if not self.relevant:
            return {}
        shown: dict[str, dict[str, str]] = {}
        for _, query, _, name, _ in self.rows:
            if query in self.relevant:
                shown.setdefault(query, {})[name] = plain_text(self.texts.get(name, ""))
        found = find_references(self.relevant, shown)
        where = f"{self.source}: " if self.source else ""
        if not found.hits and self.rows:
            notes.append(
                f"{where}none of the {found.total:,} reference passages is among those retrieved, by id or text; "
                "they were not used as relevance labels, because every system would score 0"
            )
            return {}
        if self.rows and found.hits < found.total:
            notes.append(
                f"{where}{found.hits:,} of {found.total:,} reference passages are among those retrieved, by id or text"
            )
        self.texts = found.unseen | self.texts
        return {key: 1.0 for key in found.relevant if key not in known}

    def _contexts(self, notes: list[str]) -> Contexts | None:
        if not self.shown:
            return None
        if self.unrecorded:
            which = self.places(self.unrecorded.values())
            notes.append(f"{self.source}: {which} without passages; read as nothing retrieved")
        if self.repeated_passages:
            number = format_count(self.repeated_passages, "passage")
            notes.append(f"{self.source}: {number} shown twice in the same context; the first position counts")
        if self.different_repeats:
            number = format_count(self.different_repeats, "repeat")
            notes.append(f"{self.source}: {number} of a question with other passages; those of the first are kept")
        schema = {"system": pl.String, "query": pl.String, "rank": pl.UInt32, "passage": pl.String, "score": pl.Float64}
        frame = pl.DataFrame(self.rows, schema=schema, orient="row")
        if self.hops:
            found = [self.hops.get(row, (None, None)) for row in range(frame.height)]
            more = pl.DataFrame(found, schema={"hop": pl.Int64, "search": pl.String}, orient="row")
            frame = frame.hstack(more)
        empty = [key for key, (start, end) in self.shown.items() if start == end] + list(self.unrecorded)
        contexts = Contexts(frame, source=self.source, empty=empty)
        assert contexts.starts is not None
        scores = contexts.frame["score"]
        rising = rising_notes(scores, contexts.starts, "the order of the file counts", min_share=MIN_RISING_SHARE)
        notes += [f"{self.source}: {note}" for note in rising]
        if contexts.hops is not None and self.other_hops:
            again = pl.DataFrame(self.other_hops, schema=contexts.hops.schema, orient="row")
            contexts.hops = pl.concat([contexts.hops, again])
        return contexts

    def _answer_table(self, notes: list[str]) -> Answers | None:
        rows = self.answers
        notes += [
            f"{self.source}: {self.places(places)} {said}; read as no answer: missing, not wrong"
            for said, places in self.no_answers.items()
        ]
        if not any(row[3] is not None or row[4] for row in rows):
            return None
        missing = [row for row in rows if row[3] is None]
        if missing:
            which = self.places(row[5] for row in missing)
            notes.append(f"{self.source}: {which} of {len(rows):,} without an answer; missing, not wrong")
        columns = {
            "system": [row[0] for row in rows],
            "query": [row[1] for row in rows],
            "repeat": [row[2] for row in rows],
            "text": pl.Series([row[3] for row in rows], dtype=pl.String),
            "status": [row[4] or (NO_ANSWER if row[3] is None else OK) for row in rows],
            "source": [row[6] for row in rows],
        }
        return Answers(columns, source=self.source)


def check_questions(log: LogCollector) -> None:
    """Raise an error if systems have different ids for the same questions, as where ids number records."""
    ids: dict[str, set[str]] = {}
    texts: dict[str, set[str]] = {}
    for system, query, _ in log.seen:
        ids.setdefault(system, set()).add(query)
        texts.setdefault(system, set()).add(plain_text(log.queries.get(query, query)))
    if log.strict or len(ids) < 2 or not _are_apart(ids.values()) or _are_apart(texts.values()):
        return
    raise FormatError(
        "the systems have no ids of questions in common, but the same texts",
        file=log.source,
        remedy=Hint(
            "if questions go by their texts: --map query=question",
            'if questions go by their texts, write under [columns]: query = "question"',
            'if questions go by their texts: columns={"query": "question"}',
            option="columns",
        ),
    )


def _are_apart(groups: ValuesView[set[str]]) -> bool:
    return sum(map(len, groups)) == len(set().union(*groups))


def asks_again(log: LogCollector) -> int:
    """How many questions have several ids in a system, if most have; otherwise 0."""
    pairs = {(system, query) for system, query, _ in log.seen}
    asked = Counter((system, log.queries.get(query, query).strip()) for system, query in pairs)
    again = sum(number > 1 for number in asked.values())
    return 0 if log.strict or 2 * again <= len(asked) else again


def note_repeated_texts(log: LogCollector, notes: list[str]) -> None:
    """Note that most questions have several ids in a system: they may be answers of several systems, or repeats."""
    again = asks_again(log)
    if not again:
        return
    notes.append(
        f"{log.source}: {format_count(again, 'question occurs', 'questions occur')} several times under different "
        f"ids, each read as a question of its own; if these are answers of several systems: --map system=COLUMN; "
        "if they are repeats: --map query=question and --map repeat=COLUMN"
    )


def make_ids_unique(log: LogCollector, notes: list[str]) -> None:
    """Give passages whose id has several texts an id of their own in each query."""
    clashing = {log.rows[row][3] for row in log.other_texts}
    if not clashing:
        return
    first = {name: log.texts.pop(name) for name in clashing}
    names: dict[tuple[str, str], dict[str, str]] = {}
    example = ""
    for number, (system, query, rank, name, score) in enumerate(log.rows):
        if name not in clashing:
            continue
        text = log.other_texts.get(number, first[name])
        of_query = names.setdefault((query, name), {})
        if text not in of_query:
            unique = f"{query}/{name}" + (f"#{len(of_query) + 1}" if of_query else "")
            while unique in log.texts:
                unique += "~"
            of_query[text] = unique
            log.texts[unique] = text
        log.rows[number] = (system, query, rank, of_query[text], score)
        example = example or f"{quote_short(name, 24)} is now {quote_short(of_query[text], 48)}"
    passages = format_count(len(clashing), "passage id has", "passage ids have")
    notes.append(f"{log.source}: {passages} different texts in different contexts, so they got new ids ({example})")


class FoundReferences(NamedTuple):
    """Pairs of query and relevant passage, the texts of passages that were not shown, and how many were."""

    relevant: list[tuple[str, str]]
    unseen: dict[str, str]
    hits: int
    total: int


def find_references(
    references: Mapping[str, Sequence[LoggedPassage]], shown: Mapping[str, Mapping[str, str]]
) -> FoundReferences:
    """Find the reference passages of each query among the passages ``shown``: their plain texts by name."""
    relevant: list[tuple[str, str]] = []
    unseen: dict[str, str] = {}
    hits = total = 0
    for query, passages in references.items():
        for passage in dict.fromkeys(passages):
            found = _find_shown(passage, shown.get(query, {}))
            hits, total = hits + bool(found), total + 1
            relevant += [(query, name) for name in found]
            if not found:
                name = passage.id if passage.id is not None else text_id(passage.text or "")
                relevant.append((query, name))
                unseen |= {name: passage.text} if passage.text is not None else {}
    return FoundReferences(relevant, unseen, hits, total)


def _find_shown(passage: LoggedPassage, shown: Mapping[str, str]) -> list[str]:
    """The names of a passage that is known to be relevant among those shown, by id or text.

    A log may cut its passages. Where several begin like the passage, nothing says which of them it is.
    """
    wanted = plain_text(passage.text or "")
    found = [name for name, text in shown.items() if passage.id == name or _is_same(wanted, text)]
    beginnings = {name: cut for name, text in shown.items() if name not in found and (cut := _cut_text(text))}
    alike = Counter(beginnings.values())
    return found + [name for name, cut in beginnings.items() if wanted.startswith(cut) and alike[cut] == 1]


def _is_same(wanted: str, text: str) -> bool:
    """Whether two texts are the same, or one contains the other."""
    if not wanted or not text:
        return False
    return wanted == text or (min(len(wanted), len(text)) >= MIN_CONTAINED and (wanted in text or text in wanted))


def _cut_text(text: str) -> str:
    """The beginning of a text that a log has cut; nothing if it is whole, or too short to say which it is."""
    start = text.removesuffix("…").removesuffix("...").rstrip()
    return start if start != text and len(start) >= MIN_CONTAINED else ""
