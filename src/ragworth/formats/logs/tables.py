"""Build the tables of a RAG log. Every format of logs turns its rows into records, and all records come here.

A record says what one system showed and answered for one question. Nothing of it is dropped without a note: an answer
that is missing has a status, a context without passages is an empty context, and passage ids that mean different texts
in different queries are made unique.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import FormatError, format_count, format_list, format_places, quote_short
from ragworth.data import OK, Answers, Contexts, Judgments, Outcomes
from ragworth.data.collection import TEXT_ID, Collection, plain_text, text_id
from ragworth.data.ranking import rising_notes
from ragworth.data.tables import TRUNCATED
from ragworth.formats.contract import LoadedCollection
from ragworth.formats.logs.names import mapping_hint
from ragworth.formats.logs.passages import LoggedPassage
from ragworth.formats.logs.records import NO_ANSWER_TEXTS, NO_REFERENCE, LogRecord
from ragworth.formats.outcomes import GradeFile, GradeRow, read_logged
from ragworth.formats.values import WrongLineError

ERROR = "error"
"""Status of an answer that is the message of an error."""

NO_ANSWER = "no-answer"
"""Status of an answer that the log does not have."""

TRACE_SOURCE = "trace:"
"""Before the id of a trace, the source of an answer from it."""

TWICE = "occurs twice"

ERROR_TEXT = re.compile(
    r"Traceback \(most recent call last\)|(?:\w+\.)*(?:(?:[A-Z]\w*)?(?:Error|ERROR|Exception)|[A-Z]\w+Timeout): "
    r"|Error code: \d{3}\b|Connection error\.|Request timed out\.|HTTPS?ConnectionPool\(|\{\s*[\"']error[\"']\s*:"
    r"|(?:An )?error (?:has )?occurred\b|(?:429|5\d\d) [A-Z]\w+ [A-Z]|Rate limit (?:reached|exceeded)(?:[.:!]|$)"
)
"""Beginnings of the messages of Python, of servers and of their clients, in place of an answer."""

MIN_RISING_SHARE = 0.1
"""Share of the contexts whose scores contradict the order of their passages, from which on that is noted."""

MIN_CONTAINED = 30
"""Characters of the shorter of two texts at least, if one is said to be part of the other."""


class DistinctPassages(NamedTuple):
    """The passages of a context with their ids, each once; and those found again, or searches without any."""

    names: list[str]
    passages: list[LoggedPassage]
    others: list[tuple[str | None, LoggedPassage]]


@dataclass(slots=True)
class ContextRow:
    """A passage of a context, at its place."""

    system: str
    query: str
    rank: int
    name: str
    passage: LoggedPassage


class LogBuilder:
    """Collects records, and makes tables of them.

    ``unit`` says what places count: lines, rows or records. With ``exact``, ids are those of our own format: a passage
    id occurs once in a context, and questions with different ids are different.
    """

    def __init__(self, source: str, system: str, *, unit: str = "line", exact: bool = False) -> None:
        self.source, self.system, self.unit, self.exact = source, system, unit, exact
        self.records: dict[tuple[str, str, int], LogRecord] = {}
        """The records by system, query and repeat, in the order of the file."""
        self.contexts: dict[tuple[str, str, int], DistinctPassages] = {}
        """The passages of the records that say what was shown."""
        self.questions: dict[str, str] = {}
        self.accepted: dict[str, LogRecord] = {}
        """The first record with accepted answers to each query."""
        self.texts: dict[str, str] = {}
        self.shown: list[ContextRow] = []
        self.notes: list[str] = []
        self.duplicates = 0
        self.no_references: list[int] = []
        self.no_systems: list[int] = []

    def add(self, record: LogRecord) -> None:
        """Add a record; one that can't be used raises a :class:`WrongLineError` and changes nothing."""
        if not record.query and not record.question:
            raise WrongLineError("the record has neither a question nor the id of one")
        name = record.query or record.question
        # The query of a question without id is derived from its text.
        record.query = record.query or text_id(plain_text(record.question or ""))
        is_named = bool(record.system)
        record.system = record.system or self.system
        key = record.system, record.query, record.repeat
        if (earlier := self.records.get(key)) is not None:
            if record.row is None or record.row != earlier.row:
                raise WrongLineError(f"query {quote_short(name, 40)} {TWICE} for system {quote_short(key[0], 24)}")
            self.duplicates += 1
            return
        accepted = [text for text in record.accepted if text.strip() not in NO_REFERENCE]
        self._check_texts(record, accepted)
        if record.passages is not None:
            context = _distinct(record.passages)
            again = len(set(context.names)) < len(context.names) or any(p.hop is None for _, p in context.others)
            if self.exact and again:
                raise WrongLineError(f"a passage occurs twice for query {quote_short(record.query, 24)}")
            self.contexts[key] = context
        self.records[key] = record
        self.no_systems += [] if is_named else [record.place]
        self.no_references += [record.place] if len(accepted) < len(record.accepted) else []
        record.accepted = accepted
        if record.question is not None:
            self.questions.setdefault(record.query, record.question)
        if accepted:
            self.accepted.setdefault(record.query, record)

    def _check_texts(self, record: LogRecord, accepted: Sequence[str]) -> None:
        """Check that a query has the same question and accepted answers everywhere."""
        question, earlier = self.questions.get(record.query), self.accepted.get(record.query)
        if record.question is not None and question is not None and plain_text(question) != plain_text(record.question):
            name = quote_short(record.query, 24)
            raise WrongLineError(f"the query {name} has a different text on an earlier {self.unit}")
        if not accepted or earlier is None:
            return
        if sorted(map(plain_text, earlier.accepted)) != sorted(map(plain_text, accepted)):
            name = quote_short(record.question or question or record.query, 60)
            here, there = (_few(texts) for texts in (accepted, earlier.accepted))
            raise WrongLineError(f"the accepted answer to {name} is {here}, but {there} on {self.unit} {earlier.place}")

    def build(self, columns: Mapping[str, str], certain: Container[str], notes: Iterable[str]) -> LoadedCollection:
        """Make the tables. ``columns`` says where the file has the grades, and ``certain`` which must be grades."""
        self.notes = [*notes]
        if not self.exact:
            self._check_ids()
        contexts = self._make_contexts()
        relevance = self._make_relevance()
        answers = self._make_answers()
        outcomes = self._make_outcomes(columns, certain)
        self._note_gaps()
        pairs = [(query, text) for query, record in self.accepted.items() for text in record.accepted]
        noted = answers if contexts is None else contexts
        collection = Collection.of(
            queries={"query": list(self.questions), "text": list(self.questions.values())} if self.questions else None,
            passages={"passage": list(self.texts), "text": list(self.texts.values())} if self.texts else None,
            answers={"query": [pair[0] for pair in pairs], "text": [pair[1] for pair in pairs]} if pairs else None,
            relevance=relevance,
            source=self.source,
            notes=tuple(self.notes) if noted is None else (),
        )
        if noted is not None:
            noted.notes = tuple(self.notes)
        return LoadedCollection(collection, contexts, answers, outcomes)

    def _note(self, text: str) -> None:
        self.notes.append(f"{self.source}: {text}" if self.source else text)  # data in memory has no name

    def _note_places(self, places: Iterable[int], text: str) -> None:
        """Note something about the records at these places, if there are any."""
        if places := list(places):
            self._note(f"{format_places(places, self.unit)} {text}")

    def _check_ids(self) -> None:
        """Check the ids of questions: an error if they number the records of systems, a note if they may do so."""
        ids: dict[str, set[str]] = {}
        texts: dict[str, set[str]] = {}
        for system, query, _ in self.records:
            ids.setdefault(system, set()).add(query)
            texts.setdefault(system, set()).add(plain_text(self.questions.get(query, query)))
        if len(ids) > 1 and _are_apart(ids.values()) and not _are_apart(texts.values()):
            raise FormatError(
                "the systems have no ids of questions in common, but the same texts",
                file=self.source,
                remedy=mapping_hint(({"query": "question"}, " if questions go by their texts")),
            )
        if 2 * sum(map(len, texts.values())) < sum(map(len, ids.values())) + 1:
            self._note(
                "questions occur several times under different ids, each read as a question of its own; if these are "
                "answers of several systems: --map system=COLUMN; if they are repeats: --map query=question and --map "
                "repeat=COLUMN",
            )

    def _make_contexts(self) -> Contexts | None:
        """Make the table of the passages shown; of several repeats, the first counts."""
        shown: dict[tuple[str, str], list[str]] = {}
        searches: list[tuple[str, str, str | None, int, str | None]] = []
        different = repeated = 0
        for (system, query, _), context in self.contexts.items():
            repeated += sum(name is not None for name, _ in context.others)
            if (system, query) in shown:
                different += shown[system, query] != context.names
                continue
            shown[system, query] = context.names
            named = zip(context.names, context.passages, strict=True)
            self.shown += [ContextRow(system, query, rank, *each) for rank, each in enumerate(named, 1)]
            searches += [(system, query, name, p.hop, p.search) for name, p in context.others if p.hop is not None]
        if not shown:
            return None
        self._collect_texts()
        unrecorded = {key[:2]: record.place for key, record in self.records.items() if key[:2] not in shown}
        self._note_places(unrecorded.values(), "without passages; read as nothing retrieved")
        if repeated:
            which = format_count(repeated, "passage")
            self._note(f"{which} shown twice in the same context; the first position counts")
        if different:
            which = format_count(different, "repeat")
            self._note(f"{which} of a question with other passages; those of the first are kept")
        columns = {
            "system": pl.Series([row.system for row in self.shown], dtype=pl.String),
            "query": pl.Series([row.query for row in self.shown], dtype=pl.String),
            "rank": pl.Series([row.rank for row in self.shown], dtype=pl.UInt32),
            "passage": pl.Series([row.name for row in self.shown], dtype=pl.String),
            "score": pl.Series([row.passage.score for row in self.shown], dtype=pl.Float64),
        }
        if any(row.passage.hop is not None for row in self.shown):
            columns["hop"] = pl.Series([row.passage.hop for row in self.shown], dtype=pl.Int64)
            columns["search"] = pl.Series([row.passage.search for row in self.shown], dtype=pl.String)
        empty = [key for key, names in shown.items() if not names] + list(unrecorded)
        contexts = Contexts(columns, source=self.source, empty=empty)
        assert contexts.starts is not None
        scores = contexts.frame["score"]
        for note in rising_notes(scores, contexts.starts, "the order of the file counts", min_share=MIN_RISING_SHARE):
            self._note(note)
        if contexts.hops is not None and searches:
            again = pl.DataFrame(searches, schema=contexts.hops.schema, orient="row")
            contexts.hops = pl.concat([contexts.hops, again])
        return contexts

    def _collect_texts(self) -> None:
        """Collect the texts of passages. Those whose id has several texts get an id of their own in each query."""
        clashing: set[str] = set()
        for row in self.shown:
            text = row.passage.text
            if text is not None and self.texts.setdefault(row.name, text) != text:
                clashing.add(row.name)
        if not clashing:
            return
        first = {name: self.texts.pop(name) for name in clashing}
        unique: dict[tuple[str, str], dict[str, str]] = {}
        example = ""
        for row in self.shown:
            if row.name not in clashing:
                continue
            text = first[row.name] if row.passage.text is None else row.passage.text
            of_query = unique.setdefault((row.query, row.name), {})
            if text not in of_query:
                name = f"{row.query}/{row.name}" + (f"#{len(of_query) + 1}" if of_query else "")
                of_query[text] = name if name not in self.texts else f"{name}~{text_id(text)}"
                self.texts[of_query[text]] = text
            example = example or f"{quote_short(row.name, 24)} is now {quote_short(of_query[text], 48)}"
            row.name = of_query[text]
        which = format_count(len(clashing), "passage id has", "passage ids have")
        self._note(f"{which} different texts in different contexts, so they got new ids ({example})")

    def _make_relevance(self) -> Judgments | None:
        """Make the table of labels of the passages shown, and of passages known to be relevant."""
        values: dict[tuple[str, str], float] = {}
        for row in self.shown:
            value = row.passage.relevance
            if value is not None and values.setdefault((row.query, row.name), value) != value:
                names = f"passage {quote_short(row.name, 24)} of query {quote_short(row.query, 24)}"
                raise FormatError(f"{names} has two relevance labels", file=self.source)
        values = dict.fromkeys(self._match_relevant(), 1.0) | values
        if not values:
            return None
        columns = {
            "query": [query for query, _ in values],
            "passage": [passage for _, passage in values],
            "value": list(values.values()),
            "source": [self.source or "given"] * len(values),
        }
        return Judgments(columns, source=self.source)

    def _match_relevant(self) -> list[tuple[str, str]]:
        """Find the passages known to be relevant among those shown, by id or text; the others become passages too."""
        records = self.records.values()
        references = list(dict.fromkeys((record.query, each) for record in records for each in record.relevant))
        shown: dict[str, dict[str, str]] = {query: {} for query, _ in references}
        for row in self.shown:
            if row.query in shown:
                shown[row.query][row.name] = plain_text(self.texts.get(row.name, ""))
        relevant: list[tuple[str, str]] = []
        unseen: dict[str, str] = {}
        hits = 0
        for query, passage in references:
            wanted = plain_text(passage.text or "")
            texts = shown[query].items()
            matches = [name for name, text in texts if passage.id == name or _is_same(wanted, text)]
            hits += bool(matches)
            if not matches:
                matches = [passage.id if passage.id is not None else text_id(passage.text or "")]
                unseen |= {matches[0]: passage.text} if passage.text is not None else {}
            relevant += [(query, name) for name in matches]
        if self.shown and references and not hits:
            self._note(
                f"none of the {len(references):,} reference passages is among those retrieved, by id or text; "
                "they were not used as relevance labels, because every system would score 0",
            )
            return []
        if self.shown and hits < len(references):
            self._note(f"{hits:,} of {len(references):,} reference passages are among those retrieved, by id or text")
        self.texts = unseen | self.texts
        return relevant

    def _make_answers(self) -> Answers | None:
        """Make the table of answers. A text of a missing value or of an error is no answer."""
        texts: list[str | None] = []
        statuses: list[str] = []
        no_answers: dict[str, list[int]] = {}
        records = list(self.records.values())
        for record in records:
            text = (record.answer or "").strip()
            answer, status = record.answer, record.status
            if is_missing_answer(text, record.accepted):
                no_answers.setdefault(f"with the answer {text!r}", []).append(record.place)
                answer, status = None, "" if status == TRUNCATED else status
            elif is_error_message(text, record.accepted):
                no_answers.setdefault("with an error message for an answer", []).append(record.place)
                answer, status = None, ERROR
            texts.append(answer)
            statuses.append(status)
        for description, places in no_answers.items():
            self._note_places(places, f"{description}; read as no answer: missing, not wrong")
        if not any(statuses) and all(text is None for text in texts):
            return None
        missing = [record.place for record, text in zip(records, texts, strict=True) if text is None]
        self._note_places(missing, f"of {len(records):,} without an answer; missing, not wrong")
        columns = {
            "system": [record.system for record in records],
            "query": [record.query for record in records],
            "repeat": [record.repeat for record in records],
            "text": pl.Series(texts, dtype=pl.String),
            "status": [
                status or (NO_ANSWER if text is None else OK) for status, text in zip(statuses, texts, strict=True)
            ],
            "source": [
                f"{TRACE_SOURCE}{record.trace}" if record.trace else self.source or "given" for record in records
            ],
        }
        return Answers(columns, source=self.source)

    def _make_outcomes(self, columns: Mapping[str, str], certain: Container[str]) -> Outcomes | None:
        """Make the table of grades. Where other answers of a system have a grade, one without it has none."""
        systems: dict[str, set[str]] = {}
        for record in self.records.values():
            for aspect in record.outcomes:
                systems.setdefault(aspect, set()).add(record.system)
        grades = [
            GradeRow(record.system, record.query, aspect, grade, record.place)
            for aspect in systems
            for record in self.records.values()
            if record.system in systems[aspect]
            for grade in record.outcomes.get(aspect, [None])
        ]
        file = GradeFile(self.source, self.unit, columns, certain, is_log=True)
        return read_logged(grades, file, self.notes)

    def _note_gaps(self) -> None:
        """Note what only some records or passages have."""
        if self.duplicates:
            again = format_count(self.duplicates, "record equals an earlier one", "records equal earlier ones")
            self._note(f"{again}; each counts once")
        if len(self.no_systems) < len(self.records):
            name = quote_short(self.system, 24)
            self._note_places(self.no_systems, f"without a system, unlike others; it is called {name} for these")
        self._note_places(self.no_references, "with an accepted answer such as 'N/A'; read as none")
        records = self.records.values()
        parts = {
            "an id of the question": {record.query for record in records if not record.query.startswith(TEXT_ID)},
            "an accepted answer": self.accepted,
            "reference passages": {record.query for record in records if record.relevant},
        }
        for what, queries in parts.items():
            missing = [record.place for record in records if record.query not in queries] if queries else []
            self._note_places(missing, f"without {what}, unlike others")
        for number, what in enumerate(("text", "id", "score")):
            if len({row.passage[number] is None for row in self.shown}) == 2:
                self._note(f"some passages have no {what}, others have one")


