"""Readers of the text formats that know nothing of ragworth's: plain Python, one character or line at a time, no speed.

Each takes the bytes of a file and gives its rows, or raises :class:`Refused`. They say what a file means; the test
beside them compares ragworth's tables with theirs.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any

DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
INFINITE = re.compile(r"([+-]?)inf(inity)?", re.ASCII | re.IGNORECASE)
BLANKS = " \t\v\f"

Row = tuple[Any, ...]


class Refused(Exception):  # noqa: N818 (it is an answer)
    """This is no file of the format."""


def text_of(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused("not UTF-8") from error


def number_of(text: str) -> float:
    if DECIMAL.fullmatch(text):
        return float(text)
    if found := INFINITE.fullmatch(text):
        return -math.inf if found[1] == "-" else math.inf
    raise Refused(f"no number: {text!r}")


def finite(value: float) -> float:
    if not math.isfinite(value):
        raise Refused("infinite")
    return value


def lines_of(data: bytes) -> list[bytes]:
    """A line ends at a line feed, a carriage return, or both."""
    lines, line, at = [], bytearray(), 0
    while at < len(data):
        if data[at] in b"\r\n":
            lines.append(bytes(line))
            line.clear()
            at += data[at : at + 2] == b"\r\n"
        else:
            line.append(data[at])
        at += 1
    return [*lines, bytes(line)] if line else lines


def fields_of(line: bytes) -> list[bytes]:
    return [field for field in re.split(rb"[ \t\v\f]+", line) if field]


def without_mark(data: bytes) -> bytes:
    return data[3:] if data[:3] == b"\xef\xbb\xbf" else data


def trec_rows(data: bytes, number: int, skip: bool) -> list[list[bytes]]:
    rows = []
    for line in lines_of(without_mark(data)):
        fields = fields_of(line)
        if not fields or fields[0].startswith(b"#"):
            continue
        if len(fields) == number:
            rows.append(fields)
        elif not skip:
            raise Refused(f"{len(fields)} fields")
    return rows


def kept(rows: list[list[bytes]], read: Any, key: slice, skip: bool) -> list[Row]:
    """Rows that can be read, each key once."""
    found: dict[Row, Row] = {}
    for fields in rows:
        try:
            row = read(fields)
            if row[key] in found:
                raise Refused("twice")
            found[row[key]] = row
        except Refused:
            if not skip:
                raise
    if not found:
        raise Refused("empty")
    return list(found.values())


def ranked(rows: list[tuple[str, str, float]]) -> list[Row]:
    """(query, rank, passage, score): queries as they come; score descending, then passage descending."""
    queries = dict.fromkeys(row[0] for row in rows)
    result: list[Row] = []
    for query in queries:
        mine = [(score, passage.encode(), passage) for q, passage, score in rows if q == query]
        mine.sort(reverse=True)
        result += [(query, rank, passage, score) for rank, (score, _, passage) in enumerate(mine, 1)]
    return result


def run(data: bytes, skip: bool = False) -> list[Row]:
    def read(f: list[bytes]) -> Row:
        if not number_of(f[3].decode("latin-1")).is_integer():
            raise Refused("rank")
        return (text_of(f[0]), text_of(f[2]), number_of(f[4].decode("latin-1")))

    return ranked(kept(trec_rows(data, 6, skip), read, slice(0, 2), skip))


def qrels(data: bytes, skip: bool = False) -> list[Row]:
    def read(f: list[bytes]) -> Row:
        return (text_of(f[0]), text_of(f[2]), finite(number_of(f[3].decode("latin-1"))))

    return kept(trec_rows(data, 4, skip), read, slice(0, 2), skip)


def subtopics(data: bytes, skip: bool = False) -> list[Row]:
    def read(f: list[bytes]) -> Row:
        return (text_of(f[0]), text_of(f[2]), text_of(f[1]), finite(number_of(f[3].decode("latin-1"))))

    return kept(trec_rows(data, 4, skip), read, slice(0, 3), skip)


def cells_of(text: str, separator: str) -> list[list[str]]:
    """RFC 4180 with any line end: a cell is quoted as a whole or not at all, a quote inside is doubled."""
    rows: list[list[str]] = []
    row: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == '"':
            cell, at = quoted_cell(text, at + 1)
        else:
            end = at
            while end < len(text) and text[end] not in separator + "\r\n":
                end += 1
            cell, at = text[at:end], end
        row.append(cell)
        if at < len(text) and text[at] == separator:
            at += 1
            if at < len(text):
                continue
            row.append("")
        rows.append(row)
        row = []
        at += 2 if text[at : at + 2] == "\r\n" else 1
    return [row for row in rows if row != [""]]


def quoted_cell(text: str, at: int) -> tuple[str, int]:
    cell = ""
    while at < len(text):
        if text[at] != '"':
            cell += text[at]
        elif text[at + 1 : at + 2] == '"':
            cell += '"'
            at += 1
        else:
            return cell, at + 1
        at += 1
    raise Refused("a quote is not closed")


def csv_columns(data: bytes) -> dict[str, list[str]]:
    text = text_of(without_mark(data))
    head = re.split("[\r\n]", text, maxsplit=1)[0]
    separator = max("\t,;", key=head.count)
    if not head.strip():
        raise Refused("no header")
    names, *rows = cells_of(text, separator)
    names = [name.strip() for name in names]
    if len(set(names)) < len(names) or "" in names or not rows or any(len(row) != len(names) for row in rows):
        raise Refused("names or rows")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def column(columns: dict[str, list[str]], *names: str) -> list[str]:
    cells = next((columns[name] for name in names if name in columns), None)
    if cells is None or "" in cells:
        raise Refused(f"no {names[0]}")
    return cells


QUERY = ("query_id", "qid", "query-id", "topic_id", "query")
PASSAGE = ("passage_id", "doc_id", "docno", "docid", "corpus-id", "passage")


def once(keys: list[Row]) -> None:
    if len(set(keys)) < len(keys):
        raise Refused("twice")


def csv_run(data: bytes, skip: bool = False) -> list[Row]:
    """A table with query, passage and score, and no other column that has a meaning."""
    columns = csv_columns(data)
    if {"rank", "system", "system_id", "run", "run_id"} & set(columns):
        raise Refused("other columns")
    scores = [number_of(cell) for cell in column(columns, "score")]
    rows = list(zip(column(columns, *QUERY), column(columns, *PASSAGE), scores, strict=True))
    once([row[:2] for row in rows])
    return ranked(rows)


def csv_judgments(data: bytes, skip: bool = False) -> list[Row]:
    """A table with query, passage and value."""
    columns = csv_columns(data)
    if {"aspect", "status"} & set(columns):
        raise Refused("other columns")
    values = [finite(number_of(cell)) for cell in column(columns, "value")]
    rows = list(zip(column(columns, *QUERY), column(columns, *PASSAGE), values, strict=True))
    once([row[:2] for row in rows])
    return list(rows)


def json_id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise Refused("no id")
    return json_text(str(value))


def json_text(value: object) -> str:
    if not isinstance(value, str):
        raise Refused("no text")
    text_of(value.encode("utf-8", "surrogatepass"))
    return value


def no_constant(name: str) -> float:
    raise Refused(name)


def json_run(data: bytes, skip: bool = False) -> list[Row]:
    """One object a line; (system, query, rank, passage, score)."""
    shown: list[tuple[str, str, int, str, float | None, str | None]] = []
    seen: set[Row] = set()
    texts: dict[Row, object] = {}
    for line in lines_of(without_mark(data)):
        if not line.strip():
            continue
        try:
            item = json.loads(text_of(line), parse_constant=no_constant)
        except (ValueError, RecursionError) as error:
            raise Refused("no JSON") from error
        if not isinstance(item, dict):
            raise Refused("no object")
        if "retrieved_context" not in item and item.get("answer") is not None:
            item["retrieved_context"] = []
        if not isinstance(item.get("retrieved_context"), list):
            raise Refused("no passages")
        question = None if item.get("query") is None else json_text(item["query"])
        given = item.get("query_id")
        query = json_id(named_after(question) if given is None and question else given)
        system = json_id(item.get("system", "file"))
        if (system, query) in seen:
            raise Refused("twice")
        seen.add((system, query))
        mine = [passage_of(entry) for entry in item["retrieved_context"]]
        answers = item.get("answers") or []
        answers = answers if isinstance(answers, list) else [answers]
        if any(isinstance(each, bool | dict | list) for each in answers):
            raise Refused("no answers")
        said = {("query", query): question, ("answers", query): [str(each) for each in answers if each is not None]}
        for key, text in said.items():
            if text and texts.setdefault(key, text) != text:
                raise Refused("another text")
        once([(passage,) for passage, _, _ in mine])
        shown += [(system, query, rank, name, score, text) for rank, (name, score, text) in enumerate(mine, 1)]
    if not seen:
        raise Refused("empty")
    meanings: dict[str, set[str]] = {}
    for *_, name, _, text in shown:
        meanings.setdefault(name, set()).update([text] if text is not None else [])
    rows = [
        (system, query, rank, f"{query}/{name}" if len(meanings[name]) > 1 else name, score)
        for system, query, rank, name, score, _ in shown
    ]
    systems = list(dict.fromkeys(row[0] for row in rows))
    return [row for system in systems for row in rows if row[0] == system]


def named_after(text: str) -> str:
    return "text:" + hashlib.sha256(text.encode()).hexdigest()[:16]


def passage_of(entry: object) -> tuple[str, float | None, str | None]:
    if isinstance(entry, str) and entry.strip():
        entry = {"text": entry}
    if not isinstance(entry, dict):
        raise Refused("no passage")
    text = None if entry.get("text") is None else json_text(entry["text"])
    name = entry.get("doc_id")
    if name is None and text is not None:
        name = named_after(text)
    score = entry.get("score")
    if score is not None:
        if isinstance(score, bool) or not isinstance(score, (int, float)):
            raise Refused("no score")
        try:
            score = finite(float(score))
        except OverflowError as error:
            raise Refused("infinite") from error
    return json_id(name), score, text
