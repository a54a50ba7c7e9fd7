"""Make records of traces: what a retriever returned and a model answered, from the steps of each request.

The question and the answer are the input and output of the outermost step, or of the retriever and the last model if
that has none. Passages are those of the re-rankers, if there are any, otherwise of all outermost retrievers. If these
searched for different things, each is a hop. The same question asked again is a repeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ragworth.core.errors import format_count, quote_short
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import Parser, Reject, parse_rows
from ragworth.formats.logs.fields import FIELDS, FieldFinder
from ragworth.formats.logs.messages import find_answer, find_question, find_references
from ragworth.formats.logs.missing_answers import ERROR
from ragworth.formats.logs.passages import as_passages
from ragworth.formats.logs.records import LoggedPassage, LogRecord
from ragworth.formats.logs.rows import mapped_grades, without_blank
from ragworth.formats.logs.values import as_row, parse_cell
from ragworth.formats.values import WrongLineError, as_text


class TraceStep(NamedTuple):
    """A span of a trace, or an observation."""

    place: int
    trace: str
    id: str
    parent: str | None
    kind: str
    input: Any = None
    output: Any = None
    documents: Any = None
    system: str | None = None
    grades: Mapping[str, Any] = {}
    accepted: Any = None
    failed: bool = False
    """Whether it ended in an error. If the outermost step did, there is no answer, and nothing to grade."""


def trace_parser(read: Callable[[Mapping[str, Any], int, FieldFinder], list[TraceStep]]) -> Parser:
    """A parser of rows with a whole trace in each; ``read`` returns its steps, of which the first has the question.

    A trace that occurs again, as in the results of several evaluations, is one of its own. Grades may be in columns
    that the user maps.
    """

    def parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
        def steps() -> Iterator[TraceStep]:
            seen: set[str] = set()
            for place, value in rows.values:
                row = as_row(value)
                if row is None:
                    reject(place, "not an object")
                    continue
                try:
                    cells = {name: parse_cell(cell, name) for name, cell in row.items()} if rows.cells else row
                    first, *others = read(cells, place, finder)
                    mapped = mapped_grades(cells, finder)
                except WrongLineError as error:
                    reject(place, str(error))
                    continue
                name = first.trace if first.trace not in seen else f"{first.trace}, row {place}"
                seen.add(name)
                first = first._replace(grades={**first.grades, **mapped})
                yield from (step._replace(trace=name) for step in (first, *others))

        yield from trace_records(steps(), finder, reject)

    return unless_mapped(parse)


def unless_mapped(parse: Parser) -> Parser:
    """A parser of traces, except that each row is a record if the user's mapping says where its fields are."""

    def parse_either(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
        return (parse_rows if set(finder.columns) & set(FIELDS) else parse)(rows, finder, reject)

    return parse_either


def trace_records(steps: Iterable[TraceStep], finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Make a record of each trace."""
    traces: dict[str, list[TraceStep]] = {}
    for step in steps:
        traces.setdefault(step.trace, []).append(step)
    several = len({step.system for each in traces.values() for step in each if step.system}) > 1
    asked: Counter[tuple[str | None, str]] = Counter()
    for trace, each in traces.items():
        try:
            record = _read_trace(trace, each, finder, several)
        except WrongLineError as error:
            reject(each[0].place, str(error))
            continue
        key = record.system, record.question or ""
        yield record if not asked[key] else _again(record, asked[key])
        asked[key] += 1


def _again(record: LogRecord, number: int) -> LogRecord:
    return LogRecord(**{name: getattr(record, name) for name in record.__slots__} | {"repeat": number})


def _read_trace(trace: str, steps: list[TraceStep], finder: FieldFinder, several: bool) -> LogRecord:
    known = {step.id: step for step in steps}
    roots = [step for step in steps if step.parent is None or step.parent not in known]
    retrievers = _outermost([step for step in steps if step.kind in ("RETRIEVER", "RERANKER")], known)
    rerankers = [step for step in steps if step.kind == "RERANKER" and step.documents is not None]
    models = [step for step in steps if step.kind == "LLM"]
    question = next((text for step in [*roots, *retrievers, *models] if (text := find_question(step.input))), None)
    if question is None:
        count = format_count(len(steps), "step")
        raise WrongLineError(f"the trace {quote_short(trace, 24)} ({count}) has no question: no step has an input")
    failed = any(step.failed for step in roots)
    answers = (
        find_answer(step.output) for step in [*roots, *reversed(models)] if step not in retrievers and not failed
    )
    passages: list[LoggedPassage] | None = None
    searches = [find_question(step.input) for step in retrievers] if not rerankers else []
    hopping = len({text.strip() for text in searches if text and text.strip()}) > 1
    for hop, step in enumerate(rerankers or retrievers, 1):
        found = as_passages(step.documents) or []
        if hopping:
            found = [each._replace(hop=hop, search=searches[hop - 1]) for each in found or [LoggedPassage(None)]]
        passages = (passages or []) + found
    grades = {name: value for step in steps for name, value in step.grades.items() if not failed}
    return LogRecord(
        place=steps[0].place,
        question=as_text(question, "question"),
        system=next((step.system for step in steps if step.system), None) if several else None,
        passages=without_blank(passages, finder),
        answer=next((answer for answer in answers if answer is not None), None),
        status=ERROR if failed else "",
        accepted=[text for step in roots for text in find_references(step.accepted)],
        outcomes=grades,
        trace=trace,
    )


def _outermost(steps: list[TraceStep], known: Mapping[str, TraceStep]) -> list[TraceStep]:
    """Steps that are not part of another of these."""
    ids = {step.id for step in steps}

    def inside(step: TraceStep) -> bool:
        seen = {step.id}
        parent = step.parent
        while parent is not None and parent in known and parent not in seen:
            if parent in ids:
                return True
            seen.add(parent)
            parent = known[parent].parent
        return False

    return [step for step in steps if not inside(step)]


def find_documents(output: Any) -> Any:
    """The passages in an output: a list under a usual name."""
    found = (
        FieldFinder({"passages": FIELDS["passages"]}).get(output, "passages") if isinstance(output, Mapping) else None
    )
    return found if isinstance(found, list) else None
