"""Find the fields of a RAG log by their many names, and convert their values.

Our fields are ``query`` (the id of a question), ``question``, ``system``, ``repeat``, ``passages``, ``passage_ids``,
``answer``, ``accepted`` (accepted answers), ``relevant`` and ``relevant_ids`` (passages known to be relevant). Any
other name that a user maps is a grade.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import io
import json
import math
import re
import tokenize
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from functools import lru_cache
from typing import Any

from ragworth.errors import FormatError, Hint, format_names, quote_short
from ragworth.formats.grade_words import Grade
from ragworth.formats.log_record import LoggedPassage, LogRecord
from ragworth.formats.search_hits import find_hits
from ragworth.formats.values import WrongLineError, as_id, as_number, as_text

Names = Mapping[str, tuple[str, ...]]

FIELDS: dict[str, tuple[str, ...]] = {
    "query": ("query_id", "qid", "question_id", "topic_id", "id", "_id", "sample_id", "example_id"),
    "question": ("question", "query", "user_input", "query_text", "question_text", "user_query", "input", "prompt"),
    "system": ("system", "system_id", "system_name", "pipeline", "configuration", "run_id", "run"),
    "repeat": ("repeat", "epoch", "query_run"),
    "passages": (
        *("retrieved_context", "retrieved_contexts", "retrieval_context", "contexts", "passages", "retrieved_passages"),
        *("retrieved_documents", "retrieved_docs", "retrieved_chunks", "retrieved", "documents", "docs", "chunks"),
        *("source_documents", "source_nodes", "sources", "ctxs", "context"),
    ),
    "passage_ids": ("retrieved_context_ids", "passage_ids", "doc_ids", "retrieved_ids"),
    "answer": (
        *("response", "generated_answer", "model_answer", "model_response", "actual_output", "prediction", "predicted"),
        *("predicted_answer", "llm_answer", "system_answer", "rag_answer", "generated_text", "completion", "answer"),
        *("output", "result"),
    ),
    "accepted": (
        *("answers", "accepted", "accepted_answers", "reference", "reference_answer", "ground_truth"),
        *("ground_truths", "ground_truth_answer", "gt_answer", "gold_answer", "gold_answers", "golden_answer"),
        *("golden_answers", "expected_output", "expected_answer", "expected", "correct_answer", "ideal_answer"),
        *("target", "gold", "label_answer", "references"),
    ),
    "relevant": ("reference_contexts", "gold_contexts", "ground_truth_contexts", "gold_passages", "evidence"),
    "relevant_ids": ("reference_context_ids", "gold_ids", "relevant_ids", "relevant_doc_ids"),
}
"""Our fields, and what files call them, in order of preference."""

GRADE_FIELDS: dict[str, tuple[str, ...]] = {
    "human": ("human_label", "human", "human_grade", "label", "verdict", "annotation"),
    "correct": ("correct", "is_correct", "correctness"),
    "grade": ("grade",),
    "abstained": ("abstained", "is_abstained"),
}
"""Grades of answers, and what files call them."""

SYSTEM_COLUMNS = (
    *("model", "model_name", "llm", "method", "variant", "version", "app_version", "config", "experiment", "approach"),
    *("experiment_name", "provider", "retriever", "modell", "modèle", "modelo", "modello"),
)
"""Names of columns that may name the systems."""

BLANK_NOTE = "passages without any text are left out"
LONG_TEXT = 30
"""Characters from which a field of a passage may be its text."""

SYNONYMS = {
    "query_id": "query",
    "id": "query",
    "contexts": "passages",
    "context": "passages",
    "response": "answer",
    "reference": "accepted",
    "references": "accepted",
    "answers": "accepted",
    "ground_truth": "accepted",
    "reference_contexts": "relevant",
    "run": "system",
}
"""Other names that a mapping may use for our fields."""

TEXT_KEYS = (
    *("text", "content", "page_content", "contents", "document.content", "passage", "chunk", "segment", "body"),
    *("snippet", "chunk_text", "passage_text"),
)
ID_KEYS = ("doc_id", "id", "_id", "id_", "node_id", "passage_id", "docid", "docno", "chunk_id", "document.id", "uuid")
SCORE_KEYS = ("score", "_score", "similarity", "document.score", "certainty")
RELEVANCE_KEYS = ("relevance", "is_relevant", "relevant")
# In what LangChain's dumpd writes (with "lc"), the id is the path of a class.
WRAPPERS = ("node", "document", "doc", "chunk", "passage", "kwargs", "init_parameters")
"""Keys of a passage that hold the passage itself, as in LlamaIndex's NodeWithScore."""

