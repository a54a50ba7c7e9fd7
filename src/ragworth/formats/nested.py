"""Read logs whose fields are in objects: ``{"inputs": {"question": …}, "output": {"answer": …, "documents": […]}}``.

Columns with dots, such as ``inputs.query``, are the same spread over a table. A note says which fields are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FIELDS, GRADE_FIELDS, SYSTEM_COLUMNS, FieldFinder, plain_name
from ragworth.formats.log_files import LogRows
from ragworth.formats.log_format import LogFormat, Reject, parse_rows
from ragworth.formats.log_passages import are_retrieved
from ragworth.formats.log_record import LogRecord
from ragworth.formats.log_rows import inner_text
from ragworth.formats.log_values import as_row

MAX_DEPTH = 4
REFERENCES = {"expected", "reference", "gold", "golden", "target", "label", "ground_truth", "example", "item"}
REFERENCES |= {"datasource_item", "dataset_item", "reference_outputs", "expected_output"}
"""Objects whose answer is the accepted one."""

SYSTEMS = {"prediction", "predictions", "pred", "output", "outputs", "response", "result", "results", "generation"}
SYSTEMS |= {"completion", "run", "trace", "model_output", "prediction_output", "rag", "bot", "assistant"}
"""Objects whose answer is the system's."""

OTHERS = {"metadata", "meta", "config", "settings", "usage", "stats", "debug", "extra", "info", "timing"}
OTHERS |= {"few_shot", "examples", "shots", "demos", "demonstrations", "history", "previous"}
"""Objects without fields of a log."""

JUDGES = {
    "judge",
    "judgment",
    "judgement",
    "evaluation",
    "eval",
    "evaluator",
    "grader",
    "grading",
    "critique",
    "feedback",
}
"""Objects of a judge: they may have grades, but neither the question nor the answer of a system."""

WEAK = {"input", "prompt", "output", "result"}
"""Names that may be of something around a field, such as its template."""

PLAIN_ANSWERS = {"answer", "final_answer", "result"}
"""Names of answers that don't say whose they are."""

QUESTIONS = (*FIELDS["question"], "chat_input")
ANSWERS = (*FIELDS["answer"], "pred", "output_text")
PASSAGES = (*FIELDS["passages"], "retrieval_result")


FIELD_NAMES = ("question", "response", "contexts", "reference", "query_id", "model")
"""What the fields are called in the rows that are made."""


PLAIN_FIELDS = {"question": "question", "response": "answer", "contexts": "passages"}
"""The fields that a log is known by, as its other readers call them."""


class Leaf(NamedTuple):
    """A value inside objects: the path to it, and the plain names on the path."""

    path: str
    names: tuple[str, ...]
    value: Any

    @property
    def name(self) -> str:
        """What it is called: ``{"answer": {"text": …}}`` is an answer."""
        return self.names[-2] if self.names[-1] in ("text", "content") and len(self.names) > 1 else self.names[-1]

    @property
    def parents(self) -> set[str]:
        """The names of the objects it is in."""
        return set(self.names[:-1])


def find_leaves(row: Mapping[str, Any], before: str = "", depth: int = 1) -> Iterator[Leaf]:
    """The values of a row, however deep in objects."""
    for name, value in row.items():
        path = f"{before}{name}"
        if isinstance(value, Mapping) and value and depth < MAX_DEPTH and plain_name(name) not in PASSAGES:
            yield from find_leaves(value, f"{path}.", depth + 1)
        else:
            yield Leaf(path, tuple(plain_name(part) for part in path.split(".")), value)


