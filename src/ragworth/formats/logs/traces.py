"""Make records of traces: what a retriever returned and a model answered, from the steps of each request.

The question and the answer are the input and output of the outermost step, or of the retriever and the last model if
that has none. Passages are those of the re-rankers, if there are any, otherwise of all outermost retrievers. If these
searched for different things, each is a hop. The same question asked again is a repeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from ragworth.core.errors import format_count, quote_short
from ragworth.formats.contract import Format, Head
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.document_rows import split_rows
from ragworth.formats.logs.engine import LogFormat, Reject, parse_rows
from ragworth.formats.logs.fields import FIELDS, FieldFinder
from ragworth.formats.logs.messages import find_answer, find_question, find_references, parse_if_json
from ragworth.formats.logs.missing_answers import ERROR
from ragworth.formats.logs.passages import as_passages
from ragworth.formats.logs.paths import find, parse_paths
from ragworth.formats.logs.records import LoggedPassage, LogRecord
from ragworth.formats.logs.rows import mapped_grades, without_blank
from ragworth.formats.logs.values import as_grade, as_row, is_given, parse_cell
from ragworth.formats.values import WrongLineError, as_dict, as_list, as_text, objects

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
class TraceSpec:
    """Traces of a tool, as data. All texts but the first three are paths of :mod:`ragworth.formats.logs.paths`.

    Attributes
    ----------
    signs: what a row has, as alternatives of names; ``a|b`` is either, ``!a`` must not be there, ``a.*`` is a pattern.
    rows: where a document has its rows, if it isn't one itself.
    inside: where a span has those inside it. They are of its trace, and it is their parent if they don't name another.
    documents: passages of retrievers and re-rankers.
    shown: passages in the outermost step, which count if no step of the trace is a retriever.
    spans: the outermost spans of a row.
    grades: names and values of the grades in a span.
    ids: whether a span must have an id, and one of its trace. Otherwise each row may be a trace of its own.
    whole: whether a row is a whole trace. A trace that occurs again is then one of its own, as in several evaluations.
    unread: where something is that is left out, and the note about it if there is no accepted answer.
    """

    name: str
    title: str
    expected: str
    signs: tuple[str, ...]
    rows: str = ""
    trace: str
    id: str
    parent: str = ""
    inside: str = ""
    kind: str
    input: str
    output: str
    documents: str
    shown: str = ""
    system: str = ""
    accepted: str = ""
    failed: str = ""
    spans: Callable[[Span], Iterable[Span]] = lambda row: [row]
    grades: Callable[[Span], Iterable[tuple[Any, Any]]] = lambda span: ()
    ids: bool = True
    whole: bool = False
    unread: tuple[str, str] = ("", "")

    def format(self) -> Format:
        """The format as the registry has it."""
        return LogFormat(
            name=self.name,
            title=self.title,
            expected=self.expected,
            names={},
            recognise=self._recognise,
            unpack=self._unpack,
            parse=partial(_parse, self),
        ).format()

    def _unpack(self, document: Mapping[str, Any]) -> list[Any] | None:
        rows = find(document, self.rows)
        return rows if isinstance(rows, list) else None

    def _recognise(self, head: Head) -> bool:
        document = head.document if isinstance(head.document, Mapping) else {}
        rows = objects(self._unpack(document) or split_rows(document)) or head.rows
        keys = {str(key) for row in rows for key in row} or set(head.columns)
        inner = {f"{key}.{each}" for row in rows for key, value in row.items() for each in as_row(value) or ()}
        return any(_has_signs(signs, keys, keys | inner) for signs in self.signs)


def _has_signs(signs: str, columns: set[str], keys: set[str]) -> bool:
    """Whether all signs are among the keys; patterns are of columns only."""

    def there(sign: str) -> bool:
        if "*" in sign:
            start, _, end = sign.partition("*")
            return any(column.startswith(start) and column.endswith(end) for column in columns)
        return sign in keys

    return all(any(map(there, sign.split("|"))) if sign[0] != "!" else not there(sign[1:]) for sign in signs.split())


class TraceStep(NamedTuple):
    """A span as the engine needs it. If the outermost one ``failed``, there is no answer, and nothing to grade."""

    place: int
    trace: str
    id: str
    parent: str | None
    kind: str
    input: Any
    output: Any
    documents: Any
    system: str | None
    grades: dict[str, Any]
    accepted: list[str]
    failed: bool


def _parse(spec: TraceSpec, rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Make a record of each trace, or of each row if the user's mapping says where its fields are."""
    if set(finder.columns) & set(FIELDS):
        yield from parse_rows(rows, finder, reject)
        return
    traces: dict[str, list[TraceStep]] = {}
    for step in _read_rows(spec, rows, finder, reject):
        traces.setdefault(step.trace, []).append(step)
    if traces and all(step.documents is None for steps in traces.values() for step in steps):
        finder.notes.append(NO_SEARCH)
    several = len({step.system for steps in traces.values() for step in steps if step.system}) > 1
    asked: Counter[tuple[str | None, str]] = Counter()
    for steps in traces.values():
        try:
            record = _read_trace(steps, finder)
        except WrongLineError as error:
            reject(steps[0].place, str(error))
            continue
        record = replace(record, system=record.system if several else None)
        key = record.system, record.question or ""
        yield replace(record, repeat=asked[key])
        asked[key] += 1