STORED = ("_source", "payload", "entity", "properties", "metadata", "content")
"""Keys under which vector stores and search engines keep the text of a hit: Elasticsearch, Qdrant, Milvus, Weaviate,
Pinecone, Bedrock."""


def check_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return a mapping with our names of the fields. A misspelt field is an error."""
    mapped: dict[str, str] = {}
    for given, column in (columns or {}).items():
        field = SYNONYMS.get(given, given)
        near = difflib.get_close_matches(given, [*FIELDS, *SYNONYMS], n=1, cutoff=0.8)
        if field not in FIELDS and near:
            raise FormatError(
                f"unknown field {given!r} in the mapping of columns",
                expected=", ".join(FIELDS) + ", or the name of a grade",
                remedy=f"did you mean {near[0]}={column}?",
            )
        if mapped.setdefault(field, column) != column:
            raise FormatError(f"the field {field!r} is mapped to {mapped[field]!r} and to {column!r}")
    return mapped


class FieldFinder:
    """Finds the fields of rows. ``columns``, the user's mapping, comes before ``names``, those of a format."""

    def __init__(self, names: Names, columns: Mapping[str, str] | None = None) -> None:
        self.names, self.columns = names, check_columns(columns)
        self.grades: dict[str, str] = {name: key for name, key in self.columns.items() if name not in FIELDS}
        """Columns of grades, by the name of the grade."""
        self.notes: list[str] = []
        """What readers of whole files noticed."""
        self.found: set[str] = set()
        """Mapped columns that some row has."""
        self.seen: dict[str, None] = {}
        self._keys: dict[tuple[str, ...], dict[str, str]] = {}

    def keys(self, row: Mapping[str, Any]) -> dict[str, str]:
        """The key of each field in rows with these keys."""
        mark = tuple(row)
        if mark not in self._keys:
            self.seen |= dict.fromkeys(mark)
            plain = {plain_name(key): key for key in reversed(mark)}
            taken = {column for field, column in self.columns.items() if field != "query"}  # a text may be the id, too
            found = {
                field: key
                for field, names in self.names.items()
                if field not in self.columns
                and (key := next((plain[name] for name in names if plain.get(name) not in (None, *taken)), None))
            }
            self._keys[mark] = found | self.columns
        return self._keys[mark]

    def known_keys(self) -> Iterable[dict[str, str]]:
        """The keys of the fields, for each set of keys that rows had."""
        return self._keys.values()

    def get(self, row: Mapping[str, Any], field: str) -> Any:
        """The value of a field, or None. Names with dots lead into objects."""
        key = self.keys(row).get(field) or self.grades.get(field)
        if key is None:
            return None
        value = row.get(key)
        if value is None and field in self.columns and key not in row:
            value = _follow(row, key)
        if field in self.columns and (value is not None or key in row):
            self.found.add(key)
        return None if isinstance(value, float) and math.isnan(value) else value

    def check_mapped(self, source: str) -> None:
        """Raise an error if a mapped column was in no row."""
        missing = [(field, key) for field, key in self.columns.items() if key not in self.found]
        if missing:
            field, key = missing[0]
            near = difflib.get_close_matches(key, list(self.seen), n=1, cutoff=0.5)
            better = f"{field}={near[0] if near else 'COLUMN'}"
            raise FormatError(
                f"no {key!r}, which was given for {field!r}; there are {format_names(list(self.seen))}",
                file=source,
                remedy=Hint(
                    f"--map {quote_argument(better)}", f"[columns]: {_toml_pair(better)}", f"columns: {better}"
                ),
            )


def quote_argument(text: str) -> str:
    return text if re.fullmatch(r"[\w=.\-/:]+", text) else f"'{text}'"


def _toml_pair(text: str) -> str:
    name, _, value = text.partition("=")
    return f"{name} = {json.dumps(value, ensure_ascii=False)}"


def _follow(row: Mapping[str, Any], path: str) -> Any:
    value: Any = row
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


