"""Read ragas datasets and results: JSON, JSON lines, CSV or Parquet, with the names of today and of 0.1.

Numbers beside the fields of a sample are scores of ragas' metrics, and become outcomes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ragworth.formats.contract import FileSample
from ragworth.formats.grades import direction_of_name
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject, parse_rows
from ragworth.formats.logs.fields import FIELDS, GRADE_FIELDS, FieldFinder, plain_name
from ragworth.formats.logs.records import LoggedPassage, LogRecord
from ragworth.formats.logs.values import as_grade
from ragworth.formats.values import WrongLineError

NAMES = {
    "query": ("query_id", "sample_id", "id"),
    "question": ("user_input", "question"),
    "system": ("system", "pipeline", "configuration", "run_id", "experiment_name"),
    "passages": ("retrieved_contexts", "contexts"),
    "passage_ids": ("retrieved_context_ids",),
    "answer": ("response", "answer"),
    "accepted": ("reference", "ground_truth", "ground_truths", *FIELDS["accepted"]),
    "relevant": ("reference_contexts",),
    "relevant_ids": ("reference_context_ids",),
}
HOP = re.compile(r"\A<\d+-hop>\s*")
KNOWN = {name for names in GRADE_FIELDS.values() for name in names}


def _recognise(sample: FileSample) -> bool:
    if sample.has("user_input"):
        return sample.has_any("retrieved_contexts", "response", "reference", "reference_contexts")
    if sample.has_any("predicted_answer", "predicted_answers"):
        return False  # then "answer" is the right one
    return sample.has("question", "contexts") and sample.has_any("answer", "ground_truth", "ground_truths")


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Rows as they are; the question of a conversation is its last message."""

    def prepared() -> Iterator[tuple[int, object]]:
        for place, row in rows.values:
            if isinstance(row, dict):
                if isinstance(row.get("user_input"), list):
                    reject(place, "a conversation (user_input is a list of messages); only single questions are read")
                    continue
                mapped = finder.columns.values()
                scores = [name for name, value in row.items() if name not in mapped and _is_score(name, value)]
                finder.grades |= {name: name for name in scores if name not in finder.grades}
            yield place, row

    for record in parse_rows(rows._replace(values=prepared()), finder, reject):
        yield replace(record, relevant=[_without_hop(each) for each in record.relevant])


def _without_hop(passage: LoggedPassage) -> LoggedPassage:
    """The passage as it was in the corpus: the writer of multi-hop questions puts ``<1-hop>`` in front."""
    return passage if passage.text is None else passage._replace(text=HOP.sub("", passage.text))


def _is_score(name: str, value: object) -> bool:
    if plain_name(name) in KNOWN or not direction_of_name(name) or isinstance(value, bool):
        return False
    try:
        return isinstance(as_grade(value, name), float | int)
    except WrongLineError:
        return False


FORMAT = LogFormat(
    name="ragas",
    title="a ragas dataset",
    expected="user_input, retrieved_contexts, response, reference (or question, contexts, answer, ground_truth)",
    names=NAMES,
    recognise=_recognise,
    parse=_parse,
).format()
