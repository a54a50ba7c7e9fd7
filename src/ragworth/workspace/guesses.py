"""What a file seems to be, by its columns or keys, and by its name where these leave it open."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from ragworth.core.errors import FormatError, format_list, format_names
from ragworth.core.nested_text import parse_json
from ragworth.data import Judgments
from ragworth.data.coercion import ID_ALIASES
from ragworth.formats import nested_scores, outcomes, texts
from ragworth.formats.columns import is_row
from ragworth.formats.detection import examine
from ragworth.formats.files import split_lines
from ragworth.formats.heads import read_head
from ragworth.formats.tables import read_table
from ragworth.workspace.file_heads import TABLE_SUFFIXES, FileHead

TextKind = Literal["queries", "passages", "answers", "subquestions"]
FileKind = Literal[TextKind, "run", "log", "references", "exam", "qrels", "ratings", "judgments", "written", "outcomes"]
FileForm = Literal["trec", "table", "jsonl", "pytrec_eval", "exam"]

SAMPLE_LINES = 200
"""How many lines are looked at for their form."""

MIN_MATCHING_SHARE = 0.8
"""Share of the first lines that must have the form of a TREC file; what is wrong with the others is for its reader."""

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
RATING_WORDS = ("rating", "subtopic", "sub-topic", "sub_topic", "diversity", "intent")
ANSWER_WORDS = ("answer", "gold", "accepted", "reference")
QUERY_WORDS = ("quer", "question", "topic")
PASSAGE_WORDS = ("corpus", "passage", "doc", "collection", "chunk", "paragraph", "article")
QUERY_NAME, PASSAGE_NAME, OTHER_NAME = (
    re.compile(rf"(?<![a-z])(?:{words})(?![a-z])")
    for words in (
        "quer(?:y|ies)|questions?|topics?",
        "collection|corpus|passages?|doc(?:ument)?s?|chunks?|paragraphs?|articles?",
        "(?:answer|judg|relevan)[a-z]*|q?rels?|gold|accepted|ids?|pairs?|triples?",
    )
)
"""Words in the names of files without a header: of texts of queries, of texts of passages, and of neither."""
LABEL_NAME = re.compile(r"(?<![a-z])(?:q?rels?|relevan[a-z]*|judg[a-z]*|labels?|gold)(?![a-z])")
"""Words in the names of files of labels."""
KIND_NAMES: dict[FileKind, str] = {
    "run": "a run",
    "log": "a log",
    "references": "questions with accepted answers",
    "exam": "a file of EXAM++",
    "qrels": "relevance labels",
    "ratings": "ratings of sub-questions",
    "judgments": "judgments",
    "queries": "texts of queries",
    "passages": "texts of passages",
    "answers": "accepted answers",
    "subquestions": "sub-questions",
    "written": "answers of systems",
    "outcomes": "outcomes of answers",
}


class UnknownKindError(FormatError):
    """A file that is none of the kinds that are known."""


class Guess(NamedTuple):
    """What a file seems to be, and what is doubtful about it."""

    kind: FileKind
    form: FileForm
    doubt: str = ""


def guess_kinds(head: FileHead) -> list[Guess]:
    """What a file seems to be, mostly one thing; raises a :class:`FormatError` where it seems to be nothing known."""
    if head.file.plain.endswith(".json") and (guess := _guess_document(head)) is not None:
        return [guess]
    lines = [line for line in split_lines(head.data)[:SAMPLE_LINES] if line.strip()]
    rows = [line for line in lines if is_row(line)]
    if not lines and not head.file.plain.endswith(".parquet"):
        raise FormatError("it is empty")
    if (guess := _guess_pairs(head, lines)) is not None:
        return [guess]
    if (guess := _guess_trec(head, [line.split() for line in rows])) is not None:
        return [guess]
    if head.file.plain.endswith(TABLE_SUFFIXES):
        frame, _ = read_table(head.sample, words=outcomes.GRADE_COLUMNS, skip_bad_lines=True)
        return [_guess_by_columns(head, "table", set(frame.columns), frame)]
    try:
        records = [parse_json(line) for line in lines]
    except ValueError as error:
        single = head.whole and head.file.plain.endswith(".json")
        reason = "one JSON document; JSON lines are read" if single else "it is none of the known formats"
        raise UnknownKindError(reason) from error
    if records and isinstance(records[0], list):
        if any(isinstance(each, dict) for each in records[0]):
            raise UnknownKindError("nothing known has the keys of its records")
        return [Guess("exam", "exam")]
    return _guess_by_keys(head, [row for row in records if isinstance(row, dict)])


def _guess_trec(head: FileHead, rows: list[list[bytes]]) -> Guess | None:
    """A run, qrels or ratings, if the first lines look like nothing else."""
    first = [row for row in rows[:20] if row[0][:1] not in b'{["']
    six = [row for row in first if len(row) == 6 and NUMBER.match(row[3]) and NUMBER.match(row[4])]
    if six and len(six) >= MIN_MATCHING_SHARE * len(first):
        return Guess("run", "trec")
    four = [row for row in first if len(row) == 4 and NUMBER.match(row[3])]
    if not four or len(four) < MIN_MATCHING_SHARE * len(first):
        return None
    every = [line.split() for line in split_lines(head.data) if is_row(line)]
    seconds: dict[tuple[bytes, bytes], set[bytes]] = {}
    for row in every:
        if len(row) == 4:
            seconds.setdefault((row[0], row[2]), set()).add(row[1])
    different = set[bytes]().union(*seconds.values())
    if any(len(each) > 1 for each in seconds.values()):
        return Guess("ratings", "trec")
    if different <= {b"0", b"Q0"}:
        return Guess("qrels", "trec")
    if _name_contains(head, RATING_WORDS):
        return Guess("ratings", "trec")
    doubt = "its second column may number sub-questions; taken as relevance labels" if len(different) > 1 else ""
    return Guess("qrels", "trec", doubt)


def _guess_document(head: FileHead) -> Guess | None:
    """A run or labels in one JSON document; None for other documents."""
    sample, form = examine(read_head(head.file.path))
    if form is not nested_scores.FORMAT:
        return None
    if nested_scores.table_rows(sample.document) is not None:
        return _guess_by_columns(head, "pytrec_eval", set(sample.columns), None)
    labels = nested_scores.label_values(sample.document)
    if LABEL_NAME.search(Path(head.file.plain).name):
        return Guess("qrels", "pytrec_eval")
    found = format_list([f"{value:g}" for value in labels])
    doubt = f"its only numbers are {found}; taken as relevance labels" if labels else ""
    return Guess("qrels" if labels else "run", "pytrec_eval", doubt)


def _guess_pairs(head: FileHead, lines: list[bytes]) -> Guess | None:
    """Texts of queries or passages, by the name of a file with an id and a text on each line and no header."""
    name = Path(head.file.plain).name
    queries, passages, others = (words.search(name) for words in (QUERY_NAME, PASSAGE_NAME, OTHER_NAME))
    if others or bool(queries) == bool(passages) or not name.endswith(".tsv"):
        return None
    if any(line.count(b"\t") != 1 for line in lines[:-1]):
        return None
    kind: FileKind = "queries" if queries else "passages"
    doubt = f"it has no header; taken as ids and texts of {kind}, because of its name"
    return Guess(kind, "table", doubt) if texts.lacks_header(head.sample) else None


def _guess_by_columns(head: FileHead, form: FileForm, columns: set[str], frame: pl.DataFrame | None) -> Guess:
    """What a table is, by the names of its columns; the same for rows in JSON."""
    system, query, passage, part = (
        any(alias in columns for alias in ID_ALIASES[name]) for name in ("system", "query", "passage", "subquestion")
    )
    asked = bool(columns & set(outcomes.QUESTION_COLUMNS))
    wide = {aspect for aspect, names in Judgments.wide.items() if set(names) & columns}
    if query and passage and part and columns & {"value", "rating"}:
        return Guess("ratings", form)
    if query and passage:
        if "aspect" in columns and "value" in columns:
            return Guess("judgments", form)
        if "corpus-id" in columns or "value" in columns or wide == {"relevance"}:
            return Guess("qrels", form)
        if wide:
            return Guess("judgments", form)
        if columns & {"score", "rank"}:
            return Guess("run", form)
    elif system and query and "text" in columns:
        return Guess("written", form)
    elif system and (query or asked) and form == "table" and frame is not None and outcomes.is_outcome_table(frame):
        return Guess("outcomes", form)
    elif query and part and "text" in columns:
        return Guess("subquestions", form)
    elif "text" in columns and (query or passage) and frame is not None:
        return _guess_by_ids(head, form, query, frame)
    if passage and "tokens" in columns:
        raise FormatError(f"it has lengths of passages, and no texts: {format_names(sorted(columns))}")
    raise UnknownKindError(f"nothing known has its columns: {format_names(sorted(columns))}")


def _guess_by_ids(head: FileHead, form: FileForm, query: bool, frame: pl.DataFrame) -> Guess:
    """Texts of passages, of queries, or of accepted answers: the last two look alike."""
    if not query:
        return Guess("passages", form)
    ids = next(frame[alias] for alias in ID_ALIASES["query"] if alias in frame.columns)
    if ids.n_unique() < len(ids):
        return Guess("answers", form)
    if _name_contains(head, ANSWER_WORDS):
        return Guess("answers", form, "it has queries and texts; taken as accepted answers, because of its name")
    return Guess("queries", form)


def _guess_by_keys(head: FileHead, rows: list[dict[str, Any]]) -> list[Guess]:
    """What JSON lines are, by their keys."""
    keys = {key for row in rows for key in row}
    if "retrieved_context" in keys:
        return [Guess("log", "jsonl")]
    if keys & set(texts.LIST_KEYS["subquestions"]) and not keys & {"passage", "doc_id"}:
        return [Guess("subquestions", "jsonl")]
    has_answers = bool(keys & set(texts.LIST_KEYS["answers"])) and not keys & {"passage", "doc_id", "system"}
    if has_answers and "text" not in keys and keys & {"query_id", "qid", "_id", "id"}:
        return [Guess("answers", "jsonl")]
    if keys & {"text", "contents"} and not keys & {"system", "aspect", "value"}:
        guess = _guess_texts(head, keys)
        return [guess, Guess("answers", "jsonl")] if guess.kind == "queries" and has_answers else [guess]
    return [_guess_by_columns(head, "jsonl", keys, None)]


def _guess_texts(head: FileHead, keys: set[str]) -> Guess:
    """Texts by id: of queries or of passages."""
    if keys & {"passage_id", "doc_id", "docno", "passage", "title", "contents"}:
        return Guess("passages", "jsonl")
    if keys & {"query_id", "query", *texts.LIST_KEYS["answers"]} or _name_contains(head, QUERY_WORDS):
        return Guess("queries", "jsonl")
    if _name_contains(head, PASSAGE_WORDS):
        return Guess("passages", "jsonl")
    raise UnknownKindError("it has ids and texts; call it queries or passages, or write query_id or passage_id")


def _name_contains(head: FileHead, words: tuple[str, ...]) -> bool:
    return any(word in Path(head.file.plain).name for word in words)
