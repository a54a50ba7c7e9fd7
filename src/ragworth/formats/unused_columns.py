"""Notes on what the fields of a log leave out: columns that none took, and passages that may be joined in one text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ragworth.errors import format_names
from ragworth.formats.fields import FIELDS, SYSTEM_COLUMNS, FieldFinder, plain_name, quote_argument
from ragworth.formats.grade_words import GRADES
from ragworth.formats.log_passages import TEXT_KEYS
from ragworth.formats.log_rows import LONG_TEXT
from ragworth.formats.log_values import parse_cell
from ragworth.formats.values import WrongLineError

SEEN_ROWS = 500
"""Rows whose values are looked at."""

TITLES = {"answer": "the answer", "accepted": "the accepted answer", "passages": "the passages"}
NO_GRADE = re.compile(
    r"(^|_)(ids?|index|idx|number|num|no$|count|rank|page|line|row|fold|seed|temperature|turn|step|year|date|time|"
    r"timestamp|ts|created|updated|latency|duration|elapsed|runtime|seconds|ms|costs?|price|tokens?|length|len|size|"
    r"words|chars|(?<!at_)k|version|port|start|end|unnamed:|level|(?<!at_)n|nr|i|priority|difficulty|age|hops?|attempts?|retries|"
    r"depth|trial|iteration|repetition|replicate|repeat|epoch)(_|$)"
)
"""Names of numbers that say nothing of an answer's quality."""

VERDICT = re.compile(
    r"verdict|thumbs?|vote|rating|rated|feedback|review$|judge?ment|quality|grade|score|result$|outcome|assessment|"
    r"satisf|resolved|beoordeling|ocena|nota|avalia|bewertung|urteil|評価|判定"
)
"""Names of columns that may say in words how good an answer is."""

ANSWER_WORDS = {"answer", "response", "output", "prediction", "completion", "antwort", "respuesta", "réponse"}
"""Words in the names of columns of answers."""

MAX_WORDS = 6
"""Maximum number of different words in such a column."""

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
    """Collects the values of columns that a finder doesn't use."""

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
        used = {*finder.keys(row).values(), *finder.grades.values()}
        for name, value in row.items():
            if name in used or value is None:
                continue
            inner = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, Mapping) else {}
            for path, each in (inner or {str(name): value}).items():
                if each is not None and not (isinstance(each, str) and not each) and path not in used:
                    self.values.setdefault(path, []).append(each)

    def notes(self, finder: FieldFinder) -> list[str]:
        """What users should know about these columns."""
        found: dict[str, str] = {}
        for keys in finder.known_keys():
            found |= keys
        grades = [name for name, values in self.values.items() if _may_be_grades(name, values)]
        notes = [
            note
            for field in TITLES
            if field in found and field not in finder.columns
            for note in self._others(field, found, finder, grades)
        ]
        notes += self._answer_notes(found.get("answer", ""))
        for field in ("passages", "accepted"):
            names = [name for name in self.values if plain_name(name.rpartition(".")[2]) in _names(field, finder)]
            if names and field not in found:
                mapping = quote_argument(f"{field}={names[0]}")
                notes.append(f"{names[0]!r} isn't used; if it is {TITLES[field]}: --map {mapping}, or [columns]")
        if "question" in found and "answer" not in found:
            texts = [name for name, values in self.values.items() if _may_be_answers(name, values)]
            if texts:
                which, mapping = format_names(texts, 4), quote_argument(f"answer={texts[0]}")
                notes.append(f"{which} not used; if the answers are there: --map {mapping}, or [columns]")
        if "passages" not in found:
            notes += self._passage_notes(finder)
        if plain_name(found.get("accepted", "")) == "answer" and "accepted" not in finder.columns:
            notes.append(
                f"{found['accepted']!r} is read as the accepted answer, because {found['answer']!r} is the system's; "
                f"to change that: --map {quote_argument('answer=' + found['accepted'])}"
            )
        if plain_name(found.get("accepted", "")) == "references" and "passages" not in found:
            notes.append(
                "'references' are read as accepted answers; if they are the passages: --map passages=references, "
                "or [columns]"
            )
        if plain_name(found.get("system", "")) in ("run", "run_id") and all(
            re.fullmatch(r"\d{1,3}", name) for name in self.systems
        ):
            notes.append(
                f"{found['system']!r} is read as the system, and has numbers; if it numbers the answers of a system to "
                f"a question: --map {quote_argument('repeat=' + found['system'])}"
            )
        if 2 * self.joined > min(self.rows, SEEN_ROWS):
            notes.append(
                f"{found['passages']!r} is one text in each record, and read as one passage; if several are "
                "joined in it, write them as a list"
            )
        if "system" not in found:
            notes += self._system_notes()
        for name in self._conversations():
            notes.append(
                f"{name!r} isn't used: if it names conversations, their turns count as independent questions; to keep "
                "them together, write conversations (docs/howto/conversations.md)"
            )
        if grades:
            notes.append(
                f"{format_names(grades, 4)} not used; if a column has grades, say so: --map NAME=COLUMN, or [columns]"
            )
        for name, values in self.values.items():
            if name not in grades and _may_be_verdicts(name, values):
                words = format_names(sorted({str(value).strip() for value in values}), 4)
                notes.append(
                    f"{name!r} ({words}) isn't used; if it grades the answers, write numbers, or words such as correct "
                    f"and wrong, and say so: --map {quote_argument(f'{name}={name}')}, or [columns]"
                )
        return notes

    def _system_notes(self) -> list[str]:
        """The note on a column that may name several systems, which are read as one."""
        for name, values in self.values.items():
            different = dict.fromkeys(map(str, values))
            if plain_name(name) in SYSTEM_COLUMNS and 1 < len(different) <= len(values) / 2:
                few = format_names(list(different), 4)
                mapping = quote_argument(f"system={name}")
                return [f"{name!r} ({few}) isn't used: all is read as one system; if it names systems: --map {mapping}"]
        return []

    def _answer_notes(self, used: str) -> list[str]:
        """The note on columns that may have answers of other systems: ``answer_b`` beside ``answer_a``."""
        others = [
            name
            for name, values in self.values.items()
            if (differ_in_one_word(used, name) or _ends_as_answer(used, name))
            and all(isinstance(value, str) for value in values)
        ]
        if not others:
            return []
        few = format_names(others, 4)
        return [f"{few} not used; for answers of several systems write a row for each, with its 'system'"]

    def _passage_notes(self, finder: FieldFinder) -> list[str]:
        """Notes on columns that may have the passages, by what is in them."""
        names = [name for name, values in self.values.items() if _may_be_passages(values)]
        usual = _names("passages", finder)
        names = [name for name in names if plain_name(name.rpartition(".")[2]) not in usual]  # has a note
        if names:
            mapping = quote_argument(f"passages={names[0]}")
            return [f"{format_names(names, 4)} not used; if the passages are there: --map {mapping}, or [columns]"]
        return []

    def _conversations(self) -> list[str]:
        """The first column that names more than two conversations, which several records of a system share."""
        named = {name: each for name, each in self.values.items() if CONVERSATION.fullmatch(plain_name(name))}
        counts = {name: len(set(map(str, each))) for name, each in named.items()}
        return [name for name, n in counts.items() if n > 2 and n * len(self.systems) < len(named[name])][:1]

    def _others(self, field: str, found: Mapping[str, str], finder: FieldFinder, grades: list[str]) -> list[str]:
        """The note on columns that are called like a field, where another column has it."""
        names = [name for name in self.values if plain_name(name) in _names(field, finder) and name not in grades]
        if not names:
            return []
        title = f"{found[field]!r} is read as {TITLES[field]}, and {format_names(names, 4)} not at all"
        if field == "answer" and "accepted" not in found:
            mappings = [quote_argument(f"{name}={names[0]}") for name in ("answer", "accepted")]
            return [
                f"{title}; if that is the answer: --map {mappings[0]}; if it is the accepted one: --map {mappings[1]}"
            ]
        if names == ["references"] and "passages" not in found:
            return [f"{title}; if these are the passages: --map passages=references"]
        return [f"{title}; to change that: --map {quote_argument(f'{field}={names[0]}')}"]


