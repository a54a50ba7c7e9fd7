"""Read questions with the responses of vector stores, search engines and retrieval services.

The response is a field of a row, whatever its name, or its fields stand beside the question. Chroma answers several
queries at once: ``query_texts`` are their questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragworth.errors import format_names
from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FIELDS, FieldFinder, plain_name
from ragworth.formats.log_format import LogFormat
from ragworth.formats.search_hits import CHROMA, LISTS, METRIC_KEYS, chroma_hits, find_hits, is_chroma
from ragworth.formats.tool_rows import ToolRow, find_field, tool_parser
from ragworth.formats.values import WrongLineError

RESULTS = "results"
NAMES = FIELDS | {"passages": (RESULTS,), "passage_ids": ("result_ids",)}
QUERY_IDS = ("query_id", "qid", "question_id", "topic_id")
"""Names of ids of questions; a plain ``id`` may be that of the response."""
QUESTIONS = ("query_texts", "queries", "questions", *FIELDS["question"])


def _recognise(sample: FileSample) -> bool:
    """A file with passages, or a response, under a usual name of passages is a log of another kind."""
    found = next(((row, names) for row in sample.rows if (names := _find_responses(row))), None)
    if found is None:
        return False
    row, names = found
    passages = {name for name in row if plain_name(name) in FIELDS["passages"]}
    listed = any(isinstance(row[name], list | str) for name in passages) and not is_chroma(row)
    return names[0] not in passages and not listed


def _find_responses(row: Mapping[str, Any], *, empty: bool = False) -> list[str]:
    """The names of the fields with responses, which may be ``empty``; no name if the row itself is one."""
    if is_chroma(row) or find_hits(row, empty=empty) is not None:
        return [""]
    return [name for name, each in row.items() if is_chroma(each) or find_hits(each, empty=empty) is not None]


def _read(row: Mapping[str, Any], place: int, finder: FieldFinder) -> Iterator[ToolRow]:
    if "passages" in finder.columns:
        yield ToolRow(place, dict(row))
        return
    names = _find_responses(row) or _find_responses(row, empty=True)
    if not names:
        raise WrongLineError("no hits of a vector store or search engine")
    if len(names) > 1:
        raise WrongLineError(f"several responses, in {format_names(names)}; write one in each row, and its 'system'")
    (name,) = names
    response = row[name] if name else row
    if name and isinstance(response, Mapping):  # the metric may stand beside it
        response = {key: row[key] for key in METRIC_KEYS if key in row} | dict(response)
    answered = chroma_hits(response) if is_chroma(response) else [find_hits(response, empty=True)]
    found = find_field(row, "question", QUESTIONS)
    questions = found if isinstance(found, list) else [found]
    named = "question" in finder.columns or find_field(row, "query", QUERY_IDS) is not None
    if found is None and not named and len(answered) == 1:
        raise WrongLineError("hits without a question; write its text in 'query', or its id in 'query_id'")
    if len(questions) != len(answered) or (found is None and not named):
        count = len(questions) if found is not None else 0
        raise WrongLineError(f"hits for {len(answered)} and texts of {count} queries; write the texts in 'query_texts'")
    parts = {name} if name else {*CHROMA, *LISTS}
    others = {key: each for key, each in row.items() if key not in parts} if len(answered) == 1 else {}
    for question, hits in zip(questions, answered, strict=True):
        asked = {} if question is None else {"question": question}
        yield ToolRow(place, {**others, **asked, RESULTS: hits})


FORMAT = LogFormat(
    name="search-results",
    title="responses of a vector store or search engine",
    expected='{"query": …, "results": RESPONSE}, or {"query_texts": […], "ids": [[…]], "documents": [[…]]}',
    names=NAMES,
    recognise=_recognise,
    parse=tool_parser(_read),
).format()
