"""Complete workspaces out of real data: files and a ``ragworth.toml``, in a folder of yours.

    RAGWORTH_DATA=FOLDER python benchmarks/workspaces.py aragog work/aragog
    RAGWORTH_DATA=FOLDER python benchmarks/workspaces.py vaswani work/vaswani
    ragworth evaluate work/aragog

``aragog``: 27 retrieval settings × 107 questions, with the answers that a model really gave and their given
similarity to the accepted ones. It has no relevance labels, so they are derived: see `recall`. ``vaswani``: 93 queries
over 11,429 abstracts with relevance labels. ``dl19``: the official runs of TREC DL 2019 with labels and ratings of
sub-questions. ``rgb``, ``multihop``: questions with passages of their own, for studies that ask a model. ``nomiracl``,
``clapnq``, ``mtrag``: no workspaces, but tables for ``ragworth study judges``. What was found is in docs/findings.md.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gzip
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

if sys.path[0] == str(Path(__file__).resolve().parent):
    # Run as a script: our coverage.py must not stand for the package of that name.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.files import write_lines, write_table
from benchmarks.judged_sets import clapnq, dl19, mtrag, nomiracl
from benchmarks.question_sets import multihop, rgb

from ragworth.data.collection import text_id
from ragworth.text_match.overlap import split_words
from ragworth.workspace.config import WORKSPACE_FILE

THRESHOLD = 1 / 3
"""Share of the accepted answer's own words from which on a passage counts as relevant."""

ARAGOG = """\
title = "ARAGOG: 27 retrieval settings × 107 questions"
k = 3 # contexts have one to three passages

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
answers = "queries.jsonl"
qrels = "qrels.txt" # derived: passages with {threshold:.2f} or more of the words that only the accepted answer has

[systems]
"*" = {{ run = "contexts.csv" }} # every system in the file, under its own name

[answers]
file = "answers.jsonl" # what the model really answered

[grades]
files = "outcomes.csv" # similarity (sas), faithfulness and context_relevance, as published
text = true # token F1 and others, against the accepted answers

[metrics]
use = ["nDCG@3", "AP@3", "RR@3", "Success@3", "R@3", "P@3", "P", "F@3", "T@3", "T_u@3"]
"""

VASWANI = """\
title = "Vaswani: 93 queries over 11,429 abstracts"
k = 10

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
qrels = "qrels.txt"

[systems]
bm25 = 'bm25 % 1000'
bm25-stems = 'bm25(stopwords="english", stemmer="english") % 1000'
reversed = 'bm25(stopwords="english", stemmer="english") % 10 >> reversed' # the same ten, the best ones last
oracle = 'oracle'
adversary = 'bm25(stopwords="english", stemmer="english") % 1000 >> adversary' # the best that nobody calls relevant
random = 'random % 1000'

[metrics]
use = ["nDCG@10", "AP", "P@10", "R@10", "RR@10", "Rprec", "Success@10"]
baseline = "bm25"
"""


class Row(NamedTuple):
    """One question under one retrieval setting, as published."""

    system: str
    query: str
    question: str
    accepted: str
    passages: tuple[str, ...]
    answer: str | None
    """None where the model gave none: an empty text, or the word None."""
    given: Mapping[str, float | None]
    """sas, faithfulness, context_relevance."""


def rows(data: Path) -> Iterator[Row]:
    """All of ARAGOG, setting by setting; questions are numbered in their order, which all files share."""
    for path in sorted((data / "aragog").glob("detailed_*.csv.gz")):
        system = path.name.removeprefix("detailed_").removesuffix(".csv.gz")
        with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
            for number, row in enumerate(csv.DictReader(stream), 1):
                answer = row["predicted_answers"]
                yield Row(
                    system,
                    f"q{number:03}",
                    row["questions"],
                    row["true_answers"].strip(),
                    tuple(ast.literal_eval(row["contexts"])),
                    None if answer.strip() in ("", "None") else answer,
                    {name: _number(row[name]) for name in ("sas", "faithfulness", "context_relevance")},
                )


def _number(text: str) -> float | None:
    return float(text) if text not in ("", "nan") else None


def recall(passage: str, question: str, accepted: str) -> float:
    """How much of an accepted answer a passage holds: the share of the words that the answer has of its own.

    Words are those of token F1, stemmed, each counted once, after ligatures and words broken at the end of a line are
    mended, as they come from PDF files. Stop words do not count, nor do words of the question, which every passage
    on its subject has.
    """
    own = _stems(accepted) - _stems(question)
    return len(own & _stems(passage)) / len(own)


