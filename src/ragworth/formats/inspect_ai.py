"""Read inspect_ai's logs in JSON. The system is the model; scores of a sample are outcomes.

Passages are read from a sample's metadata, under the usual names. A log with the extension ``.eval`` is a ZIP file:
``inspect log convert LOG.eval --to json --output-dir FOLDER`` makes JSON of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragworth.core.errors import quote_short
from ragworth.data.definitions import TRUNCATED
from ragworth.formats.contract import FileSample
from ragworth.formats.grades import Grade
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject
from ragworth.formats.logs.fields import FIELDS, FieldFinder
from ragworth.formats.logs.messages import find_answer, find_question
from ragworth.formats.logs.passages import as_passages
from ragworth.formats.logs.records import LogRecord
from ragworth.formats.logs.rows import read_relevant, without_blank
from ragworth.formats.logs.values import as_grade, as_repeat, as_row, as_texts
from ragworth.formats.values import WrongLineError, as_dict, as_id

NAMES = {name: FIELDS[name] for name in ("passages", "passage_ids", "relevant", "relevant_ids", "system")}
LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Values of inspect_ai's grades, as its accuracy counts them: correct, partially correct, incorrect, no answer."""


def _recognise(sample: FileSample) -> bool:
    log = sample.document
    return isinstance(log, dict) and isinstance(log.get("eval"), dict) and "task" in log["eval"]


def _unpack(value: Mapping[str, Any]) -> Iterable[Any] | None:
    log = as_row(value.get("eval"))
    samples = value.get("samples")
    if log is None:
        return None
    facts = {**log, "status": value.get("status"), "read": len(samples) if isinstance(samples, list) else 0}
    return [(facts, sample) for sample in samples] if isinstance(samples, list) else []


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    for place, value in rows.values:
        try:
            if not isinstance(value, tuple):
                raise WrongLineError("this is not a log of inspect_ai: it has no 'eval'")
            log, sample = value
            if place == 1 and log["status"] not in (None, "success"):
                count = f"{log['read']:,} of {total:,} samples" if (total := _count_samples(log)) else "some samples"
                finder.notes.append(
                    f"the run ended with status {quote_short(log['status'], 24)}; {count} are in the log"
                )
            yield _read(log, as_dict(as_row(sample), "a sample"), finder, place)
        except WrongLineError as error:
            reject(place, str(error))


def _count_samples(log: Mapping[str, Any]) -> int | None:
    """How many samples a complete log would have."""
    samples, epochs = (as_row(log.get("dataset")) or {}).get("samples"), (as_row(log.get("config")) or {}).get("epochs")
    return samples * (epochs if isinstance(epochs, int) else 1) if isinstance(samples, int) else None


def _read(log: Mapping[str, Any], sample: Mapping[str, Any], finder: FieldFinder, place: int) -> LogRecord:
    facts = {**(as_row(log.get("metadata")) or {}), **(as_row(sample.get("metadata")) or {})}
    question = find_question(sample.get("input"))
    if question is None:
        raise WrongLineError(f"sample {quote_short(sample.get('id'), 24)} has no input")
    system = finder.get(facts, "system") or log.get("model") or "model"
    answer, status = _read_output(sample)
    return LogRecord(
        place=place,
        query=as_id(sample.get("id"), "id"),
        question=question,
        system=as_id(system, "model"),
        repeat=max(as_repeat(sample.get("epoch")) - 1, 0),  # epochs count from 1
        passages=without_blank(as_passages(finder.get(facts, "passages")), finder),
        answer=answer,
        status=status,
        accepted=[text for text in as_texts(sample.get("target"), "target") if text],
        relevant=read_relevant(facts, finder),
        outcomes=_read_scores(sample.get("scores")),
    )


def _read_output(sample: Mapping[str, Any]) -> tuple[str | None, str]:
    """The answer, and why there is none."""
    output = as_row(sample.get("output")) or {}
    choices = output.get("choices")
    first = as_row(choices[0]) if isinstance(choices, list) and choices else None
    if sample.get("error"):
        return None, "error"
    answer = find_answer(first.get("message")) if first else find_answer(output.get("completion"))
    cut = first is not None and first.get("stop_reason") == "max_tokens"
    return answer, TRUNCATED if cut and answer is not None else ""


def _read_scores(scores: Any) -> dict[str, Grade]:
    grades: dict[str, Grade] = {}
    for name, score in (as_row(scores) or {}).items():
        value = as_dict(score, f"the score {name}").get("value")
        for part, each in value.items() if isinstance(value, Mapping) else [("", value)]:
            if not isinstance(each, list):
                grade = LETTERS.get(each) if isinstance(each, str) and each in LETTERS else as_grade(each, str(name))
                grades[f"{name}/{part}" if part else str(name)] = grade
    return grades


FORMAT = LogFormat(
    name="inspect_ai",
    title="a log of inspect_ai",
    expected='{"eval": {"task": …, "model": …}, "samples": [{"id": …, "input": …, "target": …, "output": …}]}',
    names=NAMES,
    recognise=_recognise,
    unpack=_unpack,
    parse=_parse,
).format()