@lru_cache(maxsize=4096)
def plain_name(key: Hashable) -> str:
    """A key in lower case with underscores: ``userInput`` and ``User Input`` are ``user_input``."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(key))
    return re.sub(r"[\s\-]+", "_", text.strip()).lower()


def as_row(item: Any) -> Mapping[str, Any] | None:
    """The fields of a dict or an object of another library, or None."""
    if isinstance(item, Mapping):
        return item
    if item is None or isinstance(item, str | bytes | int | float | list | tuple):
        return None
    if hasattr(item, "page_content"):
        return {"id": getattr(item, "id", None), "page_content": item.page_content}
    if hasattr(item, "get_content") and hasattr(item, "node_id"):
        node = getattr(item, "node", item)
        return {"id": node.node_id, "text": node.get_content(), "score": getattr(item, "score", None)}
    for method in ("model_dump", "to_dict", "dict"):
        if callable(getattr(type(item), method, None)):
            made = getattr(item, method)()
            return made if isinstance(made, Mapping) else None
    if dataclasses.is_dataclass(item):
        return {each.name: getattr(item, each.name) for each in dataclasses.fields(item)}
    return vars(item) if hasattr(item, "__dict__") else None


def as_answer(value: Any, what: str = "answer") -> str | None:
    """An answer as text; a number is written out, and true or false is yes or no."""
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, date | time | Decimal):  # of Parquet; a moment without a time is a day
        return str(value).removesuffix(" 00:00:00")
    if isinstance(value, int | float):
        number = as_number(value, what)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else str(value)
    return as_text(value, what)


def as_texts(value: Any, what: str = "answer", *, cells: bool = False) -> list[str]:
    """A text, or a list of texts.

    In cells of tables, a list may be written as JSON or as Python writes it.
    """
    value = parse_cell(value, what) if cells else _plain_value(value)
    if value is None or isinstance(value, str | int | float | date | time | Decimal):
        text = as_answer(value, what)
        return [text] if text else []
    if not isinstance(value, list | tuple):
        raise WrongLineError(f"the {what}s are {quote_short(value, 24)}, not a list of texts")
    return [text for each in value if (text := as_answer(each, what)) is not None]


def _plain_value(value: Any) -> Any:
    """NumPy's arrays and numbers as lists and numbers."""
    return value.tolist() if hasattr(value, "tolist") else value


def parse_cell(value: Any, what: str) -> Any:
    """Parse a list in a cell: JSON, or the way Python or NumPy write it. Other texts stay as they are."""
    value = _plain_value(value)
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not (text.startswith("[") and text.endswith("]")) and not (text.startswith("{") and text.endswith("}")):
        return value
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        parsed = ast.literal_eval(text)
        spaced = _spaced_strings(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
        if re.match(r"""[\[{]\s*["'{\[]""", text):
            raise WrongLineError(f"the {what}s start like a list, but can't be read: {quote_short(text, 40)}") from None
        return value
    return spaced or parsed


def _spaced_strings(text: str) -> list[str]:
    """The strings of a list without commas, as NumPy writes it. Python would join them."""
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string.strip()]
    inner = tokens[1:-1]
    if len(inner) > 1 and all(token.type == tokenize.STRING for token in inner):
        return [str(ast.literal_eval(token.string)) for token in inner]
    return []


def as_passages(value: Any) -> list[LoggedPassage] | None:
    """Passages in the order shown: texts, objects with a text or an id, or ``{id: text}``; also written as text."""
    value = parse_cell(value, "passage")
    if value is None:
        return None
    if isinstance(value, str):
        return [LoggedPassage(as_text(value, "passage"))] if value.strip() else []
    hits = find_hits(value)
    if hits is not None:
        value = hits
    if isinstance(value, Mapping):
        if value and all(isinstance(each, str) for each in value.values()) and not set(value) & {*TEXT_KEYS, *ID_KEYS}:
            return [LoggedPassage(as_text(text, "passage"), as_id(name, "id")) for name, text in value.items()]
        value = [value]
    if not isinstance(value, Sequence):
        raise WrongLineError(f"the passages are {quote_short(value, 24)}, not a list")
    return [as_passage(each, rank) for rank, each in enumerate(value, 1)]


