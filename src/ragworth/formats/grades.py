"""Grades of answers in files: words and scales as numbers, which way a grade is better, and the table of outcomes.

=============================================== ====================================
written                                         value
=============================================== ====================================
correct, partly correct, abstained, wrong       1, 0.5, 0, −1
true and false, yes and no, pass and fail       1 and 0; 1 and −1 of a three-way grade
80 %, 80,5 %                                    0.8, 0.805
0.8, 0,8, 4                                     the number, on a scale of its own
=============================================== ====================================

A word has the same value in every file. All grades of one name must be on one scale.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import polars as pl

from ragworth.core.errors import FormatError, format_list, format_places, quote_short
from ragworth.data import OK, Judgments, Outcomes

Grade = float | bool | str | None
"""A grade as a file has it."""

THREE_WAY = {"correct": 1.0, "partially-correct": 0.5, "abstained": 0.0, "wrong": -1.0}
"""Values of three-way grades."""

WORDS = {
    "correct": ("correct", "right", "correct-answer"),
    "partially-correct": ("partially-correct", "partly-correct", "partial"),
    "abstained": ("abstained", "refused", "no-answer", "not-attempted", "failed-to-answer"),
    "wrong": ("wrong", "incorrect", "incorrect-answer"),
}
"""Words of three-way grades; FinanceBench's labels end in *answer*."""
VALUES_OF_WORDS = {word: THREE_WAY[grade] for grade, words in WORDS.items() for word in words}
TRUTH = {"true": True, "yes": True, "pass": True, "passed": True, "false": False, "no": False, "fail": False}
TRUTH["failed"] = False
GRADES = {
    **{word: grade for grade, words in WORDS.items() for word in words},
    **{word: "correct" if true else "wrong" for word, true in TRUTH.items()},
}
"""The grade that a word means; `normalise_label` gives the form of the words."""

MISSING = frozenset(("", "n/a", "na", "none", "nan", "null", "unsure", "-"))
"""What people and programs write where they gave no grade."""

QUESTIONS = frozenset(("correct", "is-correct", "correctness", "abstained", "is-abstained"))
"""Names of grades that ask a question: no is 0."""
THREE_WAY_NAMES = frozenset(("grade", "label", "verdict", "annotation", "value"))
"""Names of grades of which no means wrong; so does it in people's grades, whose names contain ``human``."""
PEOPLE = "human"
OWN_NAMES = frozenset((PEOPLE, "grade", "correct", "abstained"))
"""Names that only grades have: where some of these can be read, the others are mistakes."""
UNSURE_NAMES = frozenset(("label", "annotation"))
"""Names of grades that may also be those of classes or clusters."""

IN_WORDS = " (grades in words)"
"""After the source of a grade that was a word: its value is known to be one of the three-way scale."""
MEAN_OF_WORDS = " (mean of grades in words)"
"""After the source of the mean of several grades in words that differ."""

NO_VALUE = "no-value"
"""Status of a grade that the file doesn't have."""

Direction = Literal[1, 0, -1]
"""1 if higher is better, −1 if lower is, 0 if neither or unknown."""

VERDICTS = frozenset(("correct", "is_correct", "correctness", "answer_correctness", "accuracy", "pass", "verdict"))
"""Names of grades that say how good an answer is as a whole."""
HIGHER = VERDICTS | {
    *("human", "grade", "factual_correctness", "faithfulness", "groundedness", "score", "answer_relevancy"),
    *("answer_relevance", "context_relevance", "context_precision", "context_recall", "contextual_precision"),
    *("contextual_recall", "contextual_relevancy", "semantic_similarity", "includes", "f1", "precision", "recall"),
}
LOWER = frozenset(("wrong", "hallucination", "toxicity", "noise_sensitivity"))
PREFIXES: dict[str, Direction] = {"lower_": -1, "higher_": 1, "human_": 1}
"""Names of grades whose direction is known, and how the name of any other says it."""