def find_fields(row: Mapping[str, Any]) -> dict[str, str]:
    """The paths of fields and grades; nothing if there is no question, or neither an answer nor passages."""
    every = [leaf for leaf in find_leaves(row) if leaf.value is not None and not leaf.parents & OTHERS]
    leaves = [leaf for leaf in every if not leaf.parents & JUDGES]
    answers = [leaf for leaf in leaves if not leaf.parents & REFERENCES]
    known = [leaf for leaf in leaves if leaf.parents & REFERENCES]
    found = {
        "question": _first(leaves, QUESTIONS, str),
        "response": _first(answers, ANSWERS, str | int | float),
        "contexts": _first(leaves, PASSAGES, str | list),
        "reference": _first(leaves, FIELDS["accepted"], str | int | float | list)
        or _first(known, ANSWERS, str | int | float | list),
        "query_id": _first(leaves, FIELDS["query"][:4], str | int),
        "model": _first(leaves, SYSTEM_COLUMNS, str),
    }
    paths = {field: leaf.path for field in FIELD_NAMES if (leaf := found[field]) is not None}
    answer = found["response"]
    shown = found["contexts"]
    sure = "reference" in paths or (shown is not None and are_retrieved(shown.value))
    unsure = answer is not None and answer.name in PLAIN_ANSWERS and not answer.parents & SYSTEMS
    if "question" not in paths or not {"response", "contexts"} & paths.keys() or (unsure and not sure):
        return {}
    return paths | _find_grades(every)


def _first(leaves: list[Leaf], names: tuple[str, ...], kind: Any) -> Leaf | None:
    """The first leaf with one of the names and a value of the kind: outside of objects, then by order of preference."""

    def order(leaf: Leaf) -> tuple[bool, bool, int, int]:
        weak = leaf.name in WEAK
        return weak, not weak and len(leaf.names) > 1, names.index(leaf.name), len(leaf.names)

    usable = [leaf for leaf in leaves if isinstance(leaf.value, kind) and leaf.name in names]
    return min(usable, key=order, default=None)


def _find_grades(leaves: list[Leaf]) -> dict[str, str]:
    """Grades: values with usual names, and metrics in an object of the same name."""
    usual = {name for names in GRADE_FIELDS.values() for name in names}
    return {
        leaf.names[-1]: leaf.path
        for leaf in leaves
        if isinstance(leaf.value, str | int | float)
        and (leaf.names[-1] in usual or (leaf.names[-2:-1] == leaf.names[-1:] and not isinstance(leaf.value, str)))
    }


def _recognise(sample: FileSample) -> bool:
    """Whether the fields are in objects, and a log with usual names would not find them."""
    if sample.kind == "json" and isinstance(sample.document, Mapping):
        return False  # its objects may be records
    fields = _fields_of(sample.rows)
    plain = FieldFinder(FIELDS).keys(dict.fromkeys(sample.columns))
    inner = [PLAIN_FIELDS[name] for name in PLAIN_FIELDS if "." in fields.get(name, "")]
    return any(field not in plain or _has_objects(sample, plain[field], field) for field in inner)


def _has_objects(sample: FileSample, column: str, field: str) -> bool:
    """Whether values of a column are objects without a text of the field."""
    return any(isinstance(inner_text(row.get(column), field), Mapping) for row in sample.rows)


def _fields_of(rows: Any) -> dict[str, str]:
    """The paths of the fields in all rows."""
    paths: dict[str, str] = {}
    for row in rows:
        for field, path in find_fields(row).items():
            paths.setdefault(field, path)
    return paths


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    found = [(place, as_row(value) or value) for place, value in rows.values]
    paths = _fields_of([row for _, row in found if isinstance(row, Mapping)])
    paths = {field: path for field, path in paths.items() if path not in finder.columns.values()}
    finder.grades |= {name: name for name, path in paths.items() if name not in FIELD_NAMES and "." in path}
    read = [f"{field} = {path}" for field, path in paths.items() if "." in path]
    finder.notes.append(f"fields are read from objects: {', '.join(read)}")

    def lifted() -> Iterator[tuple[int, Any]]:
        for place, row in found:
            yield place, _lift(row, paths) if isinstance(row, Mapping) else row

    yield from parse_rows(rows._replace(values=lifted()), finder, reject)


def _lift(row: Mapping[str, Any], paths: Mapping[str, str]) -> dict[str, Any]:
    """A row with its values by their paths, and the fields by their names."""
    values = {leaf.path: leaf.value for leaf in find_leaves(row)}
    fields = {field: values.get(path) for field, path in paths.items()}
    return {path: value for path, value in values.items() if path not in paths.values()} | fields


FORMAT = LogFormat(
    name="nested",
    title="a log whose fields are in objects",
    expected="a question in each record, and an answer or passages",
    names=FIELDS,
    recognise=_recognise,
    parse=_parse,
).format()