def as_passage(item: Any, rank: int) -> LoggedPassage:
    """One passage: a text, an object, ``(document, score)``, or ``[title, [sentence, …]]``."""
    if isinstance(item, str):
        return LoggedPassage(as_text(item, f"text of passage {rank}"))
    if isinstance(item, list | tuple) and len(item) == 2:
        first, second = item
        if isinstance(first, str) and isinstance(second, list) and all(isinstance(each, str) for each in second):
            return LoggedPassage(as_text("\n".join([first, " ".join(each.strip() for each in second)]), "passage"))
        if as_row(first) is not None and isinstance(second, int | float):
            return as_passage(first, rank)._replace(score=as_number(second, f"score of passage {rank}"))
    row = as_row(item)
    if row is None:
        raise WrongLineError(f"passage {rank} is {quote_short(item, 24)}, not an object")
    if "_additional" in row:  # Weaviate's id and distance
        row = {**(as_row(row["_additional"]) or {}), **row}
    outer = _own_fields(row, rank)
    for key in WRAPPERS:
        if (outer.text is None or key == "node") and (inner := as_row(row.get(key))) is not None:
            inside = as_passage(inner, rank)
            return outer._replace(
                **{name: value for name, value in inside._asdict().items() if getattr(outer, name) is None}
            )
    for key in STORED:
        if outer.text is None and (inner := as_row(row.get(key))) is not None:
            stored = _own_fields(inner, rank)
            outer = outer._replace(text=stored.text, id=outer.id if outer.id is not None else stored.id)
    if outer.text is None and isinstance(row.get("document"), str):
        outer = outer._replace(text=as_text(row["document"], f"text of passage {rank}"))
    if outer.text is None and outer.id is None and not _is_empty_search(row):
        raise WrongLineError(
            f"passage {rank} has neither doc_id nor text; it has {format_names(list(map(str, row)), 8)}"
        )
    return outer


def _is_empty_search(row: Mapping[str, Any]) -> bool:
    """Whether a row has a hop and a search, and nothing else: a passage under another name is no empty search."""
    given = {key for key, value in row.items() if _given(value)}
    return {"hop", "search"} <= given <= {"hop", "search", "turn"}


@lru_cache(maxsize=1024)
def _passage_keys(names: tuple[object, ...]) -> tuple[tuple[str, ...], ...]:
    """The keys of a passage that may have its text, id, score and relevance, in order of preference."""
    fields = (TEXT_KEYS, () if "lc" in names else ID_KEYS, SCORE_KEYS, RELEVANCE_KEYS)
    return tuple(tuple(key for key in keys if key in names) for keys in fields)


def _own_fields(row: Mapping[str, Any], rank: int) -> LoggedPassage:
    text, name, score, relevance = (
        next((row[key] for key in keys if _given(row[key]) and not isinstance(row[key], Mapping)), None)
        for keys in _passage_keys(tuple(row))
    )
    if isinstance(relevance, bool):
        relevance = float(relevance)
    return LoggedPassage(
        None if text is None else as_text(text, f"text of passage {rank}"),
        None if name is None else as_id(name, "doc_id"),
        _minus_distance(row) if score is None else _as_score(score, f"score of passage {rank}"),
        None if relevance is None else _as_score(relevance, f"relevance of passage {rank}"),
        *_found_by(row, rank),
    )


def _as_score(value: Any, what: str) -> float:
    """A number, which may be written as text."""
    number = as_grade(value, what)
    return as_number(value if number is None else number, what)


def _minus_distance(row: Mapping[str, Any]) -> float | None:
    """The score of a hit that has a distance, which is better if lower. Milvus calls similarities a distance, too."""
    distance = row.get("distance")
    known = isinstance(distance, int | float) and not isinstance(distance, bool) and "entity" not in row
    return -as_number(distance, "distance") if known and _given(distance) else None


def _found_by(row: Mapping[str, Any], rank: int) -> tuple[int | None, str | None]:
    """In which hop of an agent a passage was found, and by which search."""
    hop = row.get("hop")
    if isinstance(hop, float) and hop.is_integer():
        hop = int(hop)
    if not isinstance(hop, int) or isinstance(hop, bool) or hop < 0:
        return None, None  # a field of that name may mean something else
    return hop, as_text(row["search"], f"search of passage {rank}") if _given(row.get("search")) else None


