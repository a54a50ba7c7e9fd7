"""Which records of a RAG log are of the same system, question or passage, where ids don't tell or clash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ragworth.collection import plain_text
from ragworth.errors import format_count, format_list, quote_short
from ragworth.formats.fields import plain_name
from ragworth.formats.log_collector import LogCollector

RECORD_COLUMNS = frozenset(("run", "run_id", "runid"))
"""Names of systems that may also be the names of single records."""

MANY_SYSTEMS = 4
"""Systems from which on one in each record is surely none."""


def merge_systems(log: LogCollector, notes: list[str]) -> None:
    """If every record has a ``run_id`` of its own, that names the record and not a system.

    But if questions occur several times, nothing says which records are of the same system.
    """
    column = log.columns.get("system", "")
    systems = {system for system, _, _ in log.seen}
    alone = {(query, repeat) for _, query, repeat in log.seen}
    if plain_name(column) not in RECORD_COLUMNS or "system" in log.grades or len(systems) < MANY_SYSTEMS:
        return
    if len(systems) < len(log.seen):
        return
    if len(alone) < len(log.seen):
        notes.append(
            f"{log.source}: {column!r} differs in every record, and each is read as a system of its own; map the "
            f"column that names the systems: --map system={log.system_column or 'COLUMN'}"
        )
        return
    log.rename(dict.fromkeys(systems, log.system), {})
    notes.append(
        f"{log.source}: {column!r} differs in every record, so it isn't read as the system; if it is: "
        f"--map system={column}"
    )


def merge_questions(log: LogCollector, notes: list[str]) -> None:
    """If systems have different ids for the same questions, as where ids number records, go by the texts."""
    of_system: dict[str, set[str]] = {}
    for system, query, _ in log.seen:
        of_system.setdefault(system, set()).add(query)
    every = set().union(*of_system.values())
    apart = len(of_system) > 1 and sum(map(len, of_system.values())) == len(every)
    if log.strict or not apart:
        return
    asked: dict[str, list[str]] = {}
    for query, text in log.queries.items():
        asked.setdefault(plain_text(text), []).append(query)
    first = {query: queries[0] for queries in asked.values() for query in queries}
    if len(asked) == len(log.queries) or not every <= set(first):
        return
    merged = {(system, first[query], repeat) for system, query, repeat in log.seen}
    if len(merged) < len(log.seen) or not _same_answers(log, asked.values()):
        return
    log.rename({}, first)
    notes.append(
        f"{log.source}: the systems have no ids of questions in common, but the same texts; questions go by these"
    )


def _same_answers(log: LogCollector, groups: Iterable[Sequence[str]]) -> bool:
    """Whether questions of the same text have the same accepted answers, where they have any."""
    known = (
        [frozenset(map(plain_text, log.accepted[each])) for each in group if each in log.accepted] for group in groups
    )
    return all(len(set(each)) <= 1 for each in known)


def note_like_names(log: LogCollector, notes: list[str]) -> None:
    """Note names of systems that differ only in case: they are different systems."""
    named: dict[str, set[str]] = {}
    for system, _, _ in log.seen:
        named.setdefault(system.casefold(), set()).add(system)
    notes += [
        f"{log.source}: {format_list([quote_short(name, 24) for name in sorted(names)], 4)} are read as "
        "different systems, though only the case of their names differs"
        for names in named.values()
        if len(names) > 1
    ]


def asks_again(log: LogCollector) -> int:
    """How many questions have several ids in a system, if most have; otherwise 0."""
    pairs = {(system, query) for system, query, _ in log.seen}
    asked = Counter((system, log.queries.get(query, query).strip()) for system, query in pairs)
    again = sum(number > 1 for number in asked.values())
    return 0 if log.strict or 2 * again <= len(asked) else again


def most_recur(log: LogCollector) -> bool:
    """Whether at least half of the questions have several answers, of several systems or repeats."""
    asked = Counter(log.queries.get(query, query).strip() for _, query, _ in log.seen)
    return 2 * sum(number > 1 for number in asked.values()) >= len(asked)


def note_repeated_texts(log: LogCollector, notes: list[str]) -> None:
    """Note that most questions have several ids in a system: they may be answers of several systems, or repeats."""
    again = asks_again(log)
    if not again:
        return
    column = log.system_column or "COLUMN"
    notes.append(
        f"{log.source}: {format_count(again, 'question occurs', 'questions occur')} several times under different "
        f"ids, each read as a question of its own; if these are answers of several systems: --map system={column}; "
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
