"""Build the tables of a RAG log. Every format of logs turns its rows into records, and all records come here.

A record says what one system showed and answered for one question. Nothing of it is dropped without a note: an answer
that is missing has a status, a context without passages is an empty context, and passage ids that mean different texts
in different queries are made unique.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from ragworth.collection import Collection, plain_text, text_id
from ragworth.errors import FormatError, format_count, format_list, quote_short
from ragworth.formats.contract import LoadedCollection
from ragworth.formats.fields import as_grade, plain_name
from ragworth.formats.grade_words import Grade
from ragworth.formats.log_grades import LogGrades
from ragworth.formats.log_record import LoggedPassage, LogRecord, format_places
from ragworth.formats.missing_answers import ERROR, NO_REFERENCE, is_error_message, is_missing_answer
from ragworth.formats.reference_passages import find_references
from ragworth.formats.values import WrongLineError, as_text
from ragworth.tables import OK, Answers, Contexts, Judgments
from ragworth.tables.definitions import TRUNCATED
from ragworth.tables.ranking import rising_notes

NO_ANSWER = "no-answer"
"""Status of an answer that the log does not have."""

RECORD_COLUMNS = frozenset(("run", "run_id", "runid"))
"""Names of systems that may also be the names of single records."""

MANY_SYSTEMS = 4
"""Systems from which on one in each record is surely none."""

MIN_RISING_SHARE = 0.1
"""Share of the contexts whose scores contradict the order of their passages, from which on that is noted."""

TWICE = "occurs twice"

TRACE_SOURCE = "trace:"
"""Before the id of a trace, the source of an answer from it."""


class _ShownContext(NamedTuple):
    start: int
    end: int


def _check_values(record: LogRecord) -> None:
    """Check what a reader took as it is: texts must be ones that can be encoded, and grades numbers or words."""
    texts = {"question": record.question, "system": record.system, "answer": record.answer, "trace": record.trace}
    for name, text in (*texts.items(), *(("accepted answer", each) for each in record.accepted)):
        if text is not None:
            as_text(text, name)
    for aspect, value in record.outcomes.items():
        for grade in value if isinstance(value, list) else [value]:
            as_grade(grade, as_text(aspect, "name of a grade"))


class LogBuilder:
    """Collects records, and makes tables of them.

    ``unit`` says what places count: lines, rows or records. With ``strict``, a passage id may occur only once in a
    context. ``grades`` are the aspects that must be grades, because the user said so.
    """

    def __init__(
        self, source: str, system: str, *, unit: str = "line", strict: bool = False, grades: Container[str] = ()
    ) -> None:
        self.source, self.system, self.unit, self.strict = source, system, unit, strict
        self.grades = grades
        self.columns: Mapping[str, str] = {}
        """What the file calls the aspects."""
        self.system_column: str | None = None
        """A column that isn't read as the system, and may name it."""
        self.queries: dict[str, str] = {}
        self.accepted: dict[str, Sequence[str]] = {}
        self.texts: dict[str, str] = {}
        self.rows: list[tuple[str, str, int, str, float | None]] = []
        self.other_texts: dict[int, str] = {}
        """By row: a text that differs from the first one of the same passage id."""
        self.hops: dict[int, tuple[int, str | None]] = {}
        """By row: in which hop a passage was found, and by which search."""
        self.found_again: list[tuple[str | None, int, str | None]] = []
        """Passages of the current record that a later search found once more: id, hop and search. No id: the search
        found nothing."""
        self.other_hops: list[tuple[str, str, str | None, int, str | None]] = []
        """Such passages of all records: system, query, passage, hop and search."""
        self.shown: dict[tuple[str, str], _ShownContext] = {}
        self.unrecorded: dict[tuple[str, str], int] = {}
        """Contexts that the log does not say anything about, with their places."""
        self.answers: list[tuple[str, str, int, str | None, str, int, str]] = []
        self.seen: set[tuple[str, str, int]] = set()
        self.judged: dict[tuple[int, str], float] = {}
        """By row and query: relevance of a passage shown."""
        self.relevant: dict[str, list[LoggedPassage]] = {}
        self.outcomes: dict[tuple[str, str, str], list[tuple[Grade, int]]] = {}
        self.no_answers: dict[str, list[int]] = {}
        """Places of texts that are no answers, by what they say."""
        self.no_references: list[int] = []
        self.accepted_places: dict[str, int] = {}
        self.repeated_passages = 0
        self.different_repeats = 0

    def add(self, record: LogRecord) -> None:
        """Add a record; one that can't be used raises a :class:`WrongLineError` and changes nothing."""
        if record.query is None and not record.question:
            raise WrongLineError("the record has neither a question nor the id of one")
        _check_values(record)
        record = self._without_blanks(record)
        system = (record.system if self.strict else (record.system or "").strip()) or self.system
        query = record.query or text_id(plain_text(record.question or ""))
        if (system, query, record.repeat) in self.seen:
            name = quote_short(record.question or query, 40) if record.query is None else quote_short(query, 24)
            raise WrongLineError(
                f"query {name} {TWICE} for system {quote_short(system, 24)}"
                + ("" if self.strict else "; if these are answers of several systems, map the column that names them")
            )
        self._check_texts(query, record)
        passages = self._distinct(record, query)
        self.seen.add((system, query, record.repeat))
        if record.question is not None:
            self.queries.setdefault(query, record.question)
        if record.accepted:
            self.accepted.setdefault(query, record.accepted)
            self.accepted_places.setdefault(query, record.place)
        self._show((system, query), passages, record.place)
        if record.relevant:
            self.relevant.setdefault(query, []).extend(record.relevant)
        source = f"{TRACE_SOURCE}{record.trace}" if record.trace else self.source or "given"
        answer, status = self._read_answer(record)
        self.answers.append((system, query, record.repeat, answer, status, record.place, source))
        for aspect, value in record.outcomes.items():
            grades = value if isinstance(value, list) else [value]
            self.outcomes.setdefault((system, query, aspect), []).extend((grade, record.place) for grade in grades)

    def _places(self, places: Iterable[int]) -> str:
        return format_places(places, self.unit)

    def _without_blanks(self, record: LogRecord) -> LogRecord:
        """The record without accepted answers that say that there is none, such as "N/A"."""
        known = [text for text in record.accepted if text.strip() not in NO_REFERENCE]
        if len(known) == len(record.accepted):
            return record
        self.no_references.append(record.place)
        return replace(record, accepted=known)

    def _check_texts(self, query: str, record: LogRecord) -> None:
        question = self.queries.get(query)
        if record.question is not None and question is not None and plain_text(question) != plain_text(record.question):
            raise WrongLineError(f"the query {quote_short(query, 24)} has a different text on an earlier {self.unit}")
        before = self.accepted.get(query, record.accepted)
        if record.accepted and sorted(map(plain_text, before)) != sorted(map(plain_text, record.accepted)):
            name = quote_short(record.question or question or query, 60)
            here, there = (
                format_list([quote_short(text, 24) for text in each], 3) for each in (record.accepted, before)
            )
            raise WrongLineError(
                f"the accepted answer to {name} is {here}, but {there} on {self.unit} {self.accepted_places[query]}"
            )

    def _read_answer(self, record: LogRecord) -> tuple[str | None, str]:
        """The answer and its status; the text of a missing value or of an error is no answer."""
        text = (record.answer or "").strip()
        if is_missing_answer(text, record.accepted):
            self.no_answers.setdefault(f"with the answer {text!r}", []).append(record.place)
            return None, record.status if record.status != TRUNCATED else ""
        if is_error_message(text, record.question or "", record.accepted):
            self.no_answers.setdefault("with an error message for an answer", []).append(record.place)
            return None, ERROR
        return record.answer, record.status

    def _distinct(self, record: LogRecord, query: str) -> list[LoggedPassage] | None:
        """The passages with ids, each once."""
        if record.passages is None:
            return None
        named: dict[tuple[str, str | None], LoggedPassage] = {}
        ids: set[str] = set()
        self.found_again = []
        for rank, passage in enumerate(record.passages, 1):
            if passage.is_empty_search:
                self._find_again(None, passage)
                continue
            if passage.id is None and passage.text is None:
                raise WrongLineError(f"passage {rank} has neither doc_id nor text")
            name = passage.id if passage.id is not None else text_id(passage.text or "")
            if name in ids and (self.strict or passage.text is None):
                if self.strict and passage.hop is None:
                    raise WrongLineError(f"a passage occurs twice for query {quote_short(query, 24)}")
                self._find_again(name, passage)
                continue
            if (name, passage.text) in named:
                self._find_again(name, passage)
            ids.add(name)
            named.setdefault((name, passage.text), passage._replace(id=name))
        self.repeated_passages += sum(not each.is_empty_search for each in record.passages) - len(named)
        return list(named.values())

    def _find_again(self, name: str | None, passage: LoggedPassage) -> None:
        """Note that another search found a passage, too, or nothing: it is shown once, but that search was made."""
        if passage.hop is not None:
            self.found_again.append((name, passage.hop, passage.search))

    def _show(self, key: tuple[str, str], passages: list[LoggedPassage] | None, place: int) -> None:
        if passages is None:
            if key not in self.shown:
                self.unrecorded.setdefault(key, place)
            return
        if key in self.shown:
            start, end = self.shown[key]
            self.different_repeats += [row[3] for row in self.rows[start:end]] != [each.id for each in passages]
            return
        self.unrecorded.pop(key, None)
        start = len(self.rows)
        for rank, passage in enumerate(passages, 1):
            assert passage.id is not None
            if passage.text is not None and self.texts.setdefault(passage.id, passage.text) != passage.text:
                self.other_texts[len(self.rows)] = passage.text
            if passage.relevance is not None:
                self.judged[len(self.rows), key[1]] = passage.relevance
            if passage.hop is not None:
                self.hops[len(self.rows)] = passage.hop, passage.search
            self.rows.append((*key, rank, passage.id, passage.score))
        self.other_hops += [(*key, *again) for again in self.found_again]
        self.shown[key] = _ShownContext(start, len(self.rows))

    def build(self, notes: tuple[str, ...] = ()) -> LoadedCollection:
        """Make the tables."""
        if not self.seen:
            raise FormatError("no rows: the file is empty", file=self.source)
        made = [*notes]
        self._merge_systems(made)
        self._merge_questions(made)
        self._note_like_names(made)
        self._note_repeated_texts(made)
        self._make_ids_unique(made)
        relevance = self._relevance(made)
        contexts = self._contexts(made)
        answers = self._answer_table(made)
        answered = dict.fromkeys((row[0], row[1]) for row in self.answers)
        grades = LogGrades(self.source, self.unit, self.columns, self.grades)
        outcomes = grades.table(self.outcomes, answered, made)
        if self.no_references:
            which = self._places(self.no_references)
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

    def _merge_systems(self, notes: list[str]) -> None:
        """If every record has a ``run_id`` of its own, that names the record and not a system.

        But if questions occur several times, nothing says which records are of the same system.
        """
        column = self.columns.get("system", "")
        systems = {system for system, _, _ in self.seen}
        alone = {(query, repeat) for _, query, repeat in self.seen}
        if plain_name(column) not in RECORD_COLUMNS or "system" in self.grades or len(systems) < MANY_SYSTEMS:
            return
        if len(systems) < len(self.seen):
            return
        if len(alone) < len(self.seen):
            notes.append(
                f"{self.source}: {column!r} differs in every record, and each is read as a system of its own; map the "
                f"column that names the systems: --map system={self.system_column or 'COLUMN'}"
            )
            return
        self._rename(dict.fromkeys(systems, self.system), {})
        notes.append(
            f"{self.source}: {column!r} differs in every record, so it isn't read as the system; if it is: "
            f"--map system={column}"
        )

    def _merge_questions(self, notes: list[str]) -> None:
        """If systems have different ids for the same questions, as where ids number records, go by the texts."""
        of_system: dict[str, set[str]] = {}
        for system, query, _ in self.seen:
            of_system.setdefault(system, set()).add(query)
        every = set().union(*of_system.values())
        apart = len(of_system) > 1 and sum(map(len, of_system.values())) == len(every)
        if self.strict or not apart:
            return
        asked: dict[str, list[str]] = {}
        for query, text in self.queries.items():
            asked.setdefault(plain_text(text), []).append(query)
        first = {query: queries[0] for queries in asked.values() for query in queries}
        if len(asked) == len(self.queries) or not every <= set(first):
            return
        merged = {(system, first[query], repeat) for system, query, repeat in self.seen}
        if len(merged) < len(self.seen) or not self._same_answers(asked.values()):
            return
        self._rename({}, first)
        notes.append(
            f"{self.source}: the systems have no ids of questions in common, but the same texts; questions go by these"
        )

    def _rename(self, systems: Mapping[str, str], queries: Mapping[str, str]) -> None:
        """Give systems and queries other names. Of queries that get the same one, the first text stays."""

        def named(system: str, query: str) -> tuple[str, str]:
            return systems.get(system, system), queries.get(query, query)

        self.seen = {(*named(system, query), repeat) for system, query, repeat in self.seen}
        self.rows = [(*named(*row[:2]), *row[2:]) for row in self.rows]
        self.other_hops = [(*named(*each[:2]), *each[2:]) for each in self.other_hops]
        self.shown = {named(*key): shown for key, shown in self.shown.items()}
        self.unrecorded = {named(*key): place for key, place in self.unrecorded.items()}
        self.answers = [(*named(*each[:2]), *each[2:]) for each in self.answers]
        self.outcomes = {(*named(*key[:2]), key[2]): values for key, values in self.outcomes.items()}
        self.judged = {(row, queries.get(query, query)): value for (row, query), value in self.judged.items()}
        texts, self.queries = self.queries, {}
        for query, text in texts.items():
            self.queries.setdefault(queries.get(query, query), text)
        accepted, self.accepted = self.accepted, {}
        for query, answers in accepted.items():
            self.accepted.setdefault(queries.get(query, query), answers)
        relevant, self.relevant = self.relevant, {}
        for query, passages in relevant.items():
            self.relevant.setdefault(queries.get(query, query), []).extend(passages)

    def _same_answers(self, groups: Iterable[Sequence[str]]) -> bool:
        """Whether questions of the same text have the same accepted answers, where they have any."""
        known = (
            [frozenset(map(plain_text, self.accepted[each])) for each in group if each in self.accepted]
            for group in groups
        )
        return all(len(set(each)) <= 1 for each in known)

    def _note_like_names(self, notes: list[str]) -> None:
        """Note names of systems that differ only in case: they are different systems."""
        named: dict[str, set[str]] = {}
        for system, _, _ in self.seen:
            named.setdefault(system.casefold(), set()).add(system)
        notes += [
            f"{self.source}: {format_list([quote_short(name, 24) for name in sorted(names)], 4)} are read as "
            "different systems, though only the case of their names differs"
            for names in named.values()
            if len(names) > 1
        ]

    def _note_repeated_texts(self, notes: list[str]) -> None:
        """Note that most questions have several ids in a system: they may be answers of several systems, or repeats."""
        pairs = {(system, query) for system, query, _ in self.seen}
        asked = Counter((system, self.queries.get(query, query).strip()) for system, query in pairs)
        again = sum(number > 1 for number in asked.values())
        if self.strict or 2 * again <= len(asked):
            return
        column = self.system_column or "COLUMN"
        notes.append(
            f"{self.source}: {format_count(again, 'question occurs', 'questions occur')} several times under different "
            f"ids, each read as a question of its own; if these are answers of several systems: --map system={column}; "
            "if they are repeats: --map query=question and --map repeat=COLUMN"
        )

    def _make_ids_unique(self, notes: list[str]) -> None:
        """Give passages whose id has several texts an id of their own in each query."""
        clashing = {self.rows[row][3] for row in self.other_texts}
        if not clashing:
            return
        first = {name: self.texts.pop(name) for name in clashing}
        names: dict[tuple[str, str], dict[str, str]] = {}
        example = ""
        for number, (system, query, rank, name, score) in enumerate(self.rows):
            if name not in clashing:
                continue
            text = self.other_texts.get(number, first[name])
            of_query = names.setdefault((query, name), {})
            if text not in of_query:
                unique = f"{query}/{name}" + (f"#{len(of_query) + 1}" if of_query else "")
                while unique in self.texts:
                    unique += "~"
                of_query[text] = unique
                self.texts[unique] = text
            self.rows[number] = (system, query, rank, of_query[text], score)
            example = example or f"{quote_short(name, 24)} is now {quote_short(of_query[text], 48)}"
        passages = format_count(len(clashing), "passage id has", "passage ids have")
        notes.append(
            f"{self.source}: {passages} different texts in different contexts, so they got new ids ({example})"
        )

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
            which = self._places(self.unrecorded.values())
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
            f"{self.source}: {self._places(places)} {said}; read as no answer: missing, not wrong"
            for said, places in self.no_answers.items()
        ]
        if not any(row[3] is not None or row[4] for row in rows):
            return None
        missing = [row for row in rows if row[3] is None]
        if missing:
            which = self._places(row[5] for row in missing)
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