LOWEST_RATING, HIGHEST_RATING, HIGHEST_LABEL = 0, 5, 100
RATING = f"a whole number from {LOWEST_RATING} to {HIGHEST_RATING}"


class GradeError(FormatError):
    """Grades that can't be read. Going on without them would change what is compared."""


def direction_of_name(name: str) -> Direction:
    """Which way a grade is better; 0 if its name doesn't say it."""
    plain = plain_grade(name)
    by_prefix = (better for prefix, better in PREFIXES.items() if plain.startswith(prefix))
    return next(by_prefix, 1 if plain in HIGHER else -1 if plain in LOWER else 0)


def is_verdict(name: str) -> bool:
    """Whether a grade, or the share of correct answers that follows from it, says how good an answer is as a whole."""
    return plain_grade(name.removesuffix("-correct")) in VERDICTS


def name_with_direction(name: str, better: Literal[1, -1]) -> str:
    """The name of a grade whose direction is known, with ``higher_`` or ``lower_`` if the name doesn't say it."""
    return name if direction_of_name(name) == better else f"{'higher' if better == 1 else 'lower'}_{name}"


def plain_grade(name: str) -> str:
    """A name in lower case with underscores, without settings in brackets: ``noise_sensitivity(mode=relevant)``."""
    return re.sub(r"\W+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])|[(\[].*", "_", name)).strip("_").lower()


def normalise_label(text: str) -> str:
    """A word of a scale as it is compared: in lower case, with hyphens."""
    return text.strip().lower().replace(" ", "-").replace("_", "-")


class ReadGrades(NamedTuple):
    """Grades as numbers, and by position: which are words, which say that there is no grade, which are unknown.

    ``clash`` are the positions of two grades on different scales, such as 80% and 80.
    """

    values: list[float | None]
    words: set[int]
    missing: list[int]
    unknown: list[int]
    clash: tuple[int, int] | None = None


def read_grades(cells: Sequence[Grade], name: str) -> ReadGrades:
    """Read the grades of one name."""
    found = ReadGrades([], set(), [], [])
    for number, cell in enumerate(cells):
        word = normalise_label(str(cell)) if isinstance(cell, bool | str) else ""
        if word in GRADES:
            found.words.add(number)
            found.values.append(_value_of_word(word, normalise_label(name)))
            continue
        value = number_of(cell) if isinstance(cell, str) else cell
        found.values.append(value)
        if isinstance(cell, str) and value is None:
            (found.missing if word in MISSING else found.unknown).append(number)
    return found._replace(clash=_find_clash(cells, found))


def _value_of_word(word: str, name: str) -> float:
    three_way = PEOPLE in name or name in THREE_WAY_NAMES or name.endswith("-grade")
    if name in QUESTIONS or (word in TRUTH and not three_way):
        return max(THREE_WAY[GRADES[word]], 0.0)
    return THREE_WAY[GRADES[word]]


def number_of(text: str) -> float | None:
    """A number or a percentage; the decimal sign may be a comma, and the minus a longer one."""
    plain = text.strip().replace("−", "-")
    if re.fullmatch(r"[+-]?(?:0,\d+|\d+,\d{1,2})\s*%?", plain):  # the comma of 1,000 may separate thousands
        plain = plain.replace(",", ".")
    try:
        value = float(plain.removesuffix("%")) / (100 if plain.endswith("%") else 1)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def _find_clash(cells: Sequence[Grade], found: ReadGrades) -> tuple[int, int] | None:
    """A word or percentage, all of which are from −1 to 1, and a number beyond that."""
    percent = {number for number, cell in enumerate(cells) if isinstance(cell, str) and "%" in cell}
    values = enumerate(found.values)
    beyond = next((at for at, value in values if value is not None and abs(value) > 1 and at not in percent), None)
    within = next((at for at in range(len(cells)) if at in found.words or at in percent), None)
    return None if beyond is None or within is None else (within, beyond)


class GradePlaces(NamedTuple):
    """The line or number of each grade in a file; ``unit`` says which of these."""

    numbers: Sequence[int]
    unit: str


