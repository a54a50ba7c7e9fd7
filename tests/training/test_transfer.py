"""Other languages and larger contexts: what is asked, and that the answer is where it is said to be."""

from __future__ import annotations

import csv
from collections import Counter
from typing import Any, NamedTuple

import pytest
from training.reader import transfer

import ragworth
from ragworth.llm.contract import Card, Chosen, Usage
from ragworth.text_match.matching import match_answer, to_matchable


def test_every_language_has_ten_questions_with_and_without_their_answer() -> None:
    with transfer.LANGUAGES.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert Counter(row["language"] for row in rows) == dict.fromkeys(("German", "French", "Spanish", "Chinese"), 10)
    for row in rows:
        answers = row["answers"].split("|")
        has, lacks = (to_matchable(row[name]) for name in ("answering", "other"))
        assert any(match_answer(has, answer) is not None or answer in row["answering"] for answer in answers), row
        if row["question"] not in NAMED_ELSEWHERE:
            assert all(match_answer(lacks, answer) is None for answer in answers), row


NAMED_ELSEWHERE = {
    "Welches Team gewann das Endspiel 2033?",
    "Welche Zutat ersetzt das Ei im Rezept?",
    "¿Quién ganó la vuelta a Torrealba en 2030?",
    "¿Quién es la nueva directora del hospital de Ojeda?",
    "¿Qué empresa fabricó los trenes de la línea 4?",
}
"""Questions whose near miss names the answer and doesn't say that it is one."""


@pytest.mark.slow
def test_contexts_have_the_size_and_the_answer_that_they_say() -> None:
    found = list(transfer.sizes(20))
    assert {one.name for one in found} == {str(size) for size in transfer.SIZES}
    assert sum(one.lacks for one in found) == len(found) / 2
    for one in found:
        assert len(one.passages) <= int(one.name) and len(set(one.passages)) == len(one.passages)
    assert sum(len(one.passages) == int(one.name) for one in found) > 0.7 * len(found)


class Careful(NamedTuple):
    """A reader that declines unless the first passage is German."""

    card: Card = Card("scripted", "careful", declining=2.0, prompts="plain")

    def choose(self, requests: list[Any]) -> list[Chosen]:
        sure = [any(word in str(one.prompt) for word in (" der ", " die ", " das ", "Das ")) for one in requests]
        values = [(0.2,) if yes else (0.8,) for yes in sure]
        return [Chosen(value, value, value, "exact", Usage(1, 1, 0.0)) for value in values]


def test_probabilities_are_calibrated_and_shown_for_each_language(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    some = list(transfer.languages())[:2]
    assert transfer.declining(Careful(), some, "plain") == pytest.approx([1 / 3, 1 / 3])
    monkeypatch.setattr(ragworth, "llm", lambda _: Careful())
    transfer.main(["languages"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:4]] == ["German, near misses", "German, random"]
    assert lines[-1].startswith("| Chinese, random | 0.500")
