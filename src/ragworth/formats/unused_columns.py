"""Notes on the columns of a log: those that no field took, with the mapping that uses each, and unsure readings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ragworth.errors import FormatError, format_names
from ragworth.formats.fields import FIELDS, JOIN, SYNONYMS, SYSTEM_COLUMNS, FieldFinder, check_columns, plain_name
from ragworth.formats.fields import quote_argument as quoted
from ragworth.formats.grade_names import direction_of_name, is_verdict, names_quality
from ragworth.formats.grade_words import GRADES, MISSING_WORDS, number_of
from ragworth.formats.log_passages import TEXT_KEYS
from ragworth.formats.log_rows import LONG_TEXT
from ragworth.formats.log_values import parse_cell
from ragworth.formats.values import WrongLineError

SEEN_ROWS = 500
"""Rows whose values are looked at."""

NAMED = 8
"""Columns without a mapping that a note names; it counts the others."""

NO_GRADE = re.compile(
    r"(^|_)(ids?|index|idx|number|num|no$|count|rank|page|line|row|fold|seed|temperature|turn|step|year|date|time|"
    r"timestamp|ts|created|updated|latency|duration|elapsed|runtime|seconds|ms|costs?|price|tokens?|length|len|size|"
    r"words|chars|(?<!at_)k|version|port|start|end|unnamed:|level|(?<!at_)n|nr|i|priority|difficulty|age|hops?|attempts?|retries|"
    r"depth|trial|iteration|repetition|replicate|repeat|epoch)(_|$)"
)
"""Names of numbers that say nothing of an answer's quality."""

SHORT_CELLS = re.compile(r"(?:^|_)(?:scores?(?:_|$)|(?:ids?|points|metrics?|stats|time)$)")
"""Names of columns of scores, ids and times."""

ACCEPTED_WORDS = {"gold", "golden", "truth", "gt", "reference", "expected", "target", "ideal"}
"""Words in the names of columns of accepted answers."""

ANSWER_WORDS = {"answer", "response", "output", "prediction", "completion"}
"""Words in the names of columns of answers."""

CONVERSATION = re.compile(r"(conversation|session|dialog(ue)?|thread|chat)(_?(id|uuid|key|no|number))?")
"""Names of what several turns share."""

JOINED = re.compile(
    r"\n[ \t]*(?:-{3,}|={3,}|\*{3,}|#{3,})[ \t]*\n|\|\|\||<sep>|\[SEP\]|\n[ \t]*\n[ \t]*\S|"
    r"(?:^|\n)[ \t]*\[?(?:Document|Passage|Doc|Source) ?\d|(?:^|\s)\[1\]\s.*\s\[2\]\s|^\s*1[.)]\s.*\n\s*2[.)]\s|"
    r"\bpage_content=.*\bpage_content=",
    re.DOTALL,
)
"""What programs write between passages that they put into one text."""

JOINED_CHARACTERS = 3000
"""Characters at the beginning of a text in which that is looked for."""


