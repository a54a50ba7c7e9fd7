"""Tell the format of a file, and what is in it, from its head; and advise how to read one that no format knows.

Formats of tools have signs of their own. Those of ours (`general` 1) and logs with usual names (`general` 2) only count
where no less general format knows the file, so the order in the catalogue means nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import polars as pl

from ragworth.core.errors import FormatError, Hint, format_list, format_names
from ragworth.data import Judgments
from ragworth.data.coercion import ID_ALIASES
from ragworth.formats import nested_scores, outcomes, texts
from ragworth.formats.catalog import FORMATS
from ragworth.formats.columns import is_row
from ragworth.formats.contract import Format, Head
from ragworth.formats.files import PathOrStr, split_lines, suffix_of
from ragworth.formats.heads import read_head
from ragworth.formats.logs.engine import NAMES
from ragworth.formats.logs.fields import FieldFinder, mapping_hint
from ragworth.formats.logs.names import FIELDS, plain_name
from ragworth.formats.logs.rows import find_rows
from ragworth.formats.values import read_values

TextKind = Literal["queries", "passages", "answers", "subquestions"]
Kind = Literal[
    TextKind, "run", "log", "references", "qrels", "ratings", "judgments", "collection", "written", "outcomes"
]

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


class Detected(NamedTuple):
    """The head of a file, with the rows inside a JSON object, and the file's format; None if no format knows it."""

    head: Head
    format: Format | None


class Contents(NamedTuple):
    """What a file of ours has, and what is doubtful about it."""

    kind: Kind
    doubt: str = ""


def detect(path: PathOrStr) -> Format:
    """Return the format of a file. An unknown one is an error that says how to map its columns."""
    if Path(path).is_dir():
        return FORMATS.get("beir")
    head, found = examine(read_head(path))
    if found is None:
        raise unknown_error(head)
    return found


def examine(head: Head, columns: Mapping[str, str] | None = None) -> Detected:
    """Find the format of a file. If it is one JSON object, its rows may be inside.

    ``columns`` are the user's names of fields. Two formats that know a file are an error.
    """
    found = recognise(head)
    document = head.document
    if head.kind != "json" or not isinstance(document, dict) or head.rows != (document,):
        return Detected(head, found)
    questions = [value for name, value in document.items() if plain_name(name) in FIELDS["question"]]
    if found is not None and not any(isinstance(value, dict | list) for value in questions):
        return Detected(head, found)
    inner = find_rows(document, known=found is not None, columns=columns)
    if inner is None:
        return Detected(head, found)
    head = replace(head, document=inner).of_rows(inner)
    return Detected(head, recognise(head))


def recognise(head: Head) -> Format | None:
    """Return the format that knows a file by its head; None if there is none."""
    known = [each for each in FORMATS if each.recognise is not None and each.recognise(head)]
    least = min((each.general for each in known), default=0)
    names = sorted(each.name for each in known if each.general == least)
    if len(names) > 1:
        prefixed = [f"{name}:{head.path or 'FILE'}" for name in names]
        raise FormatError(
            f"it may be of the format {' or '.join(names)}",
            file=head.path,
            remedy=f"name the format before the path: {' or '.join(prefixed)}",
        )
    return FORMATS.get(names[0]) if names else None


def contents_of(head: Head, found: Format | None) -> list[Contents]:
    """What is in a file that is no log of a tool, mostly one thing; nothing if it has nothing known."""
    if found is not None and found.name == "exam":
        return [Contents("collection")]
    if found is not None and found.name in texts.CONVERSATION_FORMATS:
        return [Contents("queries")]
    if found is not None and found is nested_scores.FORMAT:
        return _nested_contents(head)
    if pairs := _pair_contents(head):
        return pairs
    if head.kind == "text":
        return _trec_contents(head) if found is not None and found.name == "trec" else []
    return [] if head.kind == "json" else _row_contents(head)


def _says(head: Head, kind: Kind) -> bool:
    """Whether the name of a file says that it has this."""
    return re.search(rf"(?<![a-z])(?:{NAMED_KINDS[kind]})(?![a-z])", Path(head.path).name.lower()) is not None


def _nested_contents(head: Head) -> list[Contents]:
    """A run or labels in one JSON document."""
    if (rows := nested_scores.table_rows(head.document)) is not None:
        return _row_contents(head.of_rows(rows))
    labels = nested_scores.label_values(head.document)
    if _says(head, "qrels"):
        return [Contents("qrels")]
    values = format_list([f"{value:g}" for value in labels])
    doubt = f"its only numbers are {values}; taken as relevance labels" if labels else ""
    return [Contents("qrels" if labels else "run", doubt)]


def _pair_contents(head: Head) -> list[Contents]:
    """Texts of queries or passages, by the name of a file with an id and a text on each line and no header."""
    name = Path(head.path).name.lower()
    kinds: list[Kind] = [kind for kind in ("queries", "passages") if _says(head, kind)]
    others = re.search(rf"(?<![a-z])(?:{PAIR_WORDS})(?![a-z])", name)
    if suffix_of(name) != ".tsv" or len(kinds) != 1 or others or not texts.lacks_header(head):
        return []
    return [Contents(kinds[0], f"it has no header; taken as ids and texts of {kinds[0]}, because of its name")]


def _trec_contents(head: Head) -> list[Contents]:
    """A run, qrels or ratings."""
    rows = [line.split() for line in split_lines(head.data) if is_row(line)]
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
    if _says(head, "ratings"):
        return [Contents("ratings")]
    doubt = "its second column may number sub-questions; taken as relevance labels" if len(different) > 1 else ""
    return [Contents("qrels", doubt)]


