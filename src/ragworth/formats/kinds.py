"""The kinds of data that a file of ours may hold: by its columns or lines, and where these leave it open, by its name.

A rule names columns: one of each group must be there, and none of those in ``unless``. The first rule that fits counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ragworth.core.errors import format_names
from ragworth.data import Judgments
from ragworth.data.coercion import ID_ALIASES
from ragworth.formats.columns import NUMBER, is_row
from ragworth.formats.contract import Contents, Head, Kind
from ragworth.formats.files import split_lines, suffix_of
from ragworth.formats.logs.names import FIELDS

KIND_NAMES: dict[Kind, str] = {
    "run": "a run",
    "log": "a log",
    "references": "questions with accepted answers",
    "collection": "a collection",
    "qrels": "relevance labels",
    "ratings": "ratings of sub-questions",
    "judgments": "judgments",
    "queries": "texts of queries",
    "passages": "texts of passages",
    "answers": "accepted answers",
    "subquestions": "sub-questions",
    "written": "answers of systems",
    "outcomes": "outcomes of answers",
    "texts": "ids and texts",
    "lengths": "lengths of passages",
}

SYSTEM, QUERY, PASSAGE, PART = (ID_ALIASES[name] for name in ("system", "query", "passage", "subquestion"))
QUERY_KEYS = ("query_id", "qid", "_id", "id")
"""Names of ids in JSON lines of queries."""
LIST_KEYS = {"answers": ("answers", "answer"), "subquestions": ("subquestions", "sub_questions", "questions")}
"""Names of lists of texts in JSON lines."""
RELEVANCE = Judgments.wide["relevance"]
OTHER_ASPECTS = tuple(name for names in Judgments.wide.values() for name in names if name not in RELEVANCE)
LOGGED = (*FIELDS["answer"], *FIELDS["accepted"], *FIELDS["passages"])
"""Names of columns that logs have."""
NOT_IN_RUNS = {"text", "contents", *LOGGED, *FIELDS["question"]} - set(QUERY)
"""Names of columns that would be lost in a run."""


class Rule(NamedTuple):
    """The columns by which rows are of a kind."""

    kind: Kind
    needs: tuple[tuple[str, ...], ...]
    unless: tuple[str, ...] = ()


ROW_RULES = (
    Rule("ratings", (QUERY, PASSAGE, PART, ("value", "rating"))),
    Rule("judgments", (QUERY, PASSAGE, ("aspect",), ("value",))),
    Rule("qrels", (QUERY, PASSAGE, ("corpus-id", "value"))),
    Rule("judgments", (QUERY, PASSAGE, OTHER_ASPECTS)),
    Rule("qrels", (QUERY, PASSAGE, RELEVANCE)),
    Rule("run", (QUERY, PASSAGE, ("score", "rank"))),
    Rule("written", (SYSTEM, QUERY, ("text",))),
    Rule("subquestions", (QUERY, PART, ("text",))),
    Rule("lengths", (PASSAGE, ("tokens",)), unless=("text",)),
    Rule("passages", (("text",), PASSAGE), unless=("aspect", "value")),
    Rule("passages", (("text",), QUERY, ("title", "contents"))),
    Rule("queries", (("text",), QUERY), unless=("aspect", "value")),
)
"""Kinds of tables, and of rows in JSON."""

LINE_RULES = (
    Rule("log", (("retrieved_context",),)),
    Rule("subquestions", (QUERY_KEYS, LIST_KEYS["subquestions"]), unless=(*PASSAGE, *LOGGED)),
    Rule(
        "answers",
        (QUERY_KEYS, LIST_KEYS["answers"]),
        unless=(*SYSTEM, *PASSAGE, "text", *FIELDS["question"]),
    ),
    *ROW_RULES,
    Rule("passages", (("contents",), (*PASSAGE, *QUERY, *QUERY_KEYS))),
    Rule("passages", (("text",), QUERY_KEYS, ("title",))),
    Rule("queries", (("text",), QUERY_KEYS, LIST_KEYS["answers"])),
    Rule("texts", (("text",), QUERY_KEYS), unless=("aspect", "value")),
)
"""Kinds of rows in JSON lines, which have lists, too."""

NAMED_KINDS: dict[Kind, str] = {
    "ratings": r"ratings?|sub-?_?topics?|diversity|intents?",
    "answers": r"answers?|gold|accepted|references?",
    "qrels": r"q?rels?|relevan[a-z]*|judg[a-z]*|labels?|gold",
    "queries": r"quer(?:y|ies)|questions?|topics?",
    "passages": r"collection|corpus|passages?|doc(?:ument)?s?|chunks?|paragraphs?|articles?",
}
"""Words in the name of a file that say what it has, where its rows may be of two kinds."""
PAIR_WORDS = r"(?:answer|judg|relevan)[a-z]*|q?rels?|gold|accepted|ids?|pairs?|triples?"
"""Words in the names of files that have neither texts of queries nor of passages."""

_HEADERS = (
    "id _id qid pid docid doc_id docno doc document number topic query question title text contents content body "
    "passage answer"
)
USUAL_HEADERS = {*_HEADERS.split(), *(name for names in ID_ALIASES.values() for name in names)}
"""Names of columns in files of texts."""


def row_kinds(head: Head) -> list[Contents]:
    """Return the kinds of data that rows hold, mostly one, by the names of their columns."""
    table = head.kind == "table"
    kind = next((rule.kind for rule in (ROW_RULES if table else LINE_RULES) if _fits(rule, head)), None)
    if kind == "queries" and table:
        return [_queries_or_answers(head)]
    if kind == "queries" and head.has_any(*LIST_KEYS["answers"]):
        return [Contents("queries"), Contents("answers")]
    if kind == "texts":
        return [Contents(next((each for each in ("queries", "passages") if is_named(head, each)), kind))]
    if kind == "run" and (unread := [name for name in head.columns if name in NOT_IN_RUNS]):
        return [Contents(kind, f"{format_names(unread)} not read: a run has the ids of passages")]
    return [Contents(kind)] if kind is not None else []


def _fits(rule: Rule, head: Head) -> bool:
    return all(head.has_any(*names) for names in rule.needs) and not head.has_any(*rule.unless)


def is_named(head: Head, kind: Kind) -> bool:
    """Tell whether the name of a file says that it holds this."""
    return re.search(rf"(?<![a-z])(?:{NAMED_KINDS[kind]})(?![a-z])", Path(head.path).name.lower()) is not None


def _queries_or_answers(head: Head) -> Contents:
    """Texts by the ids of queries: a query may have several accepted answers, but only one text."""
    column = next(name for name in QUERY if name in head.columns)
    if len({row[column] for row in head.rows}) < len(head.rows):
        return Contents("answers")
    if is_named(head, "answers"):
        return Contents("answers", "it has queries and texts; taken as accepted answers, because of its name")
    return Contents("queries")


def pair_kinds(head: Head) -> list[Contents]:
    """Return the kind of a TSV file with an id and a text on each line and no header, if its name says it."""
    name = Path(head.path).name.lower()
    kinds: list[Kind] = [kind for kind in ("queries", "passages") if is_named(head, kind)]
    others = re.search(rf"(?<![a-z])(?:{PAIR_WORDS})(?![a-z])", name)
    if suffix_of(name) != ".tsv" or len(kinds) != 1 or others or not lacks_header(head.columns):
        return []
    return [Contents(kinds[0], f"it has no header; taken as ids and texts of {kinds[0]}, because of its name")]


def lacks_header(first: Sequence[str]) -> bool:
    """Tell whether the first line of a table is an id and a text, and not the names of columns."""
    fields = [field.strip().lower() for field in first]
    return len(fields) == 2 and not (fields[0] in USUAL_HEADERS or set(fields) <= USUAL_HEADERS)


def trec_kinds(head: Head) -> list[Contents]:
    """Return whether lines in TREC's form are a run, labels or ratings; nothing if they are none of these."""
    rows = [line.split() for line in split_lines(head.data) if is_row(line)]
    first = rows[:20]
    fit = [row for row in first if len(row) in (4, 6) and NUMBER.fullmatch(row[3] if len(row) == 4 else row[4])]
    if head.kind != "text" or not fit or len(fit) < 0.8 * (len(first) - 1):
        return []
    if sum(len(row) == 6 for row in rows) > len(rows) / 2:
        return [Contents("run")]
    seconds: dict[tuple[bytes, bytes], set[bytes]] = {}
    for row in rows:
        if len(row) == 4:
            seconds.setdefault((row[0], row[2]), set()).add(row[1])
    different = set[bytes]().union(*seconds.values())
    if any(len(each) > 1 for each in seconds.values()):
        return [Contents("ratings")]
    if different <= {b"0", b"Q0"}:
        return [Contents("qrels")]
    if is_named(head, "ratings"):
        return [Contents("ratings")]
    doubt = "its second column may number sub-questions; taken as relevance labels" if len(different) > 1 else ""
    return [Contents("qrels", doubt)]
