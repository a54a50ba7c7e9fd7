"""Make records of traces: what a retriever returned and a model answered, from the steps of each request.

The question and the answer are the input and output of the outermost step, or of the retriever and the last model if
that has none. Passages are those of the re-rankers, if there are any, otherwise of all outermost retrievers. If these
searched for different things, each is a hop. The same question asked again is a repeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ragworth.core.errors import format_count, quote_short
from ragworth.formats.logs.collector import ERROR
from ragworth.formats.logs.engine import LogSpec, Reject
from ragworth.formats.logs.fields import FieldFinder, Names
from ragworth.formats.logs.files import LogRows
from ragworth.formats.logs.names import FIELDS
from ragworth.formats.logs.passages import as_passages
from ragworth.formats.logs.paths import find_answer, find_question, find_references, parse_if_json, parse_paths
from ragworth.formats.logs.records import LoggedPassage, LogRecord
from ragworth.formats.logs.rows import mapped_grades, without_blank
from ragworth.formats.logs.values import as_grade, as_row, is_given, parse_cell
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
        return (
            super().parse(rows, finder, reject)
            if set(finder.columns) & {*FIELDS}
            else _parse(self, rows, finder, reject)
        )


class TraceStep(NamedTuple):
    """A span, and where it is in its trace. The first one of a row has the grades that the user ``mapped``."""

    place: int
    trace: str
    id: str
    parent: str | None
    kind: str
    span: Span
    mapped: Mapping[str, Any] = {}


def values_at(span: Span, paths: str) -> Iterator[Any]:
    """Return the values at the paths, without those that say nothing. An empty list says that there is nothing."""
    for path in parse_paths(paths):
        value = path.get(span)
        if is_given(value) and value not in ("", {}):
            yield parse_if_json(value)


def value_at(span: Span, paths: str) -> Any:
    """Return the first of these, or None."""
    return next(values_at(span, paths), None)


def list_objects(value: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects in a list, which may be JSON. A list of ids has none."""
    items = as_list(parse_if_json(value or []), name)
    return [] if all(isinstance(each, str) for each in items) else [as_dict(each, f"one of {name}") for each in items]