def _read_rows(spec: TraceSpec, rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[TraceStep]:
    """Read the steps of all rows. Grades that the user maps are those of a row's first step."""
    names: set[str] = set()
    for place, value in rows.values:
        try:
            row = as_row(value)
            if row is None:
                raise WrongLineError("not an object")
            cells = {name: parse_cell(cell, name) for name, cell in row.items()} if rows.cells else row
            steps = [step for span in spec.spans(cells) for step in _read_span(spec, span, place, finder)]
            mapped = mapped_grades(cells, finder)
        except WrongLineError as error:
            reject(place, str(error))
            continue
        if steps and mapped:
            own = {name: grade for name, grade in steps[0].grades.items() if name not in finder.grades.values()}
            steps[0] = steps[0]._replace(grades={**own, **mapped})
        again = spec.whole and steps and steps[0].trace in names
        names |= {step.trace for step in steps}
        yield from (step._replace(trace=f"{step.trace}, row {place}") if again else step for step in steps)


def _read_span(
    spec: TraceSpec, span: Span, place: int, finder: FieldFinder, outer: TraceStep | None = None, number: int = 0
) -> Iterator[TraceStep]:
    """Read a span, and those inside it."""

    def get(paths: str) -> Any:
        return next(_values(span, paths), None)

    def name(paths: str, default: str | None) -> str | None:
        value = get(paths)
        return default if value is None else str(value)

    if spec.ids and not outer and None in (get(spec.trace), get(spec.id)):
        raise WrongLineError("a span has no trace id or no span id")
    trace = outer.trace if outer else name(spec.trace, f"row {place}")
    kind = next((KINDS[word] for each in _values(span, spec.kind) if (word := str(each).upper()) in KINDS), "")
    documents = _find_documents(span, spec.documents, kind) if kind in SEARCHES else get(spec.shown)
    grades: dict[str, list[Any]] = {}
    for grade, value in spec.grades(span):
        grades.setdefault(str(grade), []).append(as_grade(value, str(grade)))
    step = TraceStep(
        place=place,
        trace=str(trace),
        id=str(name(spec.id, f"{outer.id}/{number}" if outer else trace)),
        parent=name(spec.parent, outer.id if outer else None),
        kind=kind,
        input=get(spec.input),
        output=get(spec.output),
        documents=documents,
        system=name(spec.system, None),
        grades=grades,
        accepted=next((texts for each in _values(span, spec.accepted) if (texts := find_references(each))), []),
        failed=str(get(spec.failed)) in FAILED,
    )
    where, note = spec.unread
    if not step.accepted and get(where) is not None and note not in finder.notes:
        finder.notes.append(note)
    yield step
    for index, each in enumerate(list_objects(get(spec.inside), spec.inside)):
        yield from _read_span(spec, each, place, finder, step, index)


def _values(span: Span, paths: str) -> Iterator[Any]:
    """The values at the paths that say something."""
    values = (parse_if_json(path.get(span)) for path in parse_paths(paths)) if paths else ()
    return (value for value in values if is_given(value) and value not in ("", [], {}))


def list_objects(value: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects in a list, which may be JSON. A list of ids has none."""
    items = as_list(parse_if_json(value or []), name)
    return [] if all(isinstance(each, str) for each in items) else [as_dict(each, f"one of {name}") for each in items]


def _find_documents(span: Span, paths: str, kind: str) -> list[Any] | None:
    """The passages that a search returned. None if a re-ranker doesn't say it."""
    values = list(_values(span, paths))
    lists = [each for each in values if isinstance(each, list)]
    if values and not lists:
        raise WrongLineError(f"a {kind.lower()} returned {quote_short(values[-1], 40)}, not a list of passages")
    return lists[0] if lists else [] if kind == "RETRIEVER" else None


def _read_trace(steps: list[TraceStep], finder: FieldFinder) -> LogRecord:
    by_id = {step.id: step for step in steps}
    roots = [step for step in steps if step.parent is None or step.parent not in by_id]
    searches = _outermost([step for step in steps if step.kind in SEARCHES], by_id)
    models = [step for step in steps if step.kind == "LLM"]
    question = next((text for step in [*roots, *searches, *models] if (text := _find_question(step.input))), None)
    if question is None:
        name, count = quote_short(steps[0].trace, 24), format_count(len(steps), "step")
        raise WrongLineError(f"the trace {name} ({count}) has no question: no step has an input")
    failed = any(step.failed for step in roots)
    answers = (find_answer(step.output) for step in [*roots, *reversed(models)] if step not in searches and not failed)
    return LogRecord(
        place=steps[0].place,
        question=as_text(question, "question"),
        system=next((step.system for step in steps if step.system), None),
        passages=without_blank(_find_passages(steps, searches or roots), finder),
        answer=next((answer for answer in answers if answer is not None), None),
        status=ERROR if failed else "",
        accepted=[text for step in roots for text in step.accepted],
        outcomes={name: grade for step in steps for name, grade in step.grades.items() if not failed},
        trace=steps[0].trace,
    )


def _find_passages(steps: list[TraceStep], searches: list[TraceStep]) -> list[LoggedPassage] | None:
    """The passages of the re-rankers, or of all searches; None if no step has any."""
    sources = [step for step in steps if step.kind == "RERANKER" and step.documents is not None]
    hopping = False
    if not sources:
        sources = [step for step in searches if step.documents is not None]
        hopping = len({text.strip() for step in sources if (text := find_question(step.input))}) > 1
    passages: list[LoggedPassage] = []
    for hop, step in enumerate(sources, 1):
        own = as_passages(step.documents) or []
        if hopping:
            search = find_question(step.input)
            own = [each._replace(hop=hop, search=search) for each in own or [LoggedPassage(None)]]
        passages += own
    return passages if sources else None


def _find_question(value: Any) -> str | None:
    """The question in an input: what is found in it, or the only text among the arguments of a function."""
    arguments = value.values() if isinstance(value, Mapping) else ()
    texts = [each for each in arguments if isinstance(each, str) and each.strip()]
    return find_question(value) or (texts[0] if len(texts) == 1 else None)


def _outermost(steps: list[TraceStep], by_id: Mapping[str, TraceStep]) -> list[TraceStep]:
    """Steps that are not part of another of these."""
    ids = {step.id for step in steps}

    def is_inside(step: TraceStep) -> bool:
        seen = {step.id}
        parent = step.parent
        while parent is not None and parent in by_id and parent not in seen:
            if parent in ids:
                return True
            seen.add(parent)
            parent = by_id[parent].parent
        return False

    return [step for step in steps if not is_inside(step)]
