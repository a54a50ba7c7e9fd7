"""Where a reader was not trained: other languages, and contexts of up to ten passages.

    python -m training.reader.transfer languages --model embedded
    python -m training.reader.transfer sizes --model embedded --prompts plain

``languages`` has ten invented questions in each of four languages, with a passage that answers, one that nearly does,
and another question's. ``sizes`` shows passages of the groups to judge by, with and without one that answers: is the
probability of declining as good with ten passages as with one?
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ragworth
from ragworth.llm.contract import Choose, Chosen, Prompt
from ragworth.stats.auc import auc_interval
from ragworth.tasks.answerability import NO_RESPONSE_LABEL
from training.reader import written
from training.reader.evaluate import ece, words

LANGUAGES = Path(__file__).parent / "languages.tsv"
SIZES = (1, 2, 3, 5, 10)


class Asked(NamedTuple):
    """A question with passages, whether they lack the answer, and what it counts to."""

    name: str
    query: str
    passages: list[str]
    lacks: bool


def languages(path: Path = LANGUAGES) -> Iterator[Asked]:
    """Each question with its answering passage, its near miss, and the answering passage of the next question."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for name in dict.fromkeys(row["language"] for row in rows):
        mine = [row for row in rows if row["language"] == name]
        for number, row in enumerate(mine):
            far = mine[(number + 1) % len(mine)]["answering"]
            for against in ("near misses", "random"):
                yield Asked(f"{name}, {against}", row["question"], [row["answering"]], False)
                other = row["other"] if against == "near misses" else far
                yield Asked(f"{name}, {against}", row["question"], [other], True)


def sizes(number: int, seed: int = 0) -> Iterator[Asked]:
    """Contexts of each size for questions of the groups to judge by, half of them with a passage that answers."""
    draw = random.Random(seed)
    groups = [group for path in written.files() for group in written.split(written.read(path)).judged_by]
    pool = [(group, asked) for group in groups for asked in group.questions if asked.answering]
    for group, asked in draw.sample(pool, min(number, len(pool))):
        far = [text for text in draw.choice(groups).passages.values() if text not in group.passages.values()]
        missing = [*group.missing(asked), *far]
        gold = group.passages[draw.choice(asked.answering)]
        for size in SIZES:
            for lacks in (False, True):
                shown = draw.sample(missing, min(len(missing), size if lacks else size - 1)) + [gold] * (not lacks)
                yield Asked(str(size), asked.text, draw.sample(shown, len(shown)), lacks)


def declining(model: Any, some: Sequence[Asked], prompts: str) -> list[float]:
    """The probability of declining, calibrated as the model's card says."""
    requests = [Choose(_prompt(one, prompts), (NO_RESPONSE_LABEL,), "first-token") for one in some]
    heat, found = model.card.declining or 1.0, []
    for one in model.choose(requests):
        if not isinstance(one, Chosen):
            raise SystemExit(f"a prompt could not be judged: {one}")
        p = min(max(one.probabilities[0], 1e-12), 1 - 1e-12)
        found.append(1 / (1 + ((1 - p) / p) ** (1 / heat)))
    return found


def _prompt(one: Asked, prompts: str) -> Prompt:
    values: dict[str, Any] = {"query": one.query}
    if len(one.passages) == 1:
        return ragworth.prompt("abstention", prompts).render(values | {"passage": one.passages[0]})
    return ragworth.prompt("answer", prompts).render(values | {"passages": [{"text": text} for text in one.passages]})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure a reader in other languages or with more passages.")
    parser.add_argument("what", choices=["languages", "sizes"])
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--prompts", default="", help="plain or fenced  [default: what the model takes]")
    parser.add_argument("--questions", type=int, default=150, help="for sizes")
    given = parser.parse_args(arguments)
    model: Any = ragworth.llm(given.model)
    some = list(languages() if given.what == "languages" else sizes(given.questions))
    found = declining(model, some, given.prompts or model.card.prompts)
    print(f"| {given.what} | AUC | ECE | mean p, answer there | mean p, answer missing | n |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name in dict.fromkeys(one.name for one in some):
        mine = [number for number, one in enumerate(some) if one.name == name]
        p, lacks = np.array([found[n] for n in mine]), np.array([some[n].lacks for n in mine])
        questions = np.array([some[n].query for n in mine])
        area = words(auc_interval(p, lacks, questions))
        means = f"{p[~lacks].mean():.3f} | {p[lacks].mean():.3f}"
        print(f"| {name} | {area} | {words(ece(p, lacks, questions))} | {means} | {len(mine)} |")


if __name__ == "__main__":
    main()