@cache
def _stems(text: str) -> frozenset[str]:
    """The content words of a text."""
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    whole = unicodedata.normalize("NFKC", text).replace("-\n", "")
    return frozenset(_stemmer().stemWords([word for word in split_words(whole) if word not in STOPWORDS_EN_PLUS]))


@cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def aragog(data: Path, folder: Path, threshold: float = THRESHOLD) -> None:
    """Contexts, answers and outcomes as published; labels for every passage that some system shows for a question."""
    every = list(rows(data))
    passages = {text_id(text): text for row in every for text in row.passages}
    questions = {row.query: row for row in every}
    shown = dict.fromkeys((row.query, text_id(text)) for row in every for text in row.passages)
    write_lines(
        folder / "queries.jsonl",
        ({"_id": q, "text": r.question, "answers": [r.accepted]} for q, r in questions.items()),
    )
    write_lines(folder / "passages.jsonl", ({"_id": passage, "text": text} for passage, text in passages.items()))
    write_table(
        folder / "contexts.csv",
        ("system", "query", "rank", "passage"),
        ((row.system, row.query, rank, text_id(text)) for row in every for rank, text in enumerate(row.passages, 1)),
    )
    write_lines(
        folder / "answers.jsonl",
        (
            {
                "system": row.system,
                "query": row.query,
                "text": row.answer,
                "status": "ok" if row.answer else "no-answer",
            }
            for row in every
        ),
    )
    write_table(folder / "outcomes.csv", ("system", "query", "aspect", "value", "status"), _outcomes(every))
    labels = (
        (
            query,
            int(recall(passages[passage], questions[query].question, questions[query].accepted) >= threshold),
            passage,
        )
        for query, passage in shown
    )
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {p} {label}\n" for q, label, p in labels), encoding="utf-8")
    (folder / WORKSPACE_FILE).write_text(ARAGOG.format(threshold=threshold), encoding="utf-8")


def _outcomes(every: Iterable[Row]) -> Iterator[tuple[object, ...]]:
    """What is said of an answer has no value where there is none; what is said of the context has one all the same."""
    for row in every:
        for aspect, value in row.given.items():
            if row.answer is None and aspect != "context_relevance":
                yield row.system, row.query, aspect, None, "no-answer"
            else:
                yield row.system, row.query, aspect, value, "ok" if value is not None else "not-given"


def vaswani(data: Path, folder: Path) -> None:
    """The collection as published, in our formats."""
    source = data / "vaswani"
    for name, kind in (("query-text.trec.gz", "queries"), ("doc-text.trec.gz", "passages")):
        write_lines(folder / f"{kind}.jsonl", ({"_id": id_, "text": text} for id_, text in _tagged(source / name)))
    with gzip.open(source / "qrels.gz", "rt", encoding="utf-8") as stream:
        (folder / "qrels.txt").write_text(stream.read(), encoding="utf-8")
    (folder / WORKSPACE_FILE).write_text(VASWANI, encoding="utf-8")


def _tagged(path: Path) -> Iterator[tuple[str, str]]:
    """Ids and texts out of TREC's tags."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        whole = stream.read()
    for block in re.split(r"</(?:DOC|top)>", whole):
        if found := re.search(r"<(?:DOCNO|num)>\s*(.+?)\s*</(?:DOCNO|num)>", block):
            yield found[1], " ".join(re.sub(r"<[^>]+>", " ", block[found.end() :]).split())


MADE: dict[str, Callable[..., None]] = {
    "aragog": aragog,
    "vaswani": vaswani,
    "rgb": rgb,
    "multihop": multihop,
    "dl19": dl19,
    "nomiracl": nomiracl,
    "clapnq": clapnq,
    "mtrag": mtrag,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a workspace from the real data in $RAGWORTH_DATA.")
    parser.add_argument("name", choices=MADE)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threshold", type=float, default=THRESHOLD, help="of relevance, for aragog: from 0 to 1")
    given = parser.parse_args()
    data = os.environ.get("RAGWORTH_DATA")
    if not data or not Path(data).is_dir():
        sys.exit("RAGWORTH_DATA names no folder: it must name the one of the real data")
    if (given.folder / WORKSPACE_FILE).exists():
        sys.exit(f"{given.folder / WORKSPACE_FILE} is there already: name another folder")
    given.folder.mkdir(parents=True, exist_ok=True)
    MADE[given.name](Path(data), given.folder, *([given.threshold] if given.name == "aragog" else []))
    whole = (given.folder / WORKSPACE_FILE).exists()
    follows = f"evaluate {given.folder}" if whole else f"study judges {given.folder / (given.name + '.csv')}"
    print(f"written: {given.folder}; next: ragworth {follows}")


if __name__ == "__main__":
    main()