def _row_contents(head: Head) -> list[Contents]:
    """What rows have, by the names of their columns."""
    lines = head.kind != "table"
    system, query, passage, part = (
        head.has_any(*ID_ALIASES[name]) for name in ("system", "query", "passage", "subquestion")
    )
    lists = {kind: lines and head.has_any(*names) and not passage for kind, names in texts.LIST_KEYS.items()}
    text = head.has("text") or (lines and head.has("contents"))
    identified = query or (lines and head.has_any("_id", "id"))
    wide = {aspect for aspect, names in Judgments.wide.items() if head.has_any(*names)}
    if lines and head.has("retrieved_context"):
        return [Contents("log")]
    if lists["subquestions"]:
        return [Contents("subquestions")]
    if lists["answers"] and not system and identified and not text:
        return [Contents("answers")]
    if query and passage and part and head.has_any("value", "rating"):
        return [Contents("ratings")]
    if query and passage and head.has("aspect", "value"):
        return [Contents("judgments")]
    if query and passage and (head.has_any("corpus-id", "value") or wide):
        labels = head.has_any("corpus-id", "value") or wide == {"relevance"}
        return [Contents("qrels" if labels else "judgments")]
    if query and passage and head.has_any("score", "rank"):
        return [Contents("run")]
    if system and query and text:
        return [Contents("written")]
    if system and (query or head.has_any(*outcomes.QUESTION_COLUMNS)) and not lines and _has_grades(head):
        return [Contents("outcomes")]
    if query and part and text:
        return [Contents("subquestions")]
    if passage and head.has("tokens") and not text:
        raise FormatError(
            f"it has lengths of passages, and no texts: {format_names(sorted(head.columns))}", file=head.path
        )
    if text and (passage or identified) and not head.has_any("aspect", "value"):
        texts_of = _text_contents(head, passage or head.has_any("title", "contents"), query or lists["answers"])
        return [*texts_of, Contents("answers")] if lists["answers"] else texts_of
    return []


def _has_grades(head: Head) -> bool:
    return outcomes.is_outcome_table(pl.DataFrame(list(head.rows), infer_schema_length=None))


def _text_contents(head: Head, passage: bool, query: bool) -> list[Contents]:
    """Texts by id: of passages, of queries or, in a table, of accepted answers, of which a query may have several."""
    if passage or not (query or _says(head, "queries")):
        if passage or _says(head, "passages"):
            return [Contents("passages")]
        found = "it has ids and texts; call it queries or passages, or write query_id or passage_id"
        raise FormatError(found, file=head.path)
    if head.kind == "table":
        column = next(name for name in ID_ALIASES["query"] if name in head.columns)
        ids = [row[column] for row in head.rows]
        if len(set(ids)) < len(ids):
            return [Contents("answers")]
        if _says(head, "answers"):
            doubt = "it has queries and texts; taken as accepted answers, because of its name"
            return [Contents("answers", doubt)]
    return [Contents("queries")]


def unknown_error(head: Head) -> FormatError:
    """The error for a file that no format knows: its columns, the closest format, and the mapping to paste."""
    if head.kind == "lines":
        try:
            next(read_values(head, [], skip=False, expected="a JSON object in each line"), None)
        except FormatError as error:
            return error
    if not head.columns:
        return FormatError(
            "it is empty" if head.content == b"" else "no known format begins like this",
            file=head.path,
            expected="JSON, JSON lines, CSV, TSV or Parquet with named fields, or a TREC file",
            remedy="name the format before the path, such as trec:PATH",
        )
    if (ambiguous := _ambiguous(head)) is not None:
        return ambiguous
    mapping = _known_columns(head)
    command, _, python, _ = mapping_hint((mapping, ""))
    keys = "".join(f"\n    {field} = {json.dumps(column, ensure_ascii=False)}" for field, column in mapping.items())
    return FormatError(
        f"no known format has these columns: {format_names(list(head.columns), 16)}",
        file=head.path,
        remedy=Hint(
            f"say what the columns are (leave out what there is not): {command}",
            f"say what the columns are in ragworth.toml, such as:\n    [columns]{keys}",
            f"say what the columns are: {python}",
            option="columns",
        ),
    )


def _ambiguous(head: Head) -> FormatError | None:
    """The error for a question with an ``answer`` that may be a system's or an accepted one."""
    found = FieldFinder(NAMES).keys(dict.fromkeys(head.columns))
    if not {"question", "answer"} <= set(found) or "accepted" in found:
        return None
    column = found["answer"]
    return FormatError(
        f"{column!r} may be the answer of a system, or the accepted answer; the columns are "
        f"{format_names(list(head.columns), 16)}",
        file=head.path,
        remedy=mapping_hint(
            ({"answer": column}, " if a system wrote it; "), ({"accepted": column}, " if it is the accepted answer")
        ),
    )


def _known_columns(head: Head) -> dict[str, str]:
    """A mapping to start from: columns of usual names, also inside objects, and gaps to fill in."""
    columns: dict[str, str] = {}
    for row in head.rows:
        columns |= {name: name for name in row}
        inner = ((name, key) for name, value in row.items() if isinstance(value, dict) for key in value)
        columns |= {key: f"{name}.{key}" for name, key in inner if key not in row}
    found = FieldFinder(FIELDS).keys(dict.fromkeys(columns))
    wanted = {field: found.get(field, "COLUMN") for field in ("question", "answer", "passages", "accepted")}
    return {field: columns.get(name, name) for field, name in wanted.items()}
