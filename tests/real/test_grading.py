"""Agreement of the grader by words with people, and of the abstention detector with answers read by hand.

Floors lie a little below what ``benchmarks/grading.py`` measures on the held-out half.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from ragworth.text_match.overlap import containment
from ragworth.text_match.refusals import find_refusal
from ragworth.text_match.short_answers import grade_short_answer

pytestmark = pytest.mark.real

SYSTEMS = ["fid", "gpt35", "chatgpt", "gpt4", "newbing"]
LABELS = Path(__file__).with_name("nomiracl_abstained.csv")


def held_out(name: str) -> bool:
    return bool(hashlib.sha256(name.encode()).digest()[0] % 2)


def kappa(pairs: list[tuple[bool, bool]]) -> float:
    """Cohen's κ from the counts of the four cells."""
    cells = Counter(pairs)
    n = len(pairs)
    agreed = (cells[True, True] + cells[False, False]) / n
    ours, theirs = (sum(pair[i] for pair in pairs) / n for i in (0, 1))
    chance = ours * theirs + (1 - ours) * (1 - theirs)
    return (agreed - chance) / (1 - chance)


@pytest.fixture(scope="module")
def judged(data: Path) -> list[tuple[str, list[str], bool]]:
    """Text, accepted answers and judgement of the answers to every fourth held-out question."""
    with gzip.open(data / "answer_grading" / "evouna_NQ.json.gz", "rt", encoding="utf-8") as stream:
        rows = json.load(stream)
    chosen = [row for row in rows if not row["improper"] and held_out(" ".join(row["question"].lower().split()))]
    return [
        (row[f"answer_{name}"], row["golden_answer"].split("/"), row[f"judge_{name}"])
        for row in chosen[::4]
        for name in SYSTEMS
        if row[f"judge_{name}"] is not None and (row[f"answer_{name}"] or "").strip()
    ]


def test_agreement_with_people(judged: list[tuple[str, list[str], bool]]) -> None:
    assert len(judged) > 1800
    graded = [(grade_short_answer(text, accepted).label == "correct", correct) for text, accepted, correct in judged]
    plain = [(containment(text, accepted) == 1.0, correct) for text, accepted, correct in judged]
    assert sum(ours == theirs for ours, theirs in graded) / len(graded) > 0.87
    assert kappa(graded) > 0.71
    assert kappa(graded) > kappa(plain) + 0.08
    # What it calls correct, people nearly always do.
    assert sum(theirs for ours, theirs in graded if ours) / sum(ours for ours, _ in graded) > 0.94


def test_abstentions_against_answers_read_by_hand(data: Path) -> None:
    texts = {}
    for name in ("relevant", "non_relevant"):
        path = data / "nomiracl_en" / f"{name}.en.test.vanilla_prompt.jsonl.gz"
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for row in map(json.loads, stream):
                texts.update({(name, row["query_id"], model): text for model, text in row["results"].items()})
    with LABELS.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 200
    assert all(held_out(row["query"]) for row in rows)
    cells: Counter[tuple[bool, bool]] = Counter()
    for row in rows:
        found = find_refusal(texts[row["set"], row["query"], row["model"]]) is not None
        cells[found, row["label"] == "abstained"] += 1
    assert cells[True, True] / (cells[True, True] + cells[True, False]) > 0.9
    assert cells[True, True] / (cells[True, True] + cells[False, True]) > 0.97