class GradeColumn(NamedTuple):
    """The grades of one name in a file.

    Attributes
    ----------
    name: what the file calls them.
    aspect: what they are called as outcomes.
    places: finds where they are, for errors and notes.
    """

    name: str
    aspect: str
    cells: Sequence[Grade]
    file: str
    places: Callable[[], GradePlaces]

    def read(self, notes: list[str], *, certain: bool) -> ReadGrades | None:
        """Read the grades; None, and a note, if nothing in the column is one and it isn't ``certain`` to have some."""
        found = read_grades(self.cells, self.aspect)
        where = f"{self.file}: " if self.file else ""
        if found.unknown:
            if certain:
                raise self._unknown_error(found.unknown)
            notes.append(
                f"{where}{self.name!r} was not read as a grade: it has {self._few(found.unknown)}, "
                "not numbers or words like 'correct'"
            )
            return None
        if found.clash is not None:
            one, other = found.clash
            raise GradeError(
                f"{self.name!r} has {quote_short(self.cells[one], 24)} and {quote_short(self.cells[other], 24)}, "
                "which are on different scales",
                expected="grades of one name on one scale: words and percentages are from −1 to 1",
                remedy="write all of them on one scale, or in columns of their own",
                file=self.file,
                line=self._line(max(one, other)),
            )
        if found.missing:
            notes.append(
                f"{where}{self._where(found.missing)} without a grade {self.name!r}: it says "
                f"{self._few(found.missing)}; missing, not wrong"
            )
        return found

    @property
    def has_grades(self) -> bool:
        """Whether some of the cells can be read."""
        return any(value is not None for value in read_grades(self.cells, self.aspect).values)

    def _unknown_error(self, unknown: Sequence[int]) -> GradeError:
        letters = all(re.fullmatch(r"[A-Fa-f][+-]?", str(self.cells[at]).strip()) for at in unknown)
        words = format_list([repr(words[0]) for words in WORDS.values()])
        return GradeError(
            f"{self.name!r} has {self._few(unknown)}, which is no grade",
            file=self.file,
            line=self._line(unknown[0]),
            more=(self._where(unknown),),
            expected=f"numbers, percentages, true or false, yes or no, or {words}; n/a or nothing where there is none",
            remedy="write letters as numbers, such as 4 for A, 3 for B, 2 for C, 1 for D and 0 for F"
            if letters
            else "fix these grades, or leave them empty",
        )

    def _few(self, positions: Iterable[int]) -> str:
        return format_list(list(dict.fromkeys(quote_short(self.cells[at], 24) for at in positions)), 3)

    def _where(self, positions: Iterable[int]) -> str:
        numbers, unit = self.places()
        return format_places((numbers[at] for at in positions), unit)

    def _line(self, position: int) -> int | None:
        numbers, unit = self.places()
        return numbers[position] if unit == "line" else None


GradeKey = tuple[str, str, str]
"""System, query and aspect."""