class UnusedColumns:
    """Collects the values of columns that a finder doesn't use, and tells it which hold verdicts in words."""

    def __init__(self) -> None:
        self.rows = 0
        self.values: dict[str, list[Any]] = {}
        self.systems: set[str] = set()
        self.joined = 0

    def see(self, row: Mapping[str, Any], finder: FieldFinder) -> None:
        """Look at a row."""
        self.rows += 1
        if self.rows > SEEN_ROWS:
            return
        self.systems.add(str(finder.get(row, "system")))
        shown = finder.get(row, "passages")
        joined = isinstance(shown, str) and JOINED.search(shown[:JOINED_CHARACTERS]) is not None
        self.joined += joined and isinstance(parse_cell(shown, "passage"), str)
        keys = (*finder.keys(row).values(), *finder.grades.values(), *finder.verdicts.values())
        taken = {*finder.keys(row), *finder.grades}
        used = {part for key in keys for part in (key, *key.split(JOIN))}
        for name, value in row.items():
            if name in used or value is None:
                continue
            inner = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, Mapping) else {}
            for path, each in (inner or {str(name): value}).items():
                if path in used or not _is_given(each):
                    continue
                grade = "" if inner or path in self.values else _verdict_name(path, each)
                if grade and grade not in taken:
                    finder.verdicts.setdefault(grade, path)
                else:
                    self.values.setdefault(path, []).append(each)

    def notes(self, finder: FieldFinder) -> list[str]:
        """One note on all columns that aren't used, after those on fields that may be read otherwise."""
        found: dict[str, str] = {}
        for keys in finder.known_keys():
            found |= keys
        notes = self._unsure(found, finder)
        hints = {name: self._hint(name, values, found) for name, values in self.values.items()}
        mapped = [f"{name} ({hint})" for name, hint in hints.items() if hint]
        others = [name for name, hint in hints.items() if not hint]
        if mapped or others:
            named = [*mapped, *([format_names(others, NAMED)] if others else [])]
            notes.append(f"not used: {', '.join(named)}")
        return notes

    def _unsure(self, found: Mapping[str, str], finder: FieldFinder) -> list[str]:
        """Notes on fields whose columns may hold something else."""
        notes: list[str] = []
        accepted = plain_name(found.get("accepted", "")) if "accepted" not in finder.columns else ""
        if accepted == "answer":
            notes.append(
                f"{found['accepted']!r} is read as the accepted answer, because {found['answer']!r} is the system's; "
                f"to change that: --map {quoted('answer=' + found['accepted'])}"
            )
        if accepted == "references" and "passages" not in found:
            notes.append(
                "'references' are read as accepted answers; if they are the passages: --map passages=references"
            )
        if plain_name(found.get("system", "")) in ("run", "run_id") and all(
            re.fullmatch(r"\d{1,3}", name) for name in self.systems
        ):
            notes.append(
                f"{found['system']!r} is read as the system, and has numbers; if it numbers the answers of a system to "
                f"a question: --map {quoted('repeat=' + found['system'])}"
            )
        if 2 * self.joined > min(self.rows, SEEN_ROWS):
            notes.append(
                f"{found['passages']!r} is one text in each record, and read as one passage; if several are "
                "joined in it, write them as a list"
            )
        return notes

    def _hint(self, name: str, values: list[Any], found: Mapping[str, str]) -> str:
        """The mapping that uses a column, by what is in it; nothing if it may be anything."""
        plain = plain_name(name.rpartition(".")[2])
        different = len(set(map(str, values)))
        if plain in SYSTEM_COLUMNS and "system" not in found and 1 < different <= len(values) / 2:
            return _map("system", name)
        if CONVERSATION.fullmatch(plain) and different > 2 and different * len(self.systems) < len(values):
            return "its turns count as independent questions, see docs/howto/conversations.md"
        if different > 1 and not says_no_grade(plain) and all(map(_is_grade, values)):
            return _grade_hint(plain, name, isinstance(values[0], bool) or str(values[0]).strip().lower() in GRADES)
        texts = holds_texts(name, values) and not says_no_grade(plain)
        field = _text_field(plain, values, found) if texts else ""
        if not field and "answer" in found and not ANSWER_WORDS.isdisjoint(plain.split("_")) and texts:
            return "for answers of several systems write a row for each, with its 'system'"
        instead = f"instead of {found[field]}: " if field in found else ""
        return f"{instead}{_map(field, name)}" if field else ""


def says_no_grade(name: str) -> bool:
    """Whether a column has the name of a system, a conversation or a number that says nothing of an answer."""
    plain = plain_name(name)
    return plain in SYSTEM_COLUMNS or bool(CONVERSATION.fullmatch(plain) or NO_GRADE.search(plain))


def _map(field: str, column: str) -> str:
    return f"--map {quoted(f'{field}={column}')}"