def _ends_as_answer(used: str, other: str) -> bool:
    """Whether a column may have the answers of another system beside those that are used: ``baseline_answer``."""
    name = plain_name(other)
    return bool(used) and name.rpartition("_")[2] in ANSWER_WORDS and name not in FIELDS["accepted"] + FIELDS["answer"]


def differ_in_one_word(one: str, other: str) -> bool:
    """Whether two columns of answers differ in one word: ``answer_a`` and ``answer_b``."""
    words, others = plain_name(one).split("_"), plain_name(other).split("_")
    if one == other or len(words) != len(others) or plain_name(other) in FIELDS["accepted"]:
        return False
    different = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
    return len(different) == 1 and not ANSWER_WORDS.isdisjoint(set(words) & set(others))


def _names(field: str, finder: FieldFinder) -> set[str]:
    """What files call a field, in this format or any other."""
    return {*finder.names.get(field, ()), *FIELDS[field]}


def says_no_grade(name: str) -> bool:
    """Whether a column has the name of a system, a conversation or a number that says nothing of an answer."""
    plain = plain_name(name)
    return plain in SYSTEM_COLUMNS or bool(CONVERSATION.fullmatch(plain) or NO_GRADE.search(plain))


def _may_be_grades(name: str, values: list[Any]) -> bool:
    """Whether all values are numbers, yes or no, or words such as pass, and they differ."""
    if says_no_grade(name) or len({str(value) for value in values}) < 2:
        return False
    return all(isinstance(value, bool | int | float) or _is_grade_text(value) for value in values)


def _may_be_verdicts(name: str, values: list[Any]) -> bool:
    """Whether a column has the name of a verdict and a few words that recur: up, down."""
    different = {str(value).strip() for value in values}
    few = 1 < len(different) <= MAX_WORDS and 2 * len(different) <= len(values)
    return few and VERDICT.search(plain_name(name)) is not None and all(isinstance(value, str) for value in values)


def _may_be_answers(name: str, values: list[Any]) -> bool:
    """Whether most values are texts of several words that differ."""
    if says_no_grade(name):
        return False
    texts = [value for value in values if isinstance(value, str) and " " in value.strip()]
    return 2 * len(texts) > len(values) and 2 * len(set(texts)) > len(texts)


def _may_be_passages(values: list[Any]) -> bool:
    """Whether most values are lists of long texts, or of objects with a text."""

    def is_passage(value: Any) -> bool:
        if isinstance(value, Mapping):
            texts = (value[key] for key in value if plain_name(key) in TEXT_KEYS)
            return "role" not in value and any(isinstance(text, str) for text in texts)
        return isinstance(value, str) and len(value) >= LONG_TEXT

    lists = []
    for value in values:
        try:
            parsed = parse_cell(value, "value")
        except WrongLineError:
            continue
        lists.append(isinstance(parsed, list) and bool(parsed) and all(map(is_passage, parsed)))
    return 2 * sum(lists) > len(values)


def _is_grade_text(value: Any) -> bool:
    return isinstance(value, str) and (
        value.strip().lower() in GRADES or re.fullmatch(r"[+-]?\d{1,3}([.,]\d+)?\s*%?", value.strip()) is not None
    )
