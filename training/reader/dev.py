"""Passages of other sources than the training examples', to choose a reader by: does what it learned transfer?

    python -m training.reader.dev --noveleval FOLDER --trec FILE --queries FILE --avoid FILE… -o dev.jsonl

Held-out questions of the same sources are a bad guide: a reader that knows them better may know others worse.
NovelEval's questions are about news, with passages of web pages; those of TREC DL 2019 are what people typed into a
search box. Both were judged by people: the highest grade against the lowest, of TREC's unsuited passages those that
systems ranked highest. Nothing of either is learned. The file has the form of the training examples.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ragworth
from ragworth.judging.labels import NO_RESPONSE_LABEL
from training.reader import written
from training.reader.examples import DEV, WRITTEN
from training.reader.sources import lines, plain, seen

NOVELEVAL, TREC = "NovelEval", "TREC DL 2019"
EACH = 10
"""Passages of each grade for one of TREC's questions, at most."""


class Judged(NamedTuple):
    """A question and a passage, which answers it or does not."""

    source: str
    question: str
    passage: str
    answers: bool


def noveleval(folder: Path) -> Iterator[Judged]:
    """Passages of grade 2, which answer the question, and of grade 0, which do not."""
    questions, passages = (dict(_pairs(folder / f"{name}.tsv.gz")) for name in ("queries", "corpus"))
    with gzip.open(folder / "qrels.txt.gz", "rt", encoding="utf-8") as file:
        for query, _, passage, grade in map(str.split, file):
            if grade in ("0", "2"):
                yield Judged(NOVELEVAL, questions[query], passages[passage], grade == "2")


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.strip():
                name, _, text = line.rstrip("\n").partition("\t")
                yield name, text


def trec(graded: Path, queries: Path) -> Iterator[Judged]:
    """Passages of grade 3, and those of grade 0 that systems ranked highest."""
    questions = {item["query_id"]: item["query_text"] for item in lines(queries)}
    for query, passages in lines(graded):
        best = sorted((item for item in passages if item["paragraph_data"]["rankings"]), key=_rank)
        for grade in (3, 0):
            texts = [item["text"] for item in best if item["paragraph_data"]["judgments"][0]["relevance"] == grade]
            for text in texts[:EACH]:
                yield Judged(TREC, questions[query], text, grade > 0)


def written_groups(paths: Sequence[Path]) -> Iterator[Judged]:
    """Every passage of a group for every question that is kept to choose by, but for disputed ones."""
    for path in paths:
        for group in written.split(written.read(path)).chosen_by:
            for asked in group.questions:
                for number, text in group.passages.items():
                    if number not in asked.disputed:
                        yield Judged(WRITTEN, asked.text, text, number in asked.answering)


def _rank(item: dict[str, Any]) -> tuple[int, str]:
    return min(each["rank"] for each in item["paragraph_data"]["rankings"]), item["paragraph_id"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Make the examples that a reader is chosen by.")
    parser.add_argument("--noveleval", type=Path, help="folder with queries.tsv.gz, corpus.tsv.gz and qrels.txt.gz")
    parser.add_argument("--trec", type=Path, help="passages with grades and ranks, a line for each question")
    parser.add_argument("--queries", type=Path, help="what TREC's questions are")
    parser.add_argument("--avoid", type=Path, nargs="*", default=[], help="files that the reader will be judged by")
    parser.add_argument("--written", type=Path, nargs="*", default=[], help="groups; those to choose by are taken")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    every = [
        *(noveleval(given.noveleval) if given.noveleval else []),
        *(trec(given.trec, given.queries) if given.trec else []),
        *written_groups(given.written),
    ]
    avoided = seen(given.avoid)
    kept = [one for one in every if plain(one.question) not in avoided.questions]
    with given.output.open("w", encoding="utf-8") as file:
        for one in kept:
            said = "(an answer)" if one.answers else NO_RESPONSE_LABEL
            kind = f"{one.source}, {'answers' if one.answers else 'other'}"
            row = {"part": DEV, "pass": 0, "kind": kind, "answer": said}
            values = {"query": one.question, "passage": one.passage}
            row["messages"] = ragworth.prompt("abstention", "fenced").render(values).messages
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{len(every)} passages, {len(kept)} after leaving out what the reader will be judged by")


if __name__ == "__main__":
    main()
