"""Build the tables of a RAG log. Every format of logs turns its rows into records, and all records come here.

A record says what one system showed and answered for one question. Nothing of it is dropped without a note: an answer
that is missing has a status, a context without passages is an empty context, and passage ids that mean different texts
in different queries are made unique.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import polars as pl

from ragworth.core.errors import FormatError, format_count, quote_short
from ragworth.data import OK, Answers, Contexts, Judgments
from ragworth.data.collection import Collection, plain_text, text_id
from ragworth.data.ranking import rising_notes
from ragworth.formats.contract import LoadedCollection
from ragworth.formats.logs.collector import LogCollector
from ragworth.formats.logs.fields import mapping_hint
from ragworth.formats.outcomes import GradeFile, read_logged

NO_ANSWER = "no-answer"
"""Status of an answer that the log does not have."""

MIN_RISING_SHARE = 0.1
"""Share of the contexts whose scores contradict the order of their passages, from which on that is noted."""

MIN_CONTAINED = 30
"""Characters of the shorter of two texts at least, if one is said to be part of the other."""

CONTEXT_SCHEMA = {"system": pl.String, "query": pl.String, "rank": pl.UInt32, "passage": pl.String, "score": pl.Float64}


class LogBuilder(LogCollector):
    """Collects records, and makes tables of them."""

    def build(self, notes: tuple[str, ...] = ()) -> LoadedCollection:
        """Make the tables."""
        if not self.seen:
            raise FormatError("no rows: the file is empty", file=self.source)
        if not self.strict:
            check_questions(self)
        every = [*notes]
        self._note_repeated_texts(every)
        self._make_ids_unique(every)
        relevance = self._relevance(every)
        contexts = self._contexts(every)
        answers = self._answer_table(every)
        file = GradeFile(self.source, self.unit, self.columns, self.grades, is_log=True)
        outcomes = read_logged(self.outcomes, file, every)
        if self.duplicates:
            again = format_count(self.duplicates, "record equals an earlier one", "records equal earlier ones")
            self._note(every, f"{again}; each counts once")
        if self.no_references:
            which = self.places(self.no_references)
            self._note(every, f"{which} with an accepted answer such as 'N/A'; read as none")
        pairs = [(query, text) for query, (texts, _) in self.accepted.items() for text in texts]
        collection = Collection.of(
            queries={"query": list(self.queries), "text": list(self.queries.values())} if self.queries else None,
            passages={"passage": list(self.texts), "text": list(self.texts.values())} if self.texts else None,
            answers={"query": [p[0] for p in pairs], "text": [p[1] for p in pairs]} if pairs else None,
            relevance=relevance,
            source=self.source,
            notes=() if contexts or answers else tuple(every),
        )
        noted = contexts if contexts is not None else answers
        if noted is not None:
            noted.notes = tuple(every)
        return LoadedCollection(collection, contexts, answers, outcomes)

    def _note(self, notes: list[str], text: str) -> None:
        notes.append(f"{self.source}: {text}" if self.source else text)  # data in memory has no name

    def _note_repeated_texts(self, notes: list[str]) -> None:
        """Note that most questions have several ids in a system: they may be answers of several systems, or repeats."""
        pairs = {(system, query) for system, query, _ in self.seen}
        asked = Counter((system, self.queries.get(query, query).strip()) for system, query in pairs)
        again = sum(number > 1 for number in asked.values())
        if not self.strict and 2 * again > len(asked):
            which = format_count(again, "question occurs", "questions occur")
            self._note(
                notes,
                f"{which} several times under different ids, each read as a question of its own; if these are answers "
                "of several systems: --map system=COLUMN; if they are repeats: --map query=question and --map "
                "repeat=COLUMN",
            )

    def _make_ids_unique(self, notes: list[str]) -> None:
        """Give passages whose id has several texts an id of their own in each query."""
        clashing = {self.rows[row][3] for row in self.other_texts}
        first = {name: self.texts.pop(name) for name in clashing}
        names: dict[tuple[str, str], dict[str, str]] = {}
        example = ""
        for number, (system, query, rank, name, score) in enumerate(self.rows if clashing else ()):
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
        if clashing:
            which = format_count(len(clashing), "passage id has", "passage ids have")
            self._note(notes, f"{which} different texts in different contexts, so they got new ids ({example})")

    def _relevance(self, notes: list[str]) -> Judgments | None:
        """Labels of the passages shown, and passages known to be relevant."""
        values: dict[tuple[str, str], float] = {}
        for (row, query), value in self.judged.items():
            key = query, self.rows[row][3]
            if values.setdefault(key, value) != value:
                names = f"passage {quote_short(key[1], 24)} of query {quote_short(query, 24)}"
                raise FormatError(f"{names} has two relevance labels", file=self.source)
        values |= self._match_relevant(values, notes)
        if not values:
            return None
        columns = {
            "query": [query for query, _ in values],
            "passage": [passage for _, passage in values],
            "value": list(values.values()),
            "source": [self.source or "given"] * len(values),
        }
        return Judgments(columns, source=self.source)

    def _match_relevant(self, known: Mapping[tuple[str, str], float], notes: list[str]) -> dict[tuple[str, str], float]:
        """Find the passages known to be relevant among those shown, by id or text; the others become passages too."""
        if not self.relevant:
            return {}
        shown: dict[str, dict[str, str]] = {}
        for _, query, _, name, _ in self.rows:
            if query in self.relevant:
                shown.setdefault(query, {})[name] = plain_text(self.texts.get(name, ""))
        relevant: list[tuple[str, str]] = []
        unseen: dict[str, str] = {}
        references = [(query, each) for query, passages in self.relevant.items() for each in dict.fromkeys(passages)]
        hits = 0
        for query, passage in references:
            wanted = plain_text(passage.text or "")
            texts = shown.get(query, {}).items()
            found = [name for name, text in texts if passage.id == name or _is_same(wanted, text)]
            hits += bool(found)
            if not found:
                found = [passage.id if passage.id is not None else text_id(passage.text or "")]
                unseen |= {found[0]: passage.text} if passage.text is not None else {}
            relevant += [(query, name) for name in found]
        if not hits and self.rows:
            self._note(
                notes,
                f"none of the {len(references):,} reference passages is among those retrieved, by id or text; "
                "they were not used as relevance labels, because every system would score 0",
            )
            return {}
        if self.rows and hits < len(references):
            of_all = f"{hits:,} of {len(references):,}"
            self._note(notes, f"{of_all} reference passages are among those retrieved, by id or text")
        self.texts = unseen | self.texts
        return {key: 1.0 for key in relevant if key not in known}

    def _contexts(self, notes: list[str]) -> Contexts | None:
        if not self.shown:
            return None
        if self.unrecorded:
            which = self.places(self.unrecorded.values())
            self._note(notes, f"{which} without passages; read as nothing retrieved")
        if self.repeated_passages:
            which = format_count(self.repeated_passages, "passage")
            self._note(notes, f"{which} shown twice in the same context; the first position counts")
        if self.different_repeats:
            which = format_count(self.different_repeats, "repeat")
            self._note(notes, f"{which} of a question with other passages; those of the first are kept")
        frame = pl.DataFrame(self.rows, schema=CONTEXT_SCHEMA, orient="row")
        if self.hops:
            found = [self.hops.get(row, (None, None)) for row in range(frame.height)]
            frame = frame.hstack(pl.DataFrame(found, schema={"hop": pl.Int64, "search": pl.String}, orient="row"))
        empty = [key for key, names in self.shown.items() if not names] + list(self.unrecorded)
        contexts = Contexts(frame, source=self.source, empty=empty)
        assert contexts.starts is not None
        scores = contexts.frame["score"]
        rising = rising_notes(scores, contexts.starts, "the order of the file counts", min_share=MIN_RISING_SHARE)
        for note in rising:
            self._note(notes, note)
        if contexts.hops is not None and self.other_hops:
            again = pl.DataFrame(self.other_hops, schema=contexts.hops.schema, orient="row")
            contexts.hops = pl.concat([contexts.hops, again])
        return contexts

    def _answer_table(self, notes: list[str]) -> Answers | None:
        rows = self.answers
        for said, places in self.no_answers.items():
            self._note(notes, f"{self.places(places)} {said}; read as no answer: missing, not wrong")
        if not any(row[3] is not None or row[4] for row in rows):
            return None
        missing = [row[5] for row in rows if row[3] is None]
        if missing:
            self._note(notes, f"{self.places(missing)} of {len(rows):,} without an answer; missing, not wrong")
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
    if len(ids) > 1 and _are_apart(ids.values()) and not _are_apart(texts.values()):
        raise FormatError(
            "the systems have no ids of questions in common, but the same texts",
            file=log.source,
            remedy=mapping_hint(({"query": "question"}, " if questions go by their texts")),
        )


def _are_apart(groups: Iterable[set[str]]) -> bool:
    groups = list(groups)
    return sum(map(len, groups)) == len(set().union(*groups))


def _is_same(wanted: str, text: str) -> bool:
    """Whether two texts are the same, or one contains the other."""
    if not wanted or not text:
        return False
    return wanted == text or (min(len(wanted), len(text)) >= MIN_CONTAINED and (wanted in text or text in wanted))