def _given(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def as_grades(value: Any, what: str) -> Grade | list[Grade]:
    """A grade, or those of several judges in a list."""
    value = _plain_value(value)
    return [as_grade(each, what) for each in value] if isinstance(value, list | tuple) else as_grade(value, what)


def as_grade(value: Any, what: str) -> Grade:
    """A grade: a number, true or false, or a word."""
    value = _plain_value(value)
    if isinstance(value, Decimal):
        value = float(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return value
        return value if math.isnan(number) else as_number(number, what)
    return as_number(value, what)


def as_repeat(value: Any) -> int:
    number = 0.0 if value is None else as_number(as_grade(value, "repeat"), "repeat")
    if not number.is_integer() or number < 0:
        raise WrongLineError(f"the repeat is {quote_short(value, 24)}, not a whole number")
    return int(number)


def as_name(value: Any, what: str, *, cells: bool = False) -> str | None:
    """An id, or None. Whole numbers that pandas turned into floats are ids, too."""
    value = _plain_value(value)
    if value is None or (cells and value == ""):
        return None
    if cells and isinstance(value, float) and value.is_integer():
        value = int(value)
    return as_id(value, what)


def read_record(row: Mapping[str, Any], finder: FieldFinder, place: int, *, cells: bool = False) -> LogRecord:
    """Convert a row that has one field for each thing."""
    keys = finder.keys(row)
    named = finder.get(row, "query")
    query = as_name(named, "query_id", cells=cells) if keys.get("query") != keys.get("question") else None
    question = _inner_text(finder.get(row, "question"), "question")
    if query is None and question is None:
        if "question" in keys:
            raise WrongLineError(f"no question: {keys['question']!r} is null")
        raise WrongLineError(f"no question: there is neither {keys.get('query', 'query_id')!r} nor 'query'")
    question = None if question is None else as_text(question, keys.get("question", "question"))
    if query is None and question is not None and not question.strip():
        raise WrongLineError(f"the {keys['question']} is empty, and there is no id")
    grades = [name for name in {**keys, **finder.grades} if name not in FIELDS]
    shown = parse_cell(finder.get(row, "passages"), "passage")
    passages = as_passages(shown)
    _note_other_text(shown, passages, finder)
    return LogRecord(
        place=place,
        query=query,
        question=question,
        system=as_name(finder.get(row, "system"), "system", cells=cells),
        repeat=as_repeat(finder.get(row, "repeat")),
        passages=without_blank(_with_ids(passages, finder.get(row, "passage_ids"), cells=cells), finder),
        answer=as_answer(_inner_text(finder.get(row, "answer"), "answer"), keys.get("answer", "answer")),
        accepted=as_texts(_inner_text(finder.get(row, "accepted"), "answer"), cells=cells),
        relevant=read_relevant(row, finder, cells=cells),
        outcomes={name: as_grades(finder.get(row, name), name) for name in grades},
    )


def _inner_text(value: Any, field: str) -> Any:
    """The text in an object such as ``{"question": …}``; other values stay as they are."""
    if not isinstance(value, Mapping):
        return value
    return next(
        (value[name] for name in (*FIELDS[field], "text", "content") if isinstance(value.get(name), str)), value
    )


def read_relevant(row: Mapping[str, Any], finder: FieldFinder, *, cells: bool = False) -> list[LoggedPassage]:
    """Passages known to be relevant. As many ids as texts are theirs; otherwise nothing says which belong together."""
    texts = [each for each in as_passages(finder.get(row, "relevant")) or [] if not each.is_empty_search]
    ids = as_texts(finder.get(row, "relevant_ids"), "id", cells=cells)
    if len(ids) == len(texts):
        return [
            passage if passage.id is not None else passage._replace(id=name)
            for passage, name in zip(texts, ids, strict=True)
        ]
    return [*texts, *(LoggedPassage(None, name) for name in ids)]


def without_blank(passages: list[LoggedPassage] | None, finder: FieldFinder) -> list[LoggedPassage] | None:
    """Leave out passages of nothing but white space that have no id either, and note it."""
    if passages is None:
        return None
    kept = [each for each in passages if each.id is not None or each.text is None or each.text.strip()]
    if len(kept) < len(passages) and BLANK_NOTE not in finder.notes:
        finder.notes.append(BLANK_NOTE)
    return kept


def _note_other_text(value: Any, passages: Sequence[LoggedPassage] | None, finder: FieldFinder) -> None:
    """Note that passages have an id, no text under a known name, and something under another that may be the text."""
    if not passages or any(each.text is not None for each in passages):
        return
    rows = [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []
    long = {key for row in rows for key, text in row.items() if isinstance(text, str) and len(text) >= LONG_TEXT}
    names = [key for key in dict.fromkeys(key for row in rows for key in row) if key in long and key not in ID_KEYS]
    note = f"passages have no text: {format_names(names)} isn't read as one; call it 'text' if it is"
    if names and note not in finder.notes:
        finder.notes.append(note)


def _with_ids(passages: list[LoggedPassage] | None, ids: Any, *, cells: bool) -> list[LoggedPassage] | None:
    """Passages with the ids of another field."""
    names = as_texts(ids, "passage id", cells=cells)
    if not names:
        return passages
    if passages is None:
        return [LoggedPassage(None, name) for name in names]
    if len(names) != len(passages):
        raise WrongLineError(f"there are {len(passages)} passages and {len(names)} ids of passages")
    return [passage._replace(id=name) for passage, name in zip(passages, names, strict=True)]
