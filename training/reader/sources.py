"""Questions with passages that answer them, out of files that you have; and what must be left out of them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from training.reader.texts import holds


class Question(NamedTuple):
    """A question with the passage that answers it, and passages of its own that do not, where the source has some."""

    text: str
    answers: tuple[str, ...]
    gold: str
    title: str
    others: tuple[str, ...] = ()


class Unanswered(NamedTuple):
    """A question none of whose passages answers it, as people judged."""

    text: str
    passages: tuple[str, ...]


class Seen(NamedTuple):
    """Questions, in lower case and without punctuation, and titles of passages that must not occur."""

    questions: set[str]
    titles: set[str]

    def has(self, question: Question) -> bool:
        return plain(question.text) in self.questions or question.title in self.titles

    def left(self, question: Unanswered) -> Unanswered:
        """The question without the passages that must not occur."""
        passages = tuple(text for text in question.passages if titled(text)[0] not in self.titles)
        return Unanswered(question.text, passages)


def lines(path: Path) -> Iterator[Any]:
    """The JSON values of a file, one a line; packed if its name ends in .gz."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def nq(path: Path) -> list[Question]:
    """Questions of Natural Questions, each with its gold passage."""
    return [
        Question(item["question"], tuple(item["answers"]), gold["text"], gold["title"])
        for item in lines(path)
        for gold in item["ctxs"][:1]
    ]


def musique(path: Path) -> list[Question]:
    """Sub-questions of MuSiQue that stand alone once the answers before them are filled in."""
    made = []
    for item in lines(path):
        texts = [each["paragraph_text"] for each in item["paragraphs"]]
        known: dict[str, str] = {}
        for number, hop in enumerate(item["question_decomposition"], 1):
            question = re.sub(r"#(\d)", lambda mark: known.get(mark[1], mark[0]), hop["question"])  # noqa: B023
            known[str(number)] = hop["answer"]
            place = hop["paragraph_support_idx"]
            if "#" in question or place is None:
                continue
            about, arrow, relation = question.partition(" >> ")
            question = f"what is the {relation} of {about}" if arrow else question
            answers = (hop["answer"],)
            others = tuple(text for i, text in enumerate(texts) if i != place and holds(answers, text) is None)
            made.append(Question(question, answers, texts[place], item["paragraphs"][place]["title"], others))
    return made


def nomiracl(path: Path) -> list[Unanswered]:
    """Questions of NoMIRACL none of whose passages is relevant, out of the prompts that it was published with."""
    made = []
    for item in lines(path):
        prompt = item["prompt"]
        question = prompt.partition("QUESTION:\n")[2].partition("\n")[0].strip()
        passages = re.split(r"\n?\[\d+\] ", prompt.partition("CONTEXTS:\n")[2].partition("\n\nOUTPUT")[0])
        made.append(Unanswered(question, tuple(text.strip() for text in passages if len(text.split()) >= 12)))
    return made


def titled(text: str) -> tuple[str, str]:
    """A passage that begins with its title and a colon, as title and text."""
    title, colon, rest = text.partition(": ")
    return (title, rest) if colon and len(title) < 60 else ("", text)


def seen(paths: Sequence[Path]) -> Seen:
    """Questions and titles that occur in files: every text under a key that names one, and paragraphs' titles."""
    found = Seen(set(), set())
    for path in paths:
        for item in lines(path):
            _look(item, "", found)
    return found


def _look(value: Any, key: str, found: Seen) -> None:
    if isinstance(value, dict):
        for name, each in value.items():
            _look(each, name, found)
    elif isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], list):
            found.titles.add(value[0])  # a paragraph as [title, sentences]
        for each in value:
            _look(each, key, found)
    elif isinstance(value, str) and key in ("question", "query", "input"):
        found.questions.add(plain(value))
    elif isinstance(value, str) and key == "title":
        found.titles.add(value)


def plain(text: str) -> str:
    """A text as its words in lower case, so that spelling alone makes no other question."""
    return " ".join(re.findall(r"\w+", text.lower()))
