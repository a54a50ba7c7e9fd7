"""Which records of a RAG log are of the same system, question or passage, where ids don't tell or clash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ragworth.collection import plain_text
from ragworth.errors import FormatError, Hint, format_count, quote_short
from ragworth.formats.log_collector import LogCollector


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


def _are_apart(groups: Collection[Collection[str]]) -> bool:
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