def _parse(spec: TraceSpec, rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Make a record of each trace."""
    traces = _read_traces(spec, rows, finder, reject)
    systems = [_find_system(spec, steps) for steps in traces.values()]
    several = len(set(systems) - {None}) > 1
    asked: Counter[tuple[str | None, str]] = Counter()
    shown = not traces
    for steps, system in zip(traces.values(), systems, strict=True):
        try:
            record = _read_trace(spec, steps, system if several else None, finder)
        except WrongLineError as error:
            reject(steps[0].place, str(error))
            continue
        key = record.system, record.question or ""
        yield replace(record, repeat=asked[key]) if asked[key] else record
        asked[key] += 1
        shown |= record.passages is not None
    finder.notes += [] if shown else [NO_SEARCH]


def _find_system(spec: TraceSpec, steps: list[TraceStep]) -> str | None:
    return next((str(system) for step in steps if (system := value_at(step.span, spec.system))), None)


def _read_traces(spec: TraceSpec, rows: LogRows, finder: FieldFinder, reject: Reject) -> dict[str, list[TraceStep]]:
    """Read the steps of all rows, by the names of their traces."""
    traces: dict[str, list[TraceStep]] = {}
    for place, value in rows.values:
        try:
            row = as_row(value)
            if row is None:
                raise WrongLineError("not an object")
            cells = {name: parse_cell(cell, name) for name, cell in row.items()} if rows.cells else row
            steps = [step for span in spec.spans(cells) for step in _read_span(spec, span, place)]
            mapped = mapped_grades(cells, finder)
        except WrongLineError as error:
            reject(place, str(error))
            continue
        again = spec.whole and any(step.trace in traces for step in steps)
        for number, step in enumerate(steps):
            trace = f"{step.trace}, row {place}" if again else step.trace
            own = step._replace(trace=trace, mapped=mapped if number == 0 else {})
            traces.setdefault(trace, []).append(own)
    return traces


def _read_span(
    spec: TraceSpec, span: Span, place: int, outer: TraceStep | None = None, number: int = 0
) -> Iterator[TraceStep]:
    """Read a span, and those inside it."""
    trace, name, parent = (value_at(span, paths) for paths in (spec.trace, spec.id, spec.parent))
    if outer is None and spec.ids and (trace is None or name is None):
        raise WrongLineError("a span has no trace id or no span id")
    trace = outer.trace if outer else str(f"row {place}" if trace is None else trace)
    name = (f"{outer.id}/{number}" if outer else trace) if name is None else str(name)
    parent = (outer.id if outer else None) if parent is None else str(parent)
    kind = next((KINDS[word] for each in values_at(span, spec.kind) if (word := str(each).upper()) in KINDS), "")
    step = TraceStep(place, trace, name, parent, kind, span)
    yield step
    for index, each in enumerate(list_objects(value_at(span, spec.inside), spec.inside)):
        yield from _read_span(spec, each, place, step, index)


def _read_trace(spec: TraceSpec, steps: list[TraceStep], system: str | None, finder: FieldFinder) -> LogRecord:
    by_id = {step.id: step for step in steps}
    parents = {step.parent for step in steps}  # a step with others inside is the request, rather than a stray one
    roots = sorted((step for step in steps if step.parent not in by_id), key=lambda step: step.id not in parents)
    searches = [step for step in steps if step.kind in SEARCHES]
    searches = [step for step in searches if not {each.id for each in searches} & {*_ancestors(step, by_id)}]
    models = [step for step in steps if step.kind == "LLM"]
    question = next((text for step in [*roots, *searches, *models] if (text := _find_question(spec, step))), None)
    if question is None:
        name, count = quote_short(steps[0].trace, 24), format_count(len(steps), "step")
        raise WrongLineError(f"the trace {name} ({count}) has no question: no step has an input")
    failed = any(str(value_at(step.span, spec.failed)) in FAILED for step in roots)
    answering = [step for step in [*roots, *reversed(models)] if step not in searches and not failed]
    answers = (find_answer(value) for step in answering for value in values_at(step.span, spec.output))
    return LogRecord(
        place=steps[0].place,
        question=as_text(question, "question"),
        system=system,
        passages=without_blank(_find_passages(spec, steps, searches or roots), finder),
        answer=next((answer for answer in answers if answer is not None), None),
        status=ERROR if failed else "",
        accepted=[text for step in roots for text in _find_references(spec, step)],
        outcomes={} if failed else _find_grades(spec, steps),
        trace=steps[0].trace,
    )


def _ancestors(step: TraceStep, by_id: Mapping[str, TraceStep]) -> Iterator[str]:
    seen = {step.id}
    while step.parent is not None and step.parent in by_id and step.parent not in seen:
        seen.add(step.parent)
        yield step.parent
        step = by_id[step.parent]


def _find_question(spec: TraceSpec, step: TraceStep) -> str | None:
    return next((text for each in values_at(step.span, spec.input) if (text := find_question(each))), None)


def _find_references(spec: TraceSpec, step: TraceStep) -> list[str]:
    return next((texts for each in values_at(step.span, spec.accepted) if (texts := find_references(each))), [])


def _find_grades(spec: TraceSpec, steps: list[TraceStep]) -> dict[str, Any]:
    """Grades by name, those that the user maps under the user's name."""
    grades: dict[str, Any] = {}
    for step in steps:
        own: dict[str, list[Any]] = {}
        for name, value in spec.grades(step.span):
            own.setdefault(as_text(name, "name of a grade"), []).append(as_grade(value, str(name)))
        grades |= own | dict(step.mapped)
    return grades


def _find_passages(spec: TraceSpec, steps: list[TraceStep], searches: list[TraceStep]) -> list[LoggedPassage] | None:
    """The passages of the re-rankers, or of all searches; None if no step says which they are."""
    reranked = [step for step in steps if step.kind == "RERANKER" and _find_documents(spec, step) is not None]
    sources = [(step, _find_documents(spec, step)) for step in reranked or searches]
    asked = [_find_question(spec, step) for step, _ in sources]
    hopping = not reranked and len({text.strip() for text in asked if text}) > 1
    passages: list[LoggedPassage] = []
    for hop, (search, (_, documents)) in enumerate(zip(asked, sources, strict=True), 1):
        own = as_passages(documents or []) or []
        if hopping:
            own = [each._replace(hop=hop, search=search) for each in own or [LoggedPassage(None)]]
        passages += own
    return passages if any(documents is not None for _, documents in sources) else None


def _find_documents(spec: TraceSpec, step: TraceStep) -> Any:
    """The passages that a search returned, or that another step shows; None if the step doesn't say it."""
    if step.kind not in SEARCHES:
        return value_at(step.span, spec.shown)
    values = list(values_at(step.span, spec.retrieved))
    lists = [each for each in values if isinstance(each, list)]
    if values and not lists:
        what = f"the {step.kind.lower()} {quote_short(step.id, 24)} returned {quote_short(values[-1], 40)}"
        raise WrongLineError(f"{what}, not a list of passages")
    return lists[0] if lists else None
