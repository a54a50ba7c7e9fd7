"""Make records of traces: what a retriever returned and a model answered, from the steps of each request.

The question and the answer are the input and output of the outermost step, or of the retriever and the last model if
that has none. Passages are those of the re-rankers, if there are any, otherwise of all outermost retrievers. If these
searched for different things, each is a hop. The same question asked again is a repeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ragworth.core.errors import format_count, quote_short
from ragworth.formats.grades import Grade
from ragworth.formats.logs.engine import LogSpec, Reject
from ragworth.formats.logs.fields import FieldFinder, Names
from ragworth.formats.logs.names import FIELDS
from ragworth.formats.logs.passages import LoggedPassage, as_passages
from ragworth.formats.logs.paths import find, find_answer, find_question, find_references, parse_paths
from ragworth.formats.logs.records import LogRecord, without_blank
from ragworth.formats.logs.rows import LogRows
from ragworth.formats.logs.tables import ERROR
from ragworth.formats.logs.values import (
    as_answer,
    as_grade,
    as_grades,
    as_row,
    as_texts,
    is_given,
    parse_cell,
    parse_if_json,
)
from ragworth.formats.values import WrongLineError, as_dict, as_list, as_text

MODELS = ("LLM", "CHAT_MODEL", "GENERATION", "CHAT", "TEXT_COMPLETION", "GENERATE_CONTENT")
KINDS = {"RETRIEVER": "RETRIEVER", "RETRIEVAL": "RETRIEVER", "RERANKER": "RERANKER", **dict.fromkeys(MODELS, "LLM")}
"""Kinds of steps that matter, by what tools call them."""

SEARCHES = ("RETRIEVER", "RERANKER")
FAILED = ("ERROR", "STATUS_CODE_ERROR")

NO_SEARCH = (
    "no step is a retriever, so nothing says which passages were shown; if fields of a row do, map all of its fields, "
    "such as --map question=input --map answer=output.answer --map passages=output.documents"
)

Span = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class TraceSpec(LogSpec):
    """Where traces of a tool have what matters, as paths.

    Attributes
    ----------
    inside: where a span has those inside it. They are of its trace, and it is their parent if they don't name another.
    retrieved: passages of retrievers and re-rankers.
    shown: passages in the outermost step, which count if no step of the trace is a retriever.
    spans: the outermost spans of a row.
    grades: names and values of the grades in a span.
    ids: whether a span must have an id, and one of its trace. Otherwise each row may be a trace of its own.
    whole: whether a row is a whole trace. A trace that occurs again is then one of its own, as in several evaluations.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    trace: str
    id: str
    parent: str = ""
    inside: str = ""
    kind: str
    input: str
    output: str
    retrieved: str
    shown: str = ""
    system: str = ""
    accepted: str = ""
    failed: str = ""
    spans: Callable[[Span], Iterable[Span]] = lambda row: [row]
    grades: Callable[[Span], Iterable[tuple[Any, Any]]] = lambda span: ()
    ids: bool = True
    whole: bool = False

    @property
    def names(self) -> Names:
        """No usual names: if the user's mapping says where fields of a row are, the others aren't guessed."""
        return {}

    def parse(self, rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
        """Make a record of each trace, or of each row if the user's mapping says where its fields are."""
        if FIELDS.keys() & finder.mapped.keys():
            return super().parse(rows, finder, reject)
        return _parse(self, rows, finder, reject)


class TraceStep(NamedTuple):
    """A span, and where it is in its trace. The first one of a row has the grades that the user ``mapped``."""

    place: int
    trace: str
    id: str
    parent: str | None
    kind: str
    span: Span
    mapped: Mapping[str, list[Grade]] = {}


def list_objects(value: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects in a list, which may be JSON. A list of ids has none."""
    items = as_list(parse_if_json(value or []), name)
    return [] if all(isinstance(each, str) for each in items) else [as_dict(each, f"one of {name}") for each in items]


def _values_at(span: Span, paths: str) -> Iterator[Any]:
    """Yield the values at the paths, without those that say nothing. An empty list says that there is nothing."""
    for path in parse_paths(paths):
        value = path.get(span)
        if is_given(value) and value not in ("", {}):
            yield parse_if_json(value)


def _parse(spec: TraceSpec, rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Make a record of each trace. Several systems keep their names; a single one is named after the file."""
    traces = _read_traces(spec, rows, finder, reject)
    systems = [next((find(step.span, spec.system) for step in steps if spec.system), None) for steps in traces.values()]
    several = len({system for system in systems if system}) > 1
    asked: Counter[tuple[str, str | None]] = Counter()
    shown = not traces
    for steps, system in zip(traces.values(), systems, strict=True):
        try:
            record = _read_trace(spec, steps, finder)
        except WrongLineError as error:
            reject(steps[0].place, str(error))
            continue
        record.system = as_text(str(system), "system") if several and system else ""
        record.repeat = asked[record.system, record.question]
        asked[record.system, record.question] += 1
        shown |= record.passages is not None
        yield record
    finder.notes += [] if shown else [NO_SEARCH]


def _read_traces(spec: TraceSpec, rows: LogRows, finder: FieldFinder, reject: Reject) -> dict[str, list[TraceStep]]:
    """Read the steps of all rows, by the names of their traces."""
    traces: dict[str, list[TraceStep]] = {}
    for place, value in rows.values:
        steps: list[TraceStep] = []
        try:
            if (row := as_row(value)) is None:
                raise WrongLineError("not an object")
            row = {name: parse_cell(cell, name) for name, cell in row.items()} if rows.cells else row
            for span in spec.spans(row):
                _add_steps(spec, span, place, steps)
            mapped = {name: as_grades(finder.get(row, name), name) for name in finder.mapped}
        except WrongLineError as error:
            reject(place, str(error))
            continue
        if steps and any(grade != [None] for grade in mapped.values()):
            steps[0] = steps[0]._replace(mapped=mapped)
        if spec.whole and any(step.trace in traces for step in steps):
            steps = [step._replace(trace=f"{step.trace}, row {place}") for step in steps]
        for step in steps:
            traces.setdefault(step.trace, []).append(step)
    return traces


def _add_steps(spec: TraceSpec, span: Span, place: int, steps: list[TraceStep], outer: TraceStep | None = None) -> None:
    """Add a span, and those inside it."""
    name, parent = find(span, spec.id), find(span, spec.parent) or None
    trace = outer.trace if outer else find(span, spec.trace) or None
    if outer is None and spec.ids and (trace is None or name is None):
        raise WrongLineError("a span has no trace id or no span id")
    trace = str(f"row {place}" if trace is None else trace)
    name = f"{trace}/{len(steps)}" if name is None else str(name)
    parent = (outer.id if outer else None) if parent is None else str(parent)
    words = (str(parse_if_json(path.get(span))).upper() for path in parse_paths(spec.kind))
    step = TraceStep(place, trace, name, parent, next((KINDS[word] for word in words if word in KINDS), ""), span)
    steps.append(step)
    for each in list_objects(find(span, spec.inside), spec.inside) if spec.inside else ():
        _add_steps(spec, each, place, steps, step)


def _read_trace(spec: TraceSpec, steps: list[TraceStep], finder: FieldFinder) -> LogRecord:
    by_id = {step.id: step for step in steps}
    parents = {step.parent for step in steps}  # a step with others inside is the request, rather than a stray one
    roots = sorted((step for step in steps if step.parent not in by_id), key=lambda step: step.id not in parents)
    searches = {step.id: step for step in steps if step.kind in SEARCHES}
    outermost = [step for step in searches.values() if not searches.keys() & {*_ancestors(step, by_id)}]
    models = [step for step in steps if step.kind == "LLM"]
    questions = (_find_question(spec, step) for step in (*roots, *outermost, *models))
    question = next((text for text in questions if text), None)
    if question is None:
        name, count = quote_short(steps[0].trace, 24), format_count(len(steps), "step")
        raise WrongLineError(f"the trace {name} ({count}) has no question: no step has an input")
    failed = any(str(find(step.span, spec.failed)) in FAILED for step in roots if spec.failed)
    answering = [step for step in (*roots, *reversed(models)) if step.kind not in SEARCHES and not failed]
    answers = (find_answer(value) for step in answering for value in _values_at(step.span, spec.output))
    return LogRecord(
        place=steps[0].place,
        question=as_text(question, "question"),
        passages=without_blank(_find_passages(spec, steps, outermost or roots), finder),
        answer=as_answer(next((answer for answer in answers if answer is not None), None)),
        status=ERROR if failed else "",
        accepted=as_texts([text for step in roots for text in _find_references(spec, step)]),
        outcomes={} if failed else _find_grades(spec, steps),
        trace=as_text(steps[0].trace, "trace"),
    )


def _ancestors(step: TraceStep, by_id: Mapping[str, TraceStep]) -> Iterator[str]:
    seen = {step.id}
    while step.parent is not None and step.parent in by_id and step.parent not in seen:
        seen.add(step.parent)
        yield step.parent
        step = by_id[step.parent]


def _find_question(spec: TraceSpec, step: TraceStep) -> str | None:
    return next((text for each in _values_at(step.span, spec.input) if (text := find_question(each))), None)


def _find_references(spec: TraceSpec, step: TraceStep) -> list[str]:
    return next((texts for each in _values_at(step.span, spec.accepted) if (texts := find_references(each))), [])


def _find_grades(spec: TraceSpec, steps: list[TraceStep]) -> dict[str, list[Grade]]:
    """Return grades by name, those that the user maps under the user's name."""
    grades: dict[str, list[Grade]] = {}
    for step in steps:
        own: dict[str, list[Grade]] = {}
        for name, value in spec.grades(step.span):
            own.setdefault(as_text(name, "name of a grade"), []).append(as_grade(value, str(name)))
        grades |= own | dict(step.mapped)
    return grades


def _find_passages(
    spec: TraceSpec, steps: Sequence[TraceStep], searches: Sequence[TraceStep]
) -> list[LoggedPassage] | None:
    """Return the passages of the re-rankers, or of all searches; None if no step says which they are."""
    reranked = [
        (step, documents)
        for step in steps
        if step.kind == "RERANKER" and (documents := _find_documents(spec, step)) is not None
    ]
    sources = reranked or [(step, _find_documents(spec, step)) for step in searches]
    if all(documents is None for _, documents in sources):
        return None
    queries = [] if reranked or len(sources) == 1 else [_find_question(spec, step) for step, _ in sources]
    passages = [as_passages(documents or []) or [] for _, documents in sources]
    if len({text.strip() for text in queries if text}) < 2:
        return [each for own in passages for each in own]
    hops = enumerate(zip(passages, queries, strict=True), 1)
    return [
        each._replace(hop=hop, search=search) for hop, (own, search) in hops for each in own or [LoggedPassage(None)]
    ]


def _find_documents(spec: TraceSpec, step: TraceStep) -> Any:
    """Return the passages that a search returned, or that another step shows; None if the step doesn't say it."""
    if step.kind not in SEARCHES:
        return next(_values_at(step.span, spec.shown), None)
    values = list(_values_at(step.span, spec.retrieved))
    lists = [each for each in values if isinstance(each, list)]
    if values and not lists:
        kind, name = step.kind.lower(), quote_short(step.id, 24)
        raise WrongLineError(f"the {kind} {name} returned {quote_short(values[-1], 40)}, not a list of passages")
    return lists[0] if lists else None