def _grade_hint(plain: str, column: str, words: bool) -> str:
    """The mapping that reads a column as a grade. If nothing says which way numbers are better, the user does."""
    if _is_field(plain):
        return ""
    grade = _grade_name(plain)
    try:
        grade = grade if grade not in SYNONYMS and check_columns({grade: column}) else f"{grade}_score"
    except FormatError:  # too much like the name of a field
        grade = f"{grade}_score"
    if words or names_quality(plain):
        return _map(grade, column)
    return f"{_map(f'higher_{grade}', column)}, or lower_{grade} if lower is better"


def _is_field(plain: str) -> bool:
    return any(plain in (field, *names) for field, names in FIELDS.items())


def _grade_name(plain: str) -> str:
    return re.sub(r"\W+", "_", plain).strip("_") or "grade"


def _verdict_name(column: str, value: Any) -> str:
    """The name of the grade if a column holds verdicts in words, by its name and a value; else empty.

    What is expected, such as ``gold_verdict`` or ``correct_label``, is no verdict on an answer.
    """
    plain = plain_name(column)
    word = isinstance(value, bool) or (isinstance(value, str) and value.strip().lower() in GRADES)
    expected = plain.startswith("correct_") or not ACCEPTED_WORDS.isdisjoint(plain.split("_"))
    if not word or expected or _is_field(plain) or says_no_grade(plain):
        return ""
    return _grade_name(plain) if is_verdict(plain) and direction_of_name(plain) == 1 else ""


def _text_field(plain: str, values: list[Any], found: Mapping[str, str]) -> str:
    """The field that texts or lists of them may be, by the name of the column and by what is in it."""
    if plain == "references" and "passages" not in found:
        return "passages"
    usual = next((field for field in ("answer", "accepted", "passages") if plain in FIELDS[field]), "")
    if usual:
        return usual
    if "accepted" not in found and not ACCEPTED_WORDS.isdisjoint(plain.split("_")):
        return "accepted"
    if "passages" not in found and 2 * sum(map(_are_passages, values)) > len(values):
        return "passages"
    sentences = [value for value in values if isinstance(value, str) and " " in value.strip()]
    told = 2 * len(sentences) > len(values) and 2 * len(set(sentences)) > len(sentences)
    return "answer" if told and "answer" not in found else ""


def _is_grade(value: Any) -> bool:
    """Whether a value is a number, yes or no, or a word such as pass."""
    if isinstance(value, str):
        word = value.strip().lower()
        return word in GRADES or number_of(word) is not None
    return isinstance(value, bool | int | float)


def holds_texts(name: str, values: list[Any]) -> bool:
    """Whether most values of a column are texts; long texts, if its name is that of a score."""
    words = [part.rpartition("_")[2] for part in map(plain_name, name.split("."))]
    score = SHORT_CELLS.search(plain_name(name).replace(".", "_")) or any(
        names_quality(word) and word not in ACCEPTED_WORDS for word in words
    )
    given = [value for value in values if _is_given(value)]
    texts = [value for value in given if (_are_passages(value) or _is_passage(value) if score else _has_text(value))]
    return 2 * len(texts) > len(given)


def _is_given(value: Any) -> bool:
    return value is not None and str(value).strip().lower() not in MISSING_WORDS


def _has_text(value: Any) -> bool:
    """Whether a value is a text that is no number, or has such texts in it."""
    with suppress(WrongLineError):
        value = parse_cell(value, "value")
    if isinstance(value, list | tuple):
        return any(map(_has_text, value))
    if isinstance(value, Mapping):
        return any(plain_name(key) in TEXT_KEYS and _has_text(text) for key, text in value.items())
    return isinstance(value, str) and not _is_grade(value)


def _are_passages(value: Any) -> bool:
    """Whether a value is a list of long texts, or of objects with a text."""
    try:
        parsed = parse_cell(value, "value")
    except WrongLineError:
        return False
    return isinstance(parsed, list) and bool(parsed) and all(map(_is_passage, parsed))


def _is_passage(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "role" not in value and _has_text(value)
    return isinstance(value, str) and len(value) >= LONG_TEXT