def is_missing_answer(text: str, accepted: Sequence[str]) -> bool:
    """Return whether a text stands for a missing value, and isn't accepted."""
    return text in NO_ANSWER_TEXTS and text.casefold() not in {each.strip(" .").casefold() for each in accepted}


def is_error_message(text: str, accepted: Sequence[str]) -> bool:
    """Return whether a text is the message of a program, and has no accepted answer in it."""
    words = (rf"(?<!\w){re.escape(each.strip())}(?!\w)" for each in accepted)
    return ERROR_TEXT.match(text) is not None and not any(re.search(each, text) for each in words)


def _distinct(passages: Iterable[LoggedPassage]) -> DistinctPassages:
    named: dict[tuple[str, str | None], LoggedPassage] = {}
    names: set[str] = set()
    others: list[tuple[str | None, LoggedPassage]] = []
    for passage in passages:
        text, name = passage.text, passage.id
        if name is None and text is not None:
            name = text_id(text)
        if name is None or (name, text) in named or (text is None and name in names):
            others.append((name, passage))
            continue
        names.add(name)
        named[name, text] = passage
    return DistinctPassages([name for name, _ in named], list(named.values()), others)


def _few(texts: Sequence[str]) -> str:
    return format_list([quote_short(text, 24) for text in texts], 3)


def _are_apart(groups: Iterable[set[str]]) -> bool:
    groups = list(groups)
    return sum(map(len, groups)) == len(set().union(*groups))


def _is_same(wanted: str, text: str) -> bool:
    """Return whether two texts are the same, or one contains the other."""
    if not wanted or not text:
        return False
    return wanted == text or (min(len(wanted), len(text)) >= MIN_CONTAINED and (wanted in text or text in wanted))