class LogGrades(NamedTuple):
    """How the grades of a log are read.

    Attributes
    ----------
    unit: what the places of records count.
    columns: what the file calls the aspects.
    certain: aspects that must be grades, because the user said so.
    """

    source: str
    unit: str
    columns: Mapping[str, str]
    certain: Container[str]

    def table(
        self,
        outcomes: Mapping[GradeKey, Sequence[tuple[Grade, int]]],
        answered: Iterable[tuple[str, str]],
        notes: list[str],
    ) -> Outcomes | None:
        """Make the table of grades; ``answered`` are the systems and queries with a record."""
        pairs = list(answered)
        rows: list[tuple[object, ...]] = []
        for aspect in dict.fromkeys(key[2] for key in outcomes):
            part = {key: values for key, values in outcomes.items() if key[2] == aspect}
            column = self._column(aspect, [each for values in part.values() for each in values])
            grades = self._read(column, notes)
            if grades is None:
                continue
            systems = {key[0] for key in part}
            bare = ((*pair, aspect) for pair in pairs if pair[0] in systems)
            rows += [(*key, None, NO_VALUE, self.source or "given") for key in bare if key not in part]
            rows += _mean_rows({key: len(values) for key, values in part.items()}, grades, self.source or "given")
        if not any(row[3] is not None for row in rows):
            return None
        return Outcomes(pl.DataFrame(rows, schema=Outcomes.schema, orient="row"), source=self.source)

    def _column(self, aspect: str, given: Sequence[tuple[Grade, int]]) -> GradeColumn:
        places = GradePlaces([place for _, place in given], self.unit)
        cells = [cell for cell, _ in given]
        return GradeColumn(self.columns.get(aspect, aspect), aspect, cells, self.source, lambda: places)

    def _read(self, column: GradeColumn, notes: list[str]) -> ReadGrades | None:
        """Read a column, unless its numbers may be classes."""
        certain = column.aspect in self.certain
        known = [value for value in read_grades(column.cells, column.aspect).values if value is not None]
        if column.name.lower() in UNSURE_NAMES and not certain and known and not -1 <= min(known) <= max(known) <= 1:
            where = f"{self.source}: " if self.source else ""
            notes.append(
                f"{where}{column.name!r} was not read as a grade: its numbers from {min(known):g} to {max(known):g} "
                f"may be classes; if they are grades: --map {column.aspect}={column.name}, or [columns]"
            )
            return None
        return column.read(notes, certain=certain or (column.aspect in OWN_NAMES and column.has_grades))


def _mean_rows(sizes: Mapping[GradeKey, int], grades: ReadGrades, source: str) -> Iterable[tuple[object, ...]]:
    """The mean of the grades of each key, of which ``sizes`` says how many follow one another."""
    start = 0
    for key, size in sizes.items():
        graded = [at for at in range(start, start + size) if grades.values[at] is not None]
        values = [value for value in grades.values[start : start + size] if value is not None]
        start += size
        mean = sum(values) / len(values) if values else None
        said = source_of(source, [at in grades.words for at in graded], values)
        yield (*key, mean, OK if values else NO_VALUE, said)


def source_of(source: str, words: Sequence[bool], values: Sequence[float]) -> str:
    """The source of a grade that is the mean of ``values``; ``words`` says which of them were words."""
    if not words or not all(words):
        return source
    return source + (IN_WORDS if len(set(values)) == 1 else MEAN_OF_WORDS)


def off_scale(value: float) -> bool:
    """Whether a number is no rating."""
    return not (LOWEST_RATING <= value <= HIGHEST_RATING and float(value).is_integer())


LineOf = Callable[[int], int | None]
"""The line of a row of a file."""


def check_ratings(values: pl.Series, path: object, line_of: LineOf) -> None:
    """Reject ratings that are off the scale."""
    numbers = values.cast(pl.Float64)
    on_scale = numbers.is_between(LOWEST_RATING, HIGHEST_RATING) & (numbers == numbers.round())
    wrong = (~on_scale).fill_null(False).arg_true()
    if len(wrong):
        raise FormatError(
            f"the rating is {numbers[int(wrong[0])]:g}",
            file=str(path),
            line=line_of(int(wrong[0])),
            more=(f"{len(wrong):,} ratings off the scale in all",) if len(wrong) > 1 else (),
            expected=RATING,
            remedy="map them to that scale; where a rating is missing, drop the row or give the reason in 'status'",
        )


def check_labels(judgments: Judgments, path: object, line_of: LineOf) -> Judgments:
    """Reject labels of relevance above 100."""
    labels = judgments.frame.select(pl.when(pl.col("aspect") == "relevance").then("value")).to_series()
    highest = labels.max()
    if isinstance(highest, float) and highest > HIGHEST_LABEL:
        raise FormatError(
            f"the label is {highest:,.15g}",
            file=str(path),
            line=line_of(labels.arg_max() or 0),
            expected=f"a label up to {HIGHEST_LABEL}",
            remedy="correct it; divide labels on a larger scale, because nDCG takes them as gains",
        )
    return judgments
